"""Pages from disk: the same files give the same pages, and a bad one is named with its line."""

from __future__ import annotations

import os
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connectors.cms import documents as module
from connectors.cms.documents import BadSource, Left, count, documents
from schemas.page import PageDocument
from tests import hostile_files

MTIME_MS = 1_777_000_000_123


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "site"
    made.mkdir()
    return made


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, ns=(0, MTIME_MS * 1_000_000))
    return path


def read(source: Path) -> tuple[list[PageDocument], Left]:
    left = Left()
    return list(documents(source, left)), left


def only(source: Path) -> PageDocument:
    [page], left = read(source)
    assert left == Left()
    return page


def failed(source: Path) -> dict[str, str]:
    return read(source)[1].failed


def test_a_file_of_html_is_a_page_that_is_called_what_it_calls_itself(folder: Path) -> None:
    put(folder / "town" / "fees.html", "<h1>All fees</h1>\r\n<p>Free.</p>")
    assert only(folder) == PageDocument(
        id="town/fees", title="All fees", content="<h1>All fees</h1>\n<p>Free.</p>", revision=MTIME_MS
    )


def test_a_websites_whole_page_is_read_without_its_frame(folder: Path) -> None:
    whole = (
        "<html><head><title>Fees - Town</title></head><body><nav>Home News</nav><main><h1>Fees</h1><p>A dog costs 60"
    )
    put(folder / "fees.html", f"{whole} euros a year.</p></main><footer>Market Square</footer></body></html>")
    page = only(folder)
    assert (page.title, set(page.left_out)) == ("Fees", {"menu", "footer"})
    assert "60 euros" in page.content
    assert "Home" not in page.content


def test_a_file_without_a_title_is_named_after_its_place(folder: Path) -> None:
    put(folder / "town" / "fees.html", "<p>Free.</p>")
    assert (only(folder).id, only(folder).title) == ("town/fees", "fees")


def test_a_file_of_html_is_in_the_language_that_it_names_if_the_site_has_it(folder: Path) -> None:
    put(folder / "a.html", '<!doctype html><html lang="de-AT"><title>Bad</title><p>Offen.')
    put(folder / "b.html", '<html lang="fr"><title>Bain</title><p>Ouvert.')
    put(folder / "c.html", '---\nlang: en\n---\n<html lang="de"><title>Bath</title><p>Open.')
    put(folder / "d.md", '<html lang="de">Text.')
    found = {page.id: page.lang for page in documents(folder, Left(), ("en", "de"))}
    assert found == {"a": "de", "b": None, "c": "en", "d": None}


def test_markdown_becomes_html_with_tables(folder: Path) -> None:
    put(folder / "fees.md", "# Fees\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\nwww.example.org")
    content = only(folder).content
    assert "<h1>Fees</h1>" in content
    assert "<td>2</td>" in content
    assert "<a " not in content  # words that look like links stay words


def test_front_matter_says_what_the_file_name_cannot(folder: Path) -> None:
    matter = """---
id: 12
title: "Fees: all of them"
lang: en
path: /fees
keywords: [money, dogs]
changed_at: 2026-05-04
revision: 7
groups: []
---
<p>Free.</p>
"""
    put(folder / "fees.html", matter.replace("id: 12", "id: '12'"))
    assert only(folder) == PageDocument(
        id="12",
        title="Fees: all of them",
        lang="en",
        url="/fees",
        keywords=("money", "dogs"),
        changed_at=datetime(2026, 5, 4, tzinfo=UTC),
        revision=7,
        groups=(),
        content="<p>Free.</p>\n",
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-05-04", datetime(2026, 5, 4, tzinfo=UTC)),
        ("2026-05-04 10:30:00", datetime(2026, 5, 4, 10, 30, tzinfo=UTC)),
        ("2026-05-04T10:30:00+02:00", datetime(2026, 5, 4, 8, 30, tzinfo=UTC)),
        ("'2026-05-04T10:30:00Z'", datetime(2026, 5, 4, 10, 30, tzinfo=UTC)),
    ],
)
def test_times_in_front_matter_without_a_zone_are_utc(folder: Path, written: str, meant: datetime) -> None:
    put(folder / "a.md", f"---\nchanged_at: {written}\n---\n")
    assert only(folder).changed_at == meant


@pytest.mark.parametrize(
    "start", ["\ufeff---\ntitle: T\n---\nbody", "---\r\ntitle: T\r\n---\r\nbody", "---\ntitle: T\n---"]
)
def test_front_matter_of_any_editor_is_found(folder: Path, start: str) -> None:
    put(folder / "a.html", start)
    page = only(folder)
    assert page.title == "T"
    assert "title" not in page.content


@pytest.mark.parametrize("content", ["", "just text", "text\n---\nmore\n---\n", "--- \n"])
def test_a_file_without_front_matter_is_all_content(folder: Path, content: str) -> None:
    put(folder / "a.html", content)
    assert (only(folder).title, only(folder).content) == ("a", content)


def test_a_folder_is_read_in_a_stable_order_and_only_its_pages(folder: Path) -> None:
    for name in ("b.md", "a/z.htm", "a/b.MARKDOWN", "c.html", "image.png", "style.css", "d.md/a-page-too.txt"):
        put(folder / name, "x")
    assert [page.id for page in read(folder)[0]] == ["a/b", "a/z", "b", "c", "d.md/a-page-too.txt"]
    assert count(folder) == 5


def test_an_office_file_is_a_page_with_the_file_attached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder / "town" / "Plan.PDF", "%PDF")
    page = only(folder)
    assert (page.id, page.title, page.content, page.revision) == ("town/Plan.PDF", "Plan.PDF", "", MTIME_MS)
    [attached] = page.attachments
    assert (attached.media_type, attached.title) == ("application/pdf", "Plan.PDF")
    assert b64decode(attached.data_base64 or "") == b"%PDF"
    monkeypatch.setattr(module, "LARGEST_FILE", 3)
    assert failed(folder)["town/Plan.PDF"].startswith("larger than 3 bytes: make the folder a connector")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("---\n- a\n- list\n---\n", "front matter: must be `name: value` lines"),
        ("---\njust a sentence\n---\n", "front matter: must be `name: value` lines"),
        ("---\ntitle: [\n---\n", "while parsing"),
        (f"---\ntitle: {'x' * 70_000}\n---\n", "front matter: longer than 65,536 characters"),
        ("---\ntitle: [private]\n---\n", "title: Input should be a valid string"),
        ("---\ngroup: [staff]\n---\n", "group: no field of a page; did you mean groups?"),
        ("---\nlang: German\n---\n", "lang: "),
        ("---\nchanged_at: yesterday\n---\n", "changed_at: "),
        (b"\xff" * 9, "not a text in an encoding that can be told"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(folder: Path, content: str | bytes, said: str) -> None:
    put(folder / "bad.md", content)
    assert said in failed(folder)["bad.md"]


def test_good_pages_beside_a_bad_one_are_given(folder: Path) -> None:
    put(folder / "a.md", "fine")
    put(folder / "b.md", "---\nlang: German\n---\n")
    put(folder / "c.md", "fine")
    pages, left = read(folder)
    assert [page.id for page in pages] == ["a", "c"]
    assert list(left.failed) == ["b.md"]


def test_what_one_file_raises_is_named_and_stops_no_other(folder: Path) -> None:
    put(folder / "good.md", "fine")
    with hostile_files.put(folder):
        pages, left = read(folder)
    assert [page.id for page in pages] == ["good"]
    assert left.omitted == {name: said for name, (_, said) in hostile_files.OMITTED.items()}
    assert len(left.failed) == len(hostile_files.FAILED) + len(hostile_files.ATTACHMENTS)
    for name, (_, said) in hostile_files.FAILED.items():
        file = name.replace("\udce9", "\\xe9")
        [reason] = [reason for each, reason in left.failed.items() if each == file or each.startswith(f"{file}/")]
        assert said in reason


def test_each_line_of_a_file_is_a_page(tmp_path: Path) -> None:
    source = put(tmp_path / "pages.ndjson", '{"id": "a", "title": "\u00fc"}\n\n  \n{"id": "b", "revision": 3}')
    assert read(source)[0] == [PageDocument(id="a", title="ü"), PageDocument(id="b", revision=3)]
    assert count(source) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a"', "Invalid JSON"),
        ("[]", "Input should be an object"),
        ('{"title": "private"}', "id: Field required"),
        ('{"id": "a", "content": "\\ud800"}', "Invalid JSON"),
        ('{"id": "a\\u0000"}', "id: must be one line"),
        ('{"id": "a", "surprise": "private"}', "surprise: Extra inputs"),
        (b"\xff", "Invalid JSON"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: str | bytes, said: str) -> None:
    good = b'{"id": "good"}\n\n'
    source = put(
        tmp_path / "pages.ndjson", good + (line.encode() if isinstance(line, str) else line) + b'\n{"id": "last"}'
    )
    pages, left = read(source)
    assert [page.id for page in pages] == ["good", "last"]
    assert list(left.failed) == [f"{source}:3"]
    message = left.failed[f"{source}:3"]
    assert said in message
    assert "private" not in message


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSource) as caught:
        read(tmp_path / "none")
    assert str(caught.value) == f"{tmp_path / 'none'}: no such file or folder"


def test_front_matter_of_other_tools_is_read_as_the_folder_connector_reads_it(tmp_path: Path) -> None:
    (tmp_path / "fees.md").write_text("---\ntitle: Fees\ntags: [money, dogs]\nlayout: post\nmetadata: 3\n---\n60 euros")
    (tmp_path / "soon.md").write_text("---\ndraft: true\n---\nNot yet.")
    left = Left()
    [page] = documents(tmp_path, left)
    assert (page.title, page.keywords, page.labels) == ("Fees", ("money", "dogs"), {"tags": ("money", "dogs")})
    assert (left.failed, left.omitted) == ({}, {"soon.md": "a draft"})
