"""Import: interrupted, it goes on where it stopped; nothing is left out, whatever changed meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.ingest import importing as module
from pipelines.ingest.accept import Acceptance, Change
from pipelines.ingest.importing import Cursor, ImportProgress, forget_all, send, settle
from pipelines.runtime.errors import Retryable, TooLarge
from pipelines.runtime.record import Lane
from schemas.ingest import ChunkCounts, Receipt
from schemas.page import Attachment, PageDocument
from tests.making import NOON


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)


class FakeIntake:
    """Accepts in batches; breaks down at a batch, if told."""

    def __init__(self, fails_at: int = 0, superseded: Iterable[str] = ()) -> None:
        self.batches: list[list[str]] = []
        self._fails_at = fails_at
        self._superseded = set(superseded)

    async def accept(self, site: str, changes: Sequence[Change], source: str, lane: Lane = "save") -> list[Acceptance]:
        assert (site, source, lane) == ("town", "import", "bulk")
        assert {c.op for c in changes} == {"upsert"}
        if len(self.batches) + 1 == self._fails_at:
            raise Retryable("no broker")
        self.batches.append([c.page.id for c in changes])
        return [Acceptance(f"town:en:{c.page.id}", 7, NOON, c.page.id in self._superseded) for c in changes]


def pages(ids: str) -> list[PageDocument]:
    return [PageDocument(id=id) for id in ids]


def nowhere(progress: ImportProgress) -> None: ...


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "pages.ndjson"
    file.write_text("one\n")
    return file


@pytest.fixture
def cursor(tmp_path: Path, source: Path) -> Callable[[], Cursor]:
    """What each run of the command makes."""
    return lambda: Cursor(tmp_path / "home", "town", source)


async def test_pages_go_through_the_door_in_batches_with_progress() -> None:
    intake = FakeIntake(superseded="c")
    seen: list[tuple[int, int]] = []
    revisions = await send("town", pages("abcde"), intake, None, lambda p: seen.append((p.sent, p.superseded)), {})
    assert intake.batches == [["a", "b"], ["c", "d"], ["e"]]
    assert revisions == {f"town:en:{id}": 7 for id in "abde"}
    assert seen == [(2, 0), (4, 1), (5, 1)]


async def test_heavy_pages_go_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 100)
    monkeypatch.setattr(module, "BATCH_BYTES", 1000)
    attached = (Attachment(data_base64="x" * 600),)
    light, heavy = PageDocument(id="l"), PageDocument(id="h", content="x" * 600)
    intake = FakeIntake()
    await send(
        "town", [light, heavy, light, PageDocument(id="a", attachments=attached), light], intake, None, nowhere, {}
    )
    assert intake.batches == [["l", "h", "l", "a"], ["l"]]


async def test_a_page_that_the_intake_refuses_is_named_and_stops_no_other() -> None:
    class Picky(FakeIntake):
        async def accept(
            self, site: str, changes: Sequence[Change], source: str, lane: Lane = "save"
        ) -> list[Acceptance]:
            if any(change.page.id == "b" for change in changes):
                raise TooLarge("content of page 'b' is 5,000,000 bytes")
            return await super().accept(site, changes, source, lane)

    failed: dict[str, str] = {}
    revisions = await send("town", pages("abcd"), Picky(), None, nowhere, failed)
    assert list(revisions) == ["town:en:a", "town:en:c", "town:en:d"]
    assert failed == {"b": "content of page 'b' is 5,000,000 bytes"}


async def test_an_interrupted_import_goes_on_after_the_last_batch_the_broker_has(
    cursor: Callable[[], Cursor],
) -> None:
    with pytest.raises(Retryable):
        await send("town", pages("abcde"), FakeIntake(fails_at=2), cursor(), nowhere, {})
    assert cursor().read() == 2
    intake = FakeIntake()
    seen: list[int] = []
    await send("town", pages("abcde"), intake, cursor(), lambda p: seen.append(p.sent), {})
    assert intake.batches == [["c", "d"], ["e"]]
    assert seen == [4, 5]


async def test_a_finished_import_begins_at_the_start_when_repeated(cursor: Callable[[], Cursor]) -> None:
    for _ in range(2):
        intake = FakeIntake()
        await send("town", pages("abc"), intake, cursor(), nowhere, {})
        assert intake.batches == [["a", "b"], ["c"]]


def test_another_site_file_or_content_has_a_cursor_of_its_own(tmp_path: Path, source: Path) -> None:
    home = tmp_path / "home"
    Cursor(home, "town", source).write(5)
    assert Cursor(home, "town", source).read() == 5
    assert Cursor(home, "village", source).read() == 0
    other = tmp_path / "other.ndjson"
    other.write_bytes(source.read_bytes())
    assert Cursor(home, "town", other).read() == 0
    source.write_text("one\ntwo\n")
    assert Cursor(home, "town", source).read() == 0


def test_a_source_is_the_same_however_it_is_named(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cursor(tmp_path, "town", source).write(5)
    monkeypatch.chdir(source.parent)
    assert Cursor(tmp_path, "town", Path(source.name)).read() == 5


@pytest.mark.parametrize("change", ["edited", "added", "removed", "renamed"])
def test_a_folder_in_which_a_file_changed_begins_at_the_start(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "pages"
    (folder / "deep").mkdir(parents=True)
    page, other = folder / "deep" / "a.md", folder / "deep" / "b.md"
    page.write_text("old")
    other.write_text("other")
    os.utime(page, ns=(1, 1))
    Cursor(tmp_path / "home", "town", folder).write(5)
    assert Cursor(tmp_path / "home", "town", folder).read() == 5
    match change:
        case "edited":
            page.write_text("new")  # as long as before
        case "added":
            (folder / "c.md").write_text("")
        case "removed":
            other.unlink()
        case "renamed":
            other.rename(folder / "deep" / "c.md")
    assert Cursor(tmp_path / "home", "town", folder).read() == 0


def test_a_folder_with_a_link_to_nowhere_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.md").symlink_to(tmp_path / "gone")
    assert Cursor(tmp_path / "home", "town", tmp_path / "pages").read() == 0


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"accepted": null}', b'{"accepted": "x"}', b"\xff"])
def test_a_cursor_that_cannot_be_read_begins_at_the_start(
    tmp_path: Path, cursor: Callable[[], Cursor], content: bytes
) -> None:
    cursor().write(5)
    [file] = (tmp_path / "home" / "imports").iterdir()
    file.write_bytes(content)
    assert cursor().read() == 0


def test_with_the_log_gone_all_cursors_go(tmp_path: Path, cursor: Callable[[], Cursor]) -> None:
    cursor().write(5)
    forget_all(tmp_path / "home")
    assert cursor().read() == 0
    forget_all(tmp_path / "home")


class FakeReceipts:
    """What is known at each look."""

    def __init__(self, *looks: Mapping[str, tuple[int, Any]]) -> None:
        self._looks = list(looks)
        self.asked: list[list[str]] = []

    async def receipts(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Receipt]:
        keys = list(page_keys)
        self.asked.append(keys)
        known = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        return {key: _receipt(key, *known[key]) for key in keys if key in known}


def _receipt(key: str, revision: int, state: Any) -> Receipt:
    return Receipt(
        page_key=key,
        accepted_revision=revision,
        searchable_revision=None,
        state=state,
        chunks=ChunkCounts(),
        accepted_at=NOON,
        searchable_at=None,
        lag_ms=None,
        error="index: refused" if state == "failed" else None,
    )


class News(set[str]):
    """What is heard before each look: the first batch is there at once, one more after every look."""

    def __init__(self, *batches: str) -> None:
        super().__init__(batches[0] if batches else "")
        self._batches = list(batches[1:])

    def clear(self) -> None:
        super().clear()
        self.update(self._batches.pop(0) if self._batches else "")


async def settled(receipts: FakeReceipts, heard: set[str], **revisions: int) -> list[tuple[int, int, list[str]]]:
    return [
        (progress.searchable, progress.failed, list(failures))
        async for progress, failures in settle("town", revisions, receipts, heard)
    ]


async def test_settling_ends_when_every_page_is_searchable_or_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 0)
    receipts = FakeReceipts(
        {"a": (7, "searchable"), "b": (7, "queued"), "c": (6, "searchable")},  # d: nothing known yet
        {"b": (7, "failed"), "c": (6, "failed"), "d": (8, "deleted")},  # d: somebody deleted it meanwhile
        {"c": (7, "searchable")},
    )
    heard = News("abcd", "bcd", "c")
    assert await settled(receipts, heard, a=7, b=7, c=7, d=7) == [(1, 0, []), (2, 1, ["b"]), (3, 1, ["b"])]
    assert receipts.asked == [["a", "b", "c", "d"], ["b", "c", "d"], ["c"]]


async def test_pages_that_are_not_whole_are_told_beside_those_that_failed() -> None:
    class Lacking(FakeReceipts):
        async def receipts(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Receipt]:
            found = await super().receipts(site, page_keys)
            lacking = {"b": ("fees.pdf is not searchable: it holds no text (a scan?)",)}
            return {key: one.model_copy(update={"notes": lacking.get(key, ())}) for key, one in found.items()}

    receipts = Lacking(dict.fromkeys("ab", (7, "searchable")))
    assert await settled(receipts, News("ab"), a=7, b=7) == [(2, 0, ["b"])]


async def test_only_pages_with_news_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 0)
    receipts = FakeReceipts(dict.fromkeys("abc", (7, "searchable")))
    heard = News("b", "", "bxy", "ca")  # b again: it is settled; x and y: others' pages
    assert await settled(receipts, heard, a=7, b=7, c=7) == [(1, 0, []), (1, 0, []), (1, 0, []), (3, 0, [])]
    assert receipts.asked == [["b"], ["a", "c"]]


async def test_in_silence_all_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 0)
    monkeypatch.setattr(module, "SILENCE", 0.05)
    receipts = FakeReceipts({"a": (7, "searchable")}, {}, {"b": (7, "searchable")})
    looks = await settled(receipts, News("a"), a=7, b=7)
    assert receipts.asked == [["a"], ["b"], ["b"]]
    assert len(looks) > 10
    assert looks[-1] == (2, 0, [])


async def test_many_pages_are_looked_at_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK", 2)
    receipts = FakeReceipts(dict.fromkeys("abcde", (7, "searchable")))
    assert await settled(receipts, News("abcde"), a=7, b=7, c=7, d=7, e=7) == [(5, 0, [])]
    assert receipts.asked == [["a", "b"], ["c", "d"], ["e"]]


async def test_nothing_sent_is_settled_at_once() -> None:
    assert await settled(FakeReceipts({}), News()) == []
