"""The audit over a log and an index that are plain to see: under way, failed, promoted, repaired, refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pipelines.ingest.accept import newer, reference
from pipelines.ingest.ports import KnownPages
from pipelines.operate.audit import audit as audit_module
from pipelines.operate.audit import repair as repair_module
from pipelines.operate.audit.audit import Audit, AuditProgress, AuditStopped, Inventory, OpenLog
from pipelines.operate.audit.index_diff import ChunkDocument, HeadDocument, IndexDiff, Winner, WrongDocument
from pipelines.operate.audit.repair import Auditor, AuditRunning, LogLost, stretches
from pipelines.operate.audit.report import AuditReport
from pipelines.runtime.record import Headers, Record
from schemas.base import MAX_REVISION
from schemas.ingest import Failure, ReceiptEvent
from schemas.keys import chunk_id, head_id
from schemas.page import PageChange
from schemas.topics import Topic
from tests.index_diffs import SITE, World, changed, key_of, record
from tests.making import NOON


async def audit(
    site: str, *, index: Inventory | None, open_log: OpenLog, receipts: KnownPages, settle: float
) -> AuditReport:
    async with Audit(site, index, open_log, receipts, lambda _: None) as one:
        return await one.run(settle)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "POLL", 0.01)
    monkeypatch.setattr(repair_module, "PATIENCE", 0.05)


@dataclass
class Town:
    """One site: its log, its live index, a pipeline that works when told to, receipts."""

    world: World
    name: str = "pagewire-town-000001"
    model: str = "m"
    chunker: str = "c"
    receipts_: dict[str, ReceiptEvent] = field(default_factory=dict)
    # Done before the 1st, 2nd, ... read of the index, ...
    at_read: list[Callable[[], None]] = field(default_factory=list)
    at_lookup: list[Callable[[], None]] = field(default_factory=list)  # ... or look for the live one.
    works: bool = True
    reads: int = 0

    async def send_bytes(self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        assert headers[-1] == ("pagewire-lane", b"bulk")
        self.world.log.append(Record(topic.name, 0, len(self.world.log), key, value, headers))
        change = PageChange.decode(value)
        head = self.world.heads.get(head_id(change.page_key))
        if self.works and (head is None or (change.revision, change.op == "delete") >= (head.revision, head.deleted)):
            left = {id: c for id, c in self.world.chunks.items() if c.page_key == change.page_key}
            self.world.show(change)
            self.world.chunks = left | self.world.chunks if head is None else self.world.chunks

    async def of(self, site: str, name: str | None = None) -> Index:
        if self.at_lookup:
            self.at_lookup.pop(0)()
        return Index(self, name or self.name)

    async def receipts(self, page_keys: Iterable[str]) -> dict[str, ReceiptEvent]:
        return {key: self.receipts_[key] for key in page_keys if key in self.receipts_}

    def failed(self, change: PageChange) -> None:
        self.receipts_[change.page_key] = ReceiptEvent(
            change=reference(change, 0, 0), state="failed", at=NOON, error=Failure(stage="chunk", reason="no")
        )

    def auditor(self) -> Auditor:
        return Auditor(lambda _: Scan(self), self.of, self, self)


@dataclass
class Scan:
    """The log as an audit reads it."""

    town: Town

    async def __aenter__(self) -> Scan:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def begins(self) -> dict[int, int]:
        return {0: 0}

    async def ends(self) -> dict[int, int]:
        return {0: len(self.town.world.log)}

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncIterator[list[Record]]:
        for at in range((since or {}).get(0, 0), until[0], 2):
            yield self.town.world.log[at : min(at + 2, until[0])]


@dataclass
class Index:
    town: Town
    name: str

    @property
    def model(self) -> str:
        return self.town.model

    @property
    def chunker(self) -> str:
        return self.town.chunker

    async def count(self) -> int:
        return len(self.town.world.heads) + len(self.town.world.chunks)

    async def read(
        self, page_keys: Sequence[str] | None = None
    ) -> AsyncGenerator[tuple[list[HeadDocument], list[ChunkDocument]], None]:
        town = self.town
        if town.reads < len(town.at_read):
            town.at_read[town.reads]()
        town.reads += 1
        wanted = None if page_keys is None else set(page_keys)
        yield [h for h in town.world.heads.values() if wanted is None or h.page_key in wanted], []
        yield [], [c for c in town.world.chunks.values() if wanted is None or c.page_key in wanted]

    async def delete(self, documents: Sequence[WrongDocument]) -> None:
        for one in documents:
            for kept in (self.town.world.chunks, self.town.world.heads):
                if (found := kept.get(one.id)) and found.version <= one.version:
                    del kept[one.id]


def nothing() -> None:
    pass


async def test_a_clean_site_is_read_once_and_the_progress_is_told() -> None:
    town = Town(World.of(changed("a", 2), changed("b", 1), changed("b", 3, deleted=True)))
    told: list[AuditProgress] = []
    report = await town.auditor().audit(SITE, report=told.append)
    assert (report.clean, report.pages, report.deleted, report.findings) == (True, 1, 1, ())
    assert report.chunks == len(town.world.chunks)
    assert report.index == "pagewire-town-000001"
    assert town.reads == 1
    assert [told[i] for i in (0, 1, 2, -1)] == [
        AuditProgress("log", 2, 3),
        AuditProgress("log", 3, 3),
        AuditProgress("log", 3, 3),
        AuditProgress("index", len(town.world.chunks) + 2, len(town.world.chunks) + 2),
    ]
    assert report.model_dump()["clean"] is True


async def test_a_save_under_way_is_waited_for() -> None:
    world = World.of(changed("a", 2))
    world.log.append(record(1, changed("a", 3)))
    town = Town(world, at_read=[nothing, nothing, lambda: world.show(changed("a", 3))])
    assert (await town.auditor().audit(SITE, settle=60)).clean
    assert town.reads == 3


async def test_a_page_saved_all_the_time_is_no_finding() -> None:
    """The index is always one save behind, and never behind where it was when the audit began."""
    world = World.of(changed("a", 2))
    world.log.append(record(1, changed("a", 3)))
    save = iter(range(3, 50))

    def saved() -> None:
        revision = next(save)
        world.show(changed("a", revision))
        world.log.append(record(len(world.log), changed("a", revision + 1)))

    town = Town(world, at_read=[nothing, saved, saved, saved])
    assert (await town.auditor().audit(SITE, settle=0)).clean
    assert town.reads == 2


async def test_a_save_that_is_in_the_index_before_the_audit_saw_it_in_the_log_is_no_finding() -> None:
    world = World.of(changed("a", 2))

    def saved() -> None:
        world.log.append(record(len(world.log), changed("b", 1)))
        world.show(changed("b", 1))

    town = Town(world, at_read=[saved])
    assert (await town.auditor().audit(SITE, settle=0)).clean
    assert town.reads == 1


async def test_what_still_differs_after_settling_is_told_in_words() -> None:
    world = World.of(changed("a", 2), changed("b", 2), changed("c", 2))
    world.log.append(record(3, changed("a", 3)))
    chunk = world.chunks[chunk_id(key_of("b"), "title", 0)]
    world.put(chunk._replace(revision=1))
    town = Town(world)
    report = await town.auditor().audit(SITE, settle=0)
    assert town.reads == 2
    assert report.counts == {"stale": 1, "mixed": 1}
    assert [(f.kind, f.page_key, f.revision_expected, f.revision_found) for f in report.findings] == [
        ("stale", key_of("a"), 3, 2),
        ("mixed", key_of("b"), 2, 1),
    ]
    assert report.findings[0].detail == "the index has revision 2, the log 3"
    assert "such as title#0" in report.findings[1].detail


async def test_only_the_first_findings_are_told_but_all_are_counted() -> None:
    town = Town(World.of(*(changed(f"p{i:04}", 1) for i in range(audit_module.LOOK + 50))))
    town.world.heads.clear()
    town.world.chunks.clear()
    report = await audit(SITE, index=await town.of(SITE), open_log=lambda: Scan(town), receipts=town, settle=0)
    assert report.counts == {"missing": audit_module.LOOK + 50}
    assert len(report.findings) == audit_module.KEPT
    assert report.findings[0].page_key == key_of("p0000")


async def test_a_change_that_became_a_dead_letter_is_no_drift_and_is_not_waited_for() -> None:
    world = World.of(changed("a", 2), changed("b", 2))
    world.log += [record(2, changed("a", 3)), record(3, changed("b", 3)), record(4, changed("c", 1))]
    town = Town(world)
    town.failed(changed("a", 3))
    town.failed(changed("c", 1))
    town.failed(changed("b", 2))  # not the change that is missing
    report = await town.auditor().audit(SITE, settle=0)
    assert (report.counts, report.failed) == ({"stale": 1}, 2)
    town.failed(changed("b", 3))
    town.reads = 0
    report = await town.auditor().audit(SITE, settle=600)
    assert (report.clean, report.failed, town.reads) == (True, 3, 1)


async def test_a_site_that_never_had_an_index_misses_what_its_log_has() -> None:
    town = Town(World.of(changed("a", 2)))
    report = await audit(SITE, index=None, open_log=lambda: Scan(town), receipts=town, settle=0)
    assert (report.index, report.counts) == (None, {"missing": 1})


async def test_an_index_that_was_replaced_meanwhile_does_not_count() -> None:
    town = Town(World.of(changed("a", 2)))
    perfect = dict(town.world.heads)
    town.world.heads.clear()

    def promoted() -> None:
        town.name = "pagewire-town-000002"
        town.world.heads.update(perfect)

    town.at_lookup = [nothing, promoted]
    report = await town.auditor().audit(SITE, settle=0)
    assert (report.index, report.clean) == ("pagewire-town-000002", True)
    # An index that was asked for by name is told as it is.
    town.world.heads.clear()
    report = await town.auditor().audit(SITE, index="pagewire-town-000001", settle=0)
    assert (report.index, report.clean) == ("pagewire-town-000001", False)


async def test_a_full_disk_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    town = Town(World.of(changed("a", 2)))

    def full(self: IndexDiff, records: Iterable[Record]) -> None:
        self._db.execute("PRAGMA max_page_count = 1")
        self._db.execute("CREATE TABLE more (x)")

    monkeypatch.setattr(IndexDiff, "add_records", full)
    with pytest.raises(AuditStopped, match=r"database or disk is full.*TMPDIR"):
        await town.auditor().audit(SITE)


# Repair


async def test_repair_sends_the_logs_change_again_and_clears_what_belongs_to_nothing() -> None:
    world = World.of(*(changed(name, 3) for name in "abcdefgh"), changed("gone", 4, deleted=True))
    del world.heads[head_id(key_of("a"))]
    world.put(world.chunks[chunk_id(key_of("b"), "title", 0)]._replace(revision=1))
    world.put(world.chunks[chunk_id(key_of("c"), "title", 0)]._replace(model="another"))
    del world.chunks[chunk_id(key_of("d"), "title", 0)]
    world.log.append(record(len(world.log), changed("e", 2)))
    world.log.append(record(len(world.log), changed("f", 5, deleted=True)))
    for page in ("a", "g", "gone"):
        key = key_of(page)
        world.put(ChunkDocument(chunk_id(key, "content", 9), 2, key, 2, "content", 9, "m", "c"))
    town = Town(world)
    before_f = len(world.log)
    report = await town.auditor().repair(SITE, settle=0)
    assert report.before.counts == {
        "missing": 2, "mixed": 1, "fingerprint": 1, "log": 1, "extra": 1, "orphan": 3,
    }  # fmt: skip
    assert report.after.clean
    assert sorted(r.key.decode() for r in world.log[before_f:] if r.key) == [key_of(name) for name in "abcdef"]
    assert (report.sent, report.deleted) == (6, 3)


async def test_a_repair_without_a_worker_ends_and_says_what_is_left() -> None:
    town = Town(World.of(changed("a", 3)), works=False)
    town.world.heads.clear()
    report = await town.auditor().repair(SITE, settle=0)
    assert report.after.counts == {"missing": 1, "orphan": 1}
    assert report.sent == 2


async def test_what_the_index_refuses_at_first_is_sent_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Elasticsearch does for a minute, where a document was deleted by hand."""
    town = Town(World.of(changed("a", 3)), works=False)
    del town.world.chunks[chunk_id(key_of("a"), "title", 0)]
    send = town.send_bytes

    async def refused_at_first(*message: Any) -> None:
        await send(*message)
        town.works = True

    monkeypatch.setattr(town, "send_bytes", refused_at_first)
    report = await town.auditor().repair(SITE, settle=0)
    assert report.after.clean
    assert report.sent == 2


async def test_what_only_a_wrong_log_could_explain_is_left_alone_without_force() -> None:
    world = World.of(changed("a", 3), changed("b", 3), changed("c", 3))
    world.show(changed("a", 7))
    world.put(world.chunks[chunk_id(key_of("b"), "title", 0)]._replace(revision=9))
    world.show(changed("nowhere", 5))
    town = Town(world)
    before = len(world.log)
    report = await town.auditor().repair(SITE, settle=0)
    assert report.after.counts == report.before.counts == {"ahead": 2, "extra": 1}
    assert (report.sent, report.deleted, len(world.log)) == (0, 0, before)

    report = await town.auditor().repair(SITE, settle=0, force=True)
    assert report.after.clean
    assert report.sent == 2
    sent = [PageChange.decode(r.value) for r in world.log[before:]]
    assert {(c.page_id, c.revision) for c in sent} == {("a", 8), ("b", 10)}
    assert all(newer(c, changed(c.page_id, 9 if c.page_id == "b" else 7, deleted=True)) for c in sent)
    assert head_id(key_of("nowhere")) not in world.heads


@pytest.mark.parametrize("force", [False, True])
async def test_a_delete_that_the_log_has_lost_is_put_back_unless_the_log_is_to_win(force: bool) -> None:
    world = World.of(changed("a", 3))
    world.show(changed("a", 7, deleted=True))
    town = Town(world)
    report = await town.auditor().repair(SITE, settle=0, force=force)
    assert report.before.findings[0].detail.startswith("deleted by revision 7, but the log has only revision 3")
    assert (report.sent, report.after.clean) == (1, True)
    top = PageChange.decode(world.log[-1].value)
    assert (top.revision, top.op) == ((8, "upsert") if force else (7, "delete"))


async def test_nothing_comes_after_the_highest_revision() -> None:
    world = World.of(changed("a", 3))
    world.show(changed("a", MAX_REVISION))
    town = Town(world)
    assert (await town.auditor().repair(SITE, settle=0, force=True)).after.clean
    assert PageChange.decode(world.log[-1].value).revision == MAX_REVISION


@pytest.mark.parametrize("deletes", [False, True], ids=["log lost", "mass delete"])
async def test_much_of_a_site_does_not_vanish_without_force(deletes: bool) -> None:
    pages = [changed(f"p{i}", 2) for i in range(repair_module.FEW + 1)]
    world = World.of(*pages, changed("kept", 1))
    if deletes:
        world.log += [record(len(pages) + 1 + i, changed(f"p{i}", 3, deleted=True)) for i in range(len(pages))]
    else:
        world.log = [replace(world.log[-1], offset=0)]
    world.put(ChunkDocument(chunk_id(key_of("kept"), "content", 9), 1, key_of("kept"), 1, "content", 9, "m", "c"))
    town = Town(world)
    before = (list(world.log), dict(world.chunks), dict(world.heads))
    with pytest.raises(LogLost, match=r"21 of the 22 pages.*cms.changes.*nothing was changed"):
        await town.auditor().repair(SITE, settle=0)
    assert (world.log, world.chunks, world.heads) == before
    assert (await town.auditor().repair(SITE, settle=0, force=True)).after.clean
    assert {c.page_key for c in world.chunks.values()} == {key_of("kept")}


async def test_a_few_deletes_are_repaired() -> None:
    pages = [changed(f"p{i}", 2) for i in range(repair_module.FEW)]
    world = World.of(*pages)
    world.log += [record(len(pages) + i, changed(f"p{i}", 3, deleted=True)) for i in range(len(pages))]
    assert (await Town(world).auditor().repair(SITE, settle=0)).after.clean


async def test_one_audit_of_a_site_at_a_time() -> None:
    town = Town(World.of(changed("a", 2)))
    auditor = town.auditor()
    asked: list[str] = []

    class Meanwhile:
        async def receipts(self, page_keys: Iterable[str]) -> dict[str, ReceiptEvent]:
            with pytest.raises(AuditRunning):
                await auditor.audit(SITE)
            await auditor.audit("other", settle=0)
            asked.extend(page_keys)
            return {}

    auditor = Auditor(lambda _: Scan(town), town.of, Meanwhile(), town)
    town.world.heads.clear()
    await auditor.audit(SITE, settle=0)
    assert asked == [key_of("a")] * 2
    town.world.show(changed("a", 2))
    assert (await auditor.audit(SITE, settle=0)).clean


async def test_a_record_that_is_another_one_by_now_is_not_sent() -> None:
    town = Town(World.of(changed("a", 3)), works=False)
    town.world.heads.clear()
    town.world.chunks.clear()
    town.at_read = [nothing, lambda: town.world.log.__setitem__(0, record(0, changed("b", 9)))]
    report = await town.auditor().repair(SITE, settle=0)
    assert report.sent == 0


def test_what_stands_close_together_is_read_in_one_go() -> None:
    def at(partition: int, offset: int) -> Winner:
        return Winner("k", partition, offset, 1, None)

    gap = repair_module.GAP
    winners = [at(0, 1), at(0, 1 + gap), at(0, 2 + 2 * gap), at(1, 0)]
    assert list(stretches(winners)) == [winners[:2], winners[2:3], winners[3:]]
    assert list(stretches([])) == []
