"""Audit and repair on the real Kafka and Elasticsearch: what is planted is found and put right, live traffic is not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import RECEIPTS
from adapters.elastic.inventory import ElasticInventories, NoSuchIndex
from adapters.elastic.writer import Write
from adapters.kafka import KafkaSender, ensure_topics, prefixed
from adapters.kafka.scan import KafkaLogScan
from adapters.kafka.sender import Outgoing
from pipelines.ingest.accept import reference
from pipelines.ingest.index import index_part
from pipelines.operate.audit.repair import Auditor, LogLost
from pipelines.operate.audit.report import AuditReport
from pipelines.operate.site_log import site_log
from pipelines.runtime.indexes import IndexGone, IndexInfo, IndexUnfit
from pipelines.runtime.record import Record
from schemas.ingest import Failure, ReceiptEvent
from schemas.keys import chunk_id, head_id, page_key
from schemas.page import FieldName, Op, PageChange, PageDocument
from schemas.topics import CHANGES, all_topics
from tests.edge import until
from tests.engine_fixture import Servers
from tests.making import DIMS, NOON, parts_of
from tests.site_indexes import KINDS, delete, forget
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

MODEL, CHUNKER = "fake-4", "content-1000-20"


@dataclass
class Town:
    """A site with topics and an index of its own, and a pipeline that puts the one into the other."""

    settings: Settings
    site: str
    elastic: Elastic
    sender: KafkaSender
    seen: dict[int, int] = field(default_factory=dict)
    worked: int = 0  # changes

    @property
    def auditor(self) -> Auditor:
        elastic = self.elastic
        inventories = ElasticInventories(elastic.es, elastic.indexes, elastic.writer)
        return Auditor(self.log, inventories.of, elastic.pages, self.sender)

    def log(self, site: str) -> AbstractAsyncContextManager[KafkaLogScan]:
        return site_log(KafkaLogScan(self.settings, CHANGES), self.elastic.places, site)

    async def info(self) -> IndexInfo:
        info = await self.elastic.indexes.now(self.site)
        assert info is not None
        return info

    def key(self, page: str) -> str:
        return page_key(self.site, "en", page)

    def change(self, page: str, revision: int, op: Op = "upsert", chunks: int = 3) -> PageChange:
        text = "|".join(f"{page} {revision} {i}" for i in range(chunks))
        document = PageDocument(id=page, lang="en", title=page, content=text) if op == "upsert" else None
        return PageChange(
            op=op, site=self.site, lang="en", page_id=page, revision=revision, accepted_at=NOON, source="push",
            page=document,
        )  # fmt: skip

    async def save(self, *changes: PageChange) -> None:
        """Into the log, in this order."""
        await self.sender.send_many([Outgoing(CHANGES, change.page_key, change) for change in changes])

    async def work(self) -> None:
        """Put into the index what came into the log since the last time."""
        async with KafkaLogScan(self.settings, CHANGES) as scan:
            await self._work(scan)

    async def _work(self, scan: KafkaLogScan) -> None:
        ends = await scan.ends()
        async for batch in scan.read(since=self.seen, until=ends):
            pages: dict[bytes | None, list[Record]] = {}
            for record in batch:
                pages.setdefault(record.key, []).append(record)
            await asyncio.gather(*map(self._apply, pages.values()))
            self.worked += len(batch)
        self.seen = ends

    async def _apply(self, records: Sequence[Record]) -> None:
        for record in records:
            change = PageChange.decode(record.value)
            ref = reference(change, record.partition, record.offset)
            texts: dict[FieldName, list[str]] = {}
            if change.page:
                texts = {"title": [change.page.title], "content": change.page.content.split("|")}
            for part in parts_of(ref, texts, model=MODEL):
                await index_part(part, self.elastic.pages, lambda: NOON)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """The pipeline goes on by itself."""

        async def go_on() -> None:
            async with KafkaLogScan(self.settings, CHANGES) as scan:
                while True:
                    await self._work(scan)
                    await asyncio.sleep(0.02)

        task = asyncio.create_task(go_on())
        try:
            yield
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(ended, asyncio.CancelledError), ended

    async def plant(self, id: str, **fields: object) -> None:
        """Change a document behind the pipeline's back; an id that is not there yet becomes one."""
        info = await self.info()
        index = info.write_alias
        found = await self.elastic.es.options(ignore_status=404).get(index=index, id=id, source_exclude_vectors=False)
        document = (found.body.get("_source") or {"kind": "chunk", "text": "x"} | info.mark) | fields
        revision = document.get("revision", 1)
        assert isinstance(revision, int)
        version = max(found.body.get("_version", 1), revision)
        await self.elastic.writer.write([Write(index, id, version, document)])

    async def remove(self, *ids: str, revision: int) -> None:
        index = (await self.info()).write_alias
        await self.elastic.writer.write([Write(index, id, revision, None) for id in ids])

    async def audit(self) -> AuditReport:
        return await self.auditor.audit(self.site, settle=0)


@pytest.fixture(params=KINDS)
async def town(request: pytest.FixtureRequest, engine: Servers) -> AsyncIterator[Town]:
    site = f"t{uuid4().hex[:12]}"
    settings = Settings(
        kafka=engine.kafka,
        elasticsearch=engine.elasticsearch,
        topic_prefix=f"{site}.",
        partitions=3,
        sites={site: SiteSettings(index=request.param)},
    )
    await ensure_topics(engine.kafka, settings)
    async with Elastic(engine.elasticsearch, settings) as elastic, KafkaSender(settings) as sender:
        await elastic.indexes.ensure_system(RECEIPTS)
        await elastic.indexes.ensure(site, embedder="fake", model=MODEL, dims=DIMS, chunker=CHUNKER)
        yield Town(settings, site, elastic, sender)
        await forget(elastic, site)
    admin = AIOKafkaAdminClient(bootstrap_servers=engine.kafka)
    await admin.start()
    try:
        await admin.delete_topics([prefixed(settings, topic) for topic in all_topics()])
    finally:
        await admin.close()


LONG = "ä" * 256  # its key is 1,500 characters, its document ids are cut


async def test_what_the_pipeline_made_is_clean(town: Town) -> None:
    await town.save(
        *(town.change(page, 1) for page in ("a", "b", LONG)),
        town.change("a", 5, chunks=1),
        town.change("b", 7, "delete"),
        town.change("never", 1, "delete"),
        town.change("many", 3, chunks=700),
    )
    await town.work()
    report = await town.audit()
    assert (report.clean, report.chunks, report.unreadable) == (True, 2 + 4 + 701, 0)
    assert (report.pages, report.deleted) == (3, 2)
    assert report.pages == (await town.elastic.site_statuses([town.site]))[0].pages
    assert report.index == f"pagewire-{town.site}-000001"


async def test_what_is_planted_is_found_and_repaired(town: Town) -> None:
    names = ["chunk", "head", "old", "mixed", "model", "chunker", "over", "ghost", "late", LONG]
    await town.save(*(town.change(name, 5) for name in names), town.change("gone", 5, "delete"))
    await town.work()
    assert (await town.audit()).clean
    key = {name: town.key(name) for name in [*names, "gone", "nowhere"]}
    gone = [chunk_id(key["chunk"], "content", 1), head_id(key["head"]), chunk_id(key[LONG], "title", 0)]
    await town.remove(*gone, revision=5)
    await town.save(town.change("old", 6), town.change("ghost", 6, "delete"), town.change("late", 4))
    await town.plant(chunk_id(key["mixed"], "content", 2), revision=4)
    await town.plant(chunk_id(key["model"], "content", 0), model="another")
    await town.plant(chunk_id(key["chunker"], "content", 0), chunker="another")
    stray = {"field": "content", "model": MODEL, "chunker": CHUNKER, "revision": 3}
    await town.plant(chunk_id(key["over"], "content", 3), page_key=key["over"], ord=3, **stray)
    await town.plant(chunk_id(key["gone"], "content", 0), page_key=key["gone"], ord=0, **stray)
    await town.plant("copy", page_key=key["over"], ord=0, **stray)

    found = await town.audit()
    assert {(f.kind, f.page_key) for f in found.findings} == {
        ("missing", key["chunk"]),
        ("missing", key["head"]),
        ("missing", key[LONG]),
        ("orphan", key["head"]),
        ("stale", key["old"]),
        ("extra", key["ghost"]),
        ("log", key["late"]),
        ("mixed", key["mixed"]),
        ("fingerprint", key["model"]),
        ("fingerprint", key["chunker"]),
        ("orphan", key["over"]),
        ("orphan", key["gone"]),
    }
    async with town.at_work():
        done = await town.auditor.repair(town.site, settle=0)
    assert (done.after.clean, done.deleted) == (True, 3)
    assert (await town.audit()).clean


async def test_what_is_newer_than_the_log_needs_force_and_goes_up_not_down(town: Town) -> None:
    await town.save(town.change("a", 5), town.change("b", 5), town.change("c", 5))
    await town.work()
    (part,) = parts_of(reference(town.change("a", 9), 0, 0), {"content": ["from a log that is lost"]}, model=MODEL)
    await index_part(part, town.elastic.pages, lambda: NOON)
    await town.plant(chunk_id(town.key("b"), "content", 1), revision=8)
    (part,) = parts_of(reference(town.change("nowhere", 2), 0, 0), model=MODEL)
    await index_part(part, town.elastic.pages, lambda: NOON)
    async with town.at_work():
        left = await town.auditor.repair(town.site, settle=0)
        assert left.after.counts == {"ahead": 2, "extra": 1}
        assert (left.sent, left.deleted) == (0, 0)
        done = await town.auditor.repair(town.site, settle=0, force=True)
    assert done.after.clean
    heads = await town.elastic.pages.heads(town.site, map(town.key, ["a", "b", "c", "nowhere"]))
    assert {key: head.change.revision for key, head in heads.items()} == {
        town.key("a"): 10,
        town.key("b"): 9,
        town.key("c"): 5,
    }


async def test_a_lost_log_takes_no_page_away(town: Town) -> None:
    for i in range(25):
        (part,) = parts_of(reference(town.change(f"p{i}", 2), 0, 0), model=MODEL)
        await index_part(part, town.elastic.pages, lambda: NOON)
    await town.save(town.change("p0", 2))
    with pytest.raises(LogLost, match="24 of the 25"):
        await town.auditor.repair(town.site, settle=0)
    found = await town.audit()
    assert (found.pages, found.counts) == (25, {"extra": 24})


async def test_a_dead_letter_is_told_apart(town: Town) -> None:
    await town.save(town.change("a", 1))
    await town.work()
    failing = town.change("a", 2)
    await town.save(failing)
    event = ReceiptEvent(
        change=reference(failing, 0, 0), state="failed", at=NOON, error=Failure(stage="chunk", reason="no")
    )
    await town.elastic.pages.put_receipt(event)
    report = await town.audit()
    assert (report.clean, report.failed) == (True, 1)


async def test_unreadable_records_are_counted_and_repaired_over(town: Town) -> None:
    await town.save(town.change("a", 1), town.change("b", 1))
    await town.work()
    for value in (b"\xff\x00", b"{}", None):
        await town.sender.send_bytes(CHANGES, town.key("a").encode(), value, ())
    town.seen = {}  # this pipeline has no dead letters: begin behind them
    async with KafkaLogScan(town.settings, CHANGES) as scan:
        town.seen = await scan.ends()
    found = await town.audit()
    assert (found.unreadable, found.counts) == (3, {"log": 1})
    async with town.at_work():
        done = await town.auditor.repair(town.site, settle=0)
    assert (done.sent, done.after.clean, done.after.unreadable) == (1, True, 3)


async def test_live_traffic_is_no_drift(town: Town) -> None:
    """Pages are saved and deleted all the time, late ones among them; no audit ever complains."""
    random = Random(7)
    stop = asyncio.Event()
    saved = [312]

    async def traffic() -> None:
        revisions = dict.fromkeys((f"p{i}" for i in range(12)), 1)
        while not stop.is_set():
            page = random.choice(list(revisions))
            revisions[page] += 1
            op: Op = "delete" if random.random() < 0.3 else "upsert"
            await town.save(town.change(page, revisions[page], op, chunks=random.randrange(1, 9)))
            saved[0] += 1
            await until(lambda: saved[0] - town.worked < 6)

    await town.save(*(town.change(f"p{i}", 1) for i in range(12)), *(town.change(f"still{i}", 1) for i in range(300)))
    await town.work()
    async with town.at_work():
        task = asyncio.create_task(traffic())
        try:
            for _ in range(5):
                report = await town.auditor.audit(town.site, settle=60)
                assert report.clean, report.findings
        finally:
            stop.set()
            await task
    assert saved[0] > 330
    await town.work()
    assert (await town.audit()).clean


async def test_indexes_that_are_not_there(town: Town) -> None:
    with pytest.raises(NoSuchIndex, match=f"it has: pagewire-{town.site}-000001"):
        await town.auditor.audit(town.site, index=f"pagewire-{town.site}-000009")
    await town.save(town.change("a", 1))
    await town.work()
    other = ElasticInventories(town.elastic.es, town.elastic.indexes, town.elastic.writer)
    inventory = await other.of(town.site)
    assert inventory is not None
    await delete(town.elastic, await town.info())
    with pytest.raises(IndexGone, match="was deleted"):
        await anext(inventory.read())
    with pytest.raises(IndexGone):
        await inventory.count()
    event = ReceiptEvent(change=reference(town.change("a", 1), 0, 0), state="searchable", at=NOON)
    await town.elastic.pages.put_receipt(event)
    with pytest.raises(IndexUnfit, match="1 pages were in it"):
        await town.audit()


PEAK = """
import asyncio, json, sys
from pathlib import Path
from wiring.clients import Clients
from wiring.settings import Settings

async def main(site):
    async with Clients(Settings.model_validate_json(sys.argv[1])) as clients:
        report = await (await clients.auditor()).audit(site, settle=0)
    # Not getrusage: its figure outlives exec(), so it would be that of the tests, with all that they have loaded.
    [peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    print(json.dumps([report.chunks, report.clean, int(peak.split()[1])]))

asyncio.run(main(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a process's peak memory")
async def test_memory_does_not_grow_with_chunks(town: Town) -> None:
    few = await _peak(town, pages=range(50))
    many = await _peak(town, pages=range(50, 200))
    assert (few[:2], many[:2]) == ([5_000, True], [20_000, True])
    assert many[2] < 1.2 * few[2], "KiB, for four times the chunks"
    assert many[2] < 300 * 1024


async def _peak(town: Town, pages: Sequence[int]) -> list[int]:
    """Fill the index further, 100 chunks a page; chunks, clean, peak memory of an audit by a process of its own."""
    await town.save(*(town.change(f"p{i}", 1, chunks=1) for i in pages))
    info = await town.info()
    index = info.write_alias
    for i in pages:
        key = town.key(f"p{i}")
        shared = {"page_key": key, "page_id": f"p{i}", "lang": "en", "revision": 1, "text": "x"} | info.mark
        shared |= {"model": MODEL, "chunker": CHUNKER, "embedding": [0.1] * DIMS}
        chunks = [
            Write(index, chunk_id(key, "content", ord), 1, shared | {"kind": "chunk", "field": "content", "ord": ord})
            for ord in range(100)
        ]
        head = {"counts": {"content": 100}, "model": MODEL, "chunker": CHUNKER}
        document = {"kind": "head", "page_key": key, "revision": 1, "state": "live", "head": head} | info.mark
        await town.elastic.writer.write([*chunks, Write(index, head_id(key), 1, document)])
    settings = town.settings.model_dump_json(exclude_defaults=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PEAK, settings, town.site, stdout=subprocess.PIPE
    )
    said, _ = await asyncio.wait_for(process.communicate(), 240)
    found: list[int] = json.loads(said)
    return found
