"""npm's manual as a website: which pages are read, of what, and that its questions are held to them."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from bench import corpora as manual
from bench.visitors import LANGUAGES, MANUAL, Case, cases, part_of, unfounded
from schemas.page import PageDocument

PAGE = """<!DOCTYPE html><html><head><style>h1 {}</style></head><body><div id="banner">npm</div><section id="content">
<header class="title"><h1><span>npm-prune</span><span class="version">@11.6.2</span></h1>
<span class="description">Remove extraneous packages</span></header>
<section id="table_of_contents"><a href="#description">Description</a></section>
<div id="_content"><h3>Description</h3>
<p>Removes <code>node_modules</code> nobody needs.</p></div>
<footer id="edit">Edit this page</footer></section></body></html>"""


def packed(folder: Path, *names: str) -> Path:
    path = folder / "npm-11.6.2.tgz"
    with tarfile.open(path, "w:gz") as tarball:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(PAGE.encode())
            tarball.addfile(member, io.BytesIO(PAGE.encode()))
    return path


def test_a_page_is_its_title_and_body_without_the_theme(tmp_path: Path) -> None:
    output = "package/docs/output/"
    others = ["package/README.md", "package/docs/content/npm-ci.md", f"{output}configuring-npm/npm-json.html"]
    tarball = packed(tmp_path, f"{output}commands/npm-prune.html", *others)
    (document,) = manual.packed_documents(tarball, "https://manual.example")
    page = PageDocument.model_validate(document)
    assert (page.id, page.title, page.url) == ("npm-prune", "npm-prune", "https://manual.example/en/npm-prune")
    seen = " ".join(manual.manual_text(document).split())
    assert seen == "npm-prune Remove extraneous packages Description Removes node_modules nobody needs."


def test_another_package_than_the_one_that_was_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pack(command: list[str | Path], **_: object) -> None:
        packed(Path(command[-1]), "package/docs/output/commands/npm-prune.html")

    monkeypatch.setattr(subprocess, "run", pack)
    with pytest.raises(manual.OtherManual):
        list(manual.manual_documents("https://manual.example"))


def test_a_fact_that_a_right_page_lacks_is_named() -> None:
    case = Case(id="a", kind="meaning", lang="en", question="?", pages=("b", "c"), facts=(("x", "y"),), expect="answer")
    assert unfounded([case], {"b": "so y", "c": "so z"}) == ["a: ('x', 'y') on c"]


def test_each_question_about_the_manual_has_its_source_and_a_part() -> None:
    every = cases(MANUAL)
    assert {case.lang for case in every} <= set(LANGUAGES)
    assert len({case.id for case in every}) == len({case.question for case in every}) == len(every) > 150
    assert all(case.note.startswith("after ") and "#" in case.note for case in every)
    assert all((case.expect == "answer") == bool(case.pages and case.facts) for case in every)
    kinds = Counter(case.expect for case in part_of(every, "hold-out"))
    assert kinds["answer"] > 30
    assert kinds["refuse"] > 10
