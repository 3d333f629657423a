"""A folder as a source: which files are pages, what they say, and a folder that is watched."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from connectors.cms import sync as syncing
from connectors.cms.folder import source
from connectors.cms.folder.source import FolderGone, FolderSource
from connectors.cms.folder.watch import Watch
from connectors.cms.frame import Listed, UnreadablePage
from connectors.cms.reconcile import Reconciled, reconcile
from connectors.cms.settings import FolderConnector
from connectors.cms.sync import SyncOutcome
from pipelines.runtime.errors import Retryable
from schemas.page import PageDocument
from tests import hostile_files
from tests.connecting import SITE, Log


@pytest.fixture(autouse=True)
def a_quick_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses, and what was just written is long ago."""
    monkeypatch.setattr(syncing, "PAUSES", ())
    monkeypatch.setattr(source, "TICK", -1_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pages"
    made.mkdir()
    return made


def put(path: Path, content: str | bytes = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def move(one: Path, other: Path) -> None:
    one.rename(other)


def source_of(folder: Path, **more: str) -> FolderSource:
    return FolderSource(FolderConnector.model_validate({"kind": "folder", "path": folder} | more), ("en", "de"))


async def pages(folder: Path, **more: str) -> dict[str, PageDocument | UnreadablePage]:
    found = source_of(folder, **more)
    listed = [one async for one in found.inventory() if isinstance(one, Listed)]
    fetched = [one async for one in found.fetch(listed)]
    names = [f"{one.lang} {one.page_id}" for one in listed]
    return dict(zip(names, fetched, strict=True))


async def test_markdown_and_html_are_pages(folder: Path) -> None:
    put(folder / "town" / "fees.md", "# Fees\n\n| a | b |\n| - | - |\n| 1 | 2 |")
    put(folder / "hours.HTML", "<p>Open.</p>")
    put(folder / "style.css")
    found = await pages(folder)
    assert set(found) == {"en town/fees", "en hours"}
    fees = found["en town/fees"]
    assert isinstance(fees, PageDocument)
    assert "<td>2</td>" in fees.content
    assert fees.revision is not None


async def test_a_file_is_read_in_the_encoding_that_it_names(folder: Path) -> None:
    page = "---\ndescription: Größe\n---\n<title>Gebühren</title><meta charset={}><p>Der Eintritt kostet 5 €.</p>"
    put(folder / "fees.html", page.format("windows-1252").encode("cp1252"))
    put(folder / "silent.md", page.format("").encode("cp1252"))
    for found in (await pages(folder)).values():
        assert isinstance(found, PageDocument)
        assert (found.title, found.description) == ("Gebühren", "Größe")
        assert "5 €" in found.content


async def test_a_page_is_called_what_it_calls_itself(folder: Path) -> None:
    put(folder / "a.md", "# The *fees*\n\ntext\n\n# More")
    put(folder / "b.html", "<html><head><title>Fees - Town</title></head><body><h1>Fees</h1></body></html>")
    put(folder / "c.de.md", "text")
    put(folder / "d.md", "---\ntitle: Said\n---\n# Heading")
    found = [one for one in (await pages(folder)).values() if isinstance(one, PageDocument)]
    assert {one.id: one.title for one in found} == {"a": "The fees", "b": "Fees", "c": "c", "d": "Said"}


WHOLE = """<!doctype html>
<html lang="en"><head><title>Fees - Town</title><meta name="description" content="What it costs."></head><body>
<nav><a href="/">Home</a> <a href="/news">News</a></nav>
<main><h1>Fees</h1><p>A dog costs 60 euros a year.</p></main>
<footer>Town Hall, 1 Market Square</footer>
</body></html>"""


async def test_a_websites_whole_page_is_read_without_its_frame(folder: Path) -> None:
    put(folder / "fees.html", WHOLE)
    put(folder / "own.html", f"---\ntitle: Dog tax\n---\n{WHOLE}")
    for found, title in zip((await pages(folder)).values(), ("Fees", "Dog tax"), strict=True):
        assert isinstance(found, PageDocument)
        assert (found.title, found.description) == (title, "What it costs.")
        assert "60 euros" in found.content
        assert not any(word in found.content for word in ("Home", "News", "Market"))
        assert set(found.left_out) == {"menu", "footer"}


async def test_a_suffix_says_the_language_when_the_site_has_it(folder: Path) -> None:
    for name in ("about.md", "about.de.md", "about.v2.md", "de.md", "x/.de.md"):
        put(folder / name)
    assert set(await pages(folder)) == {"en about", "de about", "en about.v2", "en de"}


async def test_an_html_file_says_its_language_where_its_name_does_not(folder: Path) -> None:
    put(folder / "about.html", '<!doctype html><html class="x" lang="de-AT"><body>Über uns')
    put(folder / "team.en.html", '<html lang="de"><body>Team')
    put(folder / "jobs.html", '<html lang="fr"><body>Emplois')  # none of the site's
    put(folder / "fees.html", '---\nlang: en\n---\n<html lang="de"><body>Fees')
    assert set(await pages(folder)) == {"de about", "en team", "en jobs", "en fees"}


async def test_front_matter_says_the_language_as_websites_write_it(folder: Path) -> None:
    put(folder / "about.md", "---\nlang: pt_BR\n---\n")
    assert set(await pages(folder)) == {"pt-BR about"}


async def test_front_matter_of_other_tools_is_understood(folder: Path) -> None:
    put(
        folder / "post.md",
        "---\ntitle: 2026\ntags: [money, dogs]\nsummary: All of them\nlastmod: 2026-05-04\nlayout: post\n"
        "author: {name: x}\nmetadata: {author: x, template: y}\n---\ntext",
    )
    page = (await pages(folder))["en post"]
    assert isinstance(page, PageDocument)
    assert (page.title, page.keywords, page.description) == ("2026", ("money", "dogs"), "All of them")
    assert page.changed_at is not None
    assert page.labels == {"tags": ("money", "dogs")}


async def test_labels_of_front_matter_are_kept_and_bad_ones_named(folder: Path) -> None:
    put(
        folder / "fees.md",
        "---\ntags: money, dogs\ncategories: [News]\nauthor: Lind, Ada\n"
        "labels: {kind: form, year: [2026], tags: [x]}\n---\n",
    )
    put(folder / "many.md", f"---\ntags: [{', '.join(f't{n}' for n in range(500))}]\n---\n")
    put(folder / "wrong.md", f"---\nlabels: {{kind: [{', '.join(f't{n}' for n in range(500))}]}}\n---\n")
    put(folder / "odd.md", "---\nlabels: form\n---\n")
    found = await pages(folder)
    fees, many, wrong, odd = (found[f"en {name}"] for name in ("fees", "many", "wrong", "odd"))
    assert isinstance(fees, PageDocument)
    assert fees.labels == {
        "tags": ("x",),
        "categories": ("News",),
        "author": ("Lind, Ada",),
        "kind": ("form",),
        "year": ("2026",),
    }
    assert isinstance(many, PageDocument)
    assert len(many.labels["tags"]) == 200
    assert isinstance(wrong, UnreadablePage)
    assert "at most 200" in wrong.reason
    assert isinstance(odd, UnreadablePage)


async def test_drafts_hidden_files_and_what_lies_elsewhere_are_not_public(folder: Path, tmp_path: Path) -> None:
    put(folder / "draft.md", "---\ndraft: true\n---\n")
    put(folder / "unpublished.md", "---\npublished: false\n---\n")
    put(folder / ".git" / "a.md")
    put(folder / ".hidden.md")
    (folder / "passwd.md").symlink_to(put(tmp_path / "secret.md"))
    (folder / "nowhere.md").symlink_to(folder / "gone.md")
    (folder / "inside.md").symlink_to(put(folder / "real.md"))
    assert set(await pages(folder)) == {"en real", "en inside"}


async def test_an_office_file_is_a_page_of_its_own_or_an_attachment(folder: Path) -> None:
    put(folder / "plan.pdf", b"%PDF")
    put(folder / "fees" / "list.docx", b"PK")
    put(folder / "fees" / "index.md", "---\nattachments: [list.docx]\n---\ntext")
    found = await pages(folder, url="https://docs.town.example/files/")
    plan, index = found["en plan.pdf"], found["en fees/index"]
    assert set(found) == {"en plan.pdf", "en fees/index"}
    assert isinstance(plan, PageDocument)
    assert isinstance(index, PageDocument)
    assert (plan.title, plan.url) == ("plan.pdf", "https://docs.town.example/files/plan.pdf")
    assert [(a.path, a.media_type) for a in plan.attachments] == [(str(folder / "plan.pdf"), "application/pdf")]
    assert [(Path(a.path or "").name, a.link) for a in index.attachments] == [
        ("list.docx", "https://docs.town.example/files/fees/list.docx")
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("---\ntitle: [\n---\n", "while parsing"),
        ("---\n- a\n---\n", "front matter"),
        ("---\nlang: German\n---\n", "lang: "),
        ("---\nchanged_at: yesterday\n---\n", "changed_at: "),
        ("---\nattachments: [../secret.pdf]\n---\n", "no file in this folder"),
        (b"\xff\xfe\x00", "not a text in an encoding that can be told"),
    ],
)
async def test_a_bad_file_is_told_and_stops_no_other(folder: Path, content: str | bytes, said: str) -> None:
    put(folder / "bad.md", content)
    put(folder / "good.md")
    found = [page for page in (await pages(folder)).values() if isinstance(page, UnreadablePage)]
    assert len(found) == 1
    assert said in found[0].reason


async def test_what_one_file_raises_is_named_and_stops_no_other(folder: Path, tmp_path: Path) -> None:
    for number in range(20):
        put(folder / f"good{number}.md")
    log = Log()
    with hostile_files.put(folder):
        outcome = await syncing.sync(source_of(folder), SITE, "docs", log.intake(), tmp_path / "home", lambda _: None)
    assert sorted(log.titles()) == sorted(f"en:good{number}" for number in range(20))
    assert outcome.omitted == {name: said for name, (_, said) in hostile_files.OMITTED.items()}
    reasons = {failure.page_id: failure.reason for failure in outcome.failures}
    assert outcome.failed == len(reasons) == len(hostile_files.FAILED) + len(hostile_files.ATTACHMENTS)
    for name, (_, said) in (hostile_files.FAILED | hostile_files.ATTACHMENTS).items():
        page = name.removesuffix(".md").replace("\udce9", "\\xe9")
        [reason] = [reason for id, reason in reasons.items() if id == page or id.startswith(f"{page}/")]
        assert said in reason


async def test_what_cannot_be_listed_is_named_and_nothing_is_deleted(
    folder: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "b.md", "c.md", "locked/d.md"):
        put(folder / name)
    await watched.begin()
    listing = os.scandir

    def refusing(place: str | Path) -> object:
        if str(place).endswith("locked"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
        return listing(place)

    monkeypatch.setattr(os, "scandir", refusing)
    (folder / "a.md").unlink()
    put(folder / "b.md", "# New")
    found = await watched.begin()
    assert (found.sent, found.deleted, found.refused, found.done) == (1, 0, True, False)
    assert [(one.page_id, one.reason) for one in found.failures] == [("locked", "cannot be listed: Permission denied")]
    assert watched.log.titles()["en:b"] == "New"
    (folder / "c.md").unlink()
    await watched.watch.look()  # it has seen what was in there
    assert set(watched.log.titles()) == {"en:a", "en:b", "en:locked/d"}


async def test_front_matter_is_looked_for_in_linear_time(folder: Path) -> None:
    put(folder / "a.md", "---" + "\n" * 200_000 + "x")
    put(folder / "b.md", "---\n" + "\n---x" * 40_000)
    start = process_time()
    assert set(await pages(folder)) == {"en a", "en b"}
    assert process_time() - start < 5


async def test_two_files_that_are_the_same_page_are_told(folder: Path) -> None:
    put(folder / "a.md")
    put(folder / "a.html")
    [page] = (await pages(folder)).values()
    assert isinstance(page, UnreadablePage)
    assert page.reason == "two files are this page: a.html and a.md"


async def test_a_folder_that_is_not_there_is_away_not_empty(folder: Path) -> None:
    found = source_of(folder / "mounted")
    with pytest.raises(FolderGone):
        _ = [one async for one in found.inventory()]


async def test_a_file_that_went_between_inventory_and_fetch_is_left_out(folder: Path) -> None:
    put(folder / "a.md")
    put(folder / "b.md")
    found = source_of(folder)
    listed = [one async for one in found.inventory()]
    (folder / "a.md").unlink()
    assert [page.id async for page in found.fetch(listed) if isinstance(page, PageDocument)] == ["b"]
    assert [one async for one in found.fetch([Listed("never", "en", 1)])] == []


async def test_a_copy_with_an_old_time_is_a_new_revision(folder: Path) -> None:
    page = put(folder / "a.md", "new")
    before = [one async for one in source_of(folder).inventory()]
    old = put(folder / "old.txt.bak", "older")
    os.utime(old, (1, 1))
    shutil.copy2(old, page)  # as rsync and unzip do
    [after] = [one async for one in source_of(folder).inventory()]
    assert after.revision >= before[0].revision
    assert after.revision > 10**12


class Watched:
    """A watch that looks when it is told to; what tells it otherwise is watchfiles' and is tried for real elsewhere."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.log, self.home = Log(), home
        self.source = source_of(folder)
        self.told: list[SyncOutcome] = []

    async def begin(self) -> Reconciled:
        first = await reconcile(self.source, SITE, "docs", self.log.opened, self.log.intake(), self.home)
        seen = self.source.seen
        assert seen is not None
        self.watch = Watch(self.source, SITE, "docs", self.log.intake(), seen, self.told.append)
        return first


@pytest.fixture
def watched(folder: Path, tmp_path: Path) -> Watched:
    return Watched(folder, tmp_path / "home")


CHANGES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "edit": (lambda f: put(f / "a.md", "# new"), {"en:a", "en:b", "en:sub/c"}),
    "add": (lambda f: put(f / "new.html"), {"en:a", "en:b", "en:sub/c", "en:new"}),
    "delete": (lambda f: (f / "a.md").unlink(), {"en:b", "en:sub/c"}),
    "rename": (lambda f: (f / "a.md").rename(f / "z.md"), {"en:z", "en:b", "en:sub/c"}),
    "move a folder": (lambda f: (f / "sub").rename(f / "moved"), {"en:a", "en:b", "en:moved/c"}),
    "replace": (lambda f: (f / "b.md").replace(f / "a.md"), {"en:a", "en:sub/c"}),
    "draft": (lambda f: put(f / "a.md", "---\ndraft: true\n---\n"), {"en:b", "en:sub/c"}),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
async def test_what_happens_in_the_folder_happens_in_the_log(
    folder: Path, watched: Watched, change: Callable[[Path], object], expected: set[str]
) -> None:
    for name in ("a.md", "b.md", "sub/c.md"):
        put(folder / name)
    await watched.begin()
    change(folder)
    await watched.watch.look()
    assert set(watched.log.titles()) == expected
    assert watched.log.lanes[-1] == "save"
    count = len(watched.log.changes)
    await watched.watch.look()
    assert len(watched.log.changes) == count


async def test_moved_away_and_back_it_is_there_again(folder: Path, watched: Watched) -> None:
    put(folder / "sub" / "c.md", "text")
    put(folder / "a.md")
    await watched.begin()
    for _ in range(3):  # the file in the folder keeps its time
        (folder / "sub").rename(folder.parent / "away")
        await watched.watch.look()
        assert set(watched.log.titles()) == {"en:a"}
        (folder.parent / "away").rename(folder / "sub")
        await watched.watch.look()
        assert set(watched.log.titles()) == {"en:a", "en:sub/c"}


async def test_moved_away_in_one_session_and_back_in_the_next(folder: Path, watched: Watched) -> None:
    put(folder / "sub" / "c.md", "text")
    put(folder / "a.md")
    await watched.begin()
    (folder / "sub").rename(folder.parent / "away")
    await watched.watch.look()
    await watched.begin()
    (folder.parent / "away").rename(folder / "sub")
    await watched.watch.look()
    assert set(watched.log.titles()) == {"en:a", "en:sub/c"}


async def test_without_a_broker_the_next_look_does_it(folder: Path, watched: Watched) -> None:
    put(folder / "a.md")
    put(folder / "b.md")
    await watched.begin()
    put(folder / "a.md", "---\ntitle: New\n---\n")
    (folder / "b.md").unlink()
    watched.log.refuse = lambda _: Retryable("no broker")
    with pytest.raises(Retryable):
        await watched.watch.look()
    watched.log.refuse = lambda _: None
    await watched.watch.look()
    assert watched.log.titles() == {"en:a": "New"}


async def test_a_disk_that_goes_takes_no_pages_along(folder: Path, watched: Watched) -> None:
    for number in range(30):
        put(folder / f"p{number}.md")
    await watched.begin()
    move(folder, folder.parent / "away")
    with pytest.raises(FolderGone):
        await watched.watch.look()
    put(folder / "x.css")  # an empty mount point
    await watched.watch.look()
    assert len(watched.log.titles()) == 30
    shutil.rmtree(folder)
    move(folder.parent / "away", folder)
    (folder / "p0.md").unlink()
    await watched.watch.look()
    assert len(watched.log.titles()) == 29


async def test_a_bad_file_is_told_once_while_it_is_watched(folder: Path, watched: Watched) -> None:
    put(folder / "a.md")
    await watched.begin()
    put(folder / "a.md", "---\ntitle: [\n---\n")
    await watched.watch.look()
    await watched.watch.look()
    assert [outcome.failed for outcome in watched.told] == [1]
    assert watched.log.titles() == {"en:a": "a"}


async def test_what_is_written_while_it_is_read_is_read_again(
    folder: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "a.md")
    await watched.begin()
    monkeypatch.setattr(source, "TICK", 60_000)
    put(folder / "a.md", "other")
    await watched.watch.look()
    count = len(watched.log.changes)
    await watched.watch.look()
    assert len(watched.log.changes) == count + 1
    monkeypatch.setattr(source, "TICK", -1_000)
    await watched.watch.look()
    await watched.watch.look()
    assert len(watched.log.changes) == count + 2
