"""What the ingest stages do only because of how they are put together: order, time limits, urgency, an end."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from adapters.elastic.bundle import Elastic
from adapters.embedders.base import Vectors
from adapters.embedders.registry import Models
from pipelines.ingest.handlers import chunked
from pipelines.runtime.record import Headers, Lane, Record
from pipelines.runtime.stage import Stage
from schemas.ingest import Chunker
from schemas.page import Attachment, PageChange, PageDocument
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, Topic
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakePages, FakeSender
from tests.making import NOON
from wiring import ingest
from wiring.settings import Settings
from worker.guard import Guard, RetryPolicy
from worker.in_flight import InFlight, RecordInFlight

SETTINGS = Settings(kafka="127.0.0.1:9", elasticsearch="http://127.0.0.1:9")
TRY_TIMEOUT = 0.05  # seconds, of stages without a limit of their own
LONGER = 4 * TRY_TIMEOUT


def saved(*attachments: Attachment) -> PageChange:
    page = PageDocument(id="fees", lang="en", name="fees", content="<p>Free.</p>", attachments=attachments)
    return PageChange(
        op="upsert", site="town", lang="en", page_id="fees", revision=5, accepted_at=NOON, source="push", page=page
    )


def record(topic: Topic, value: bytes) -> Record:
    return Record(topic.name, 0, 9, b"town:en:fees", value)


CHANGED = record(CHANGES, saved().encode())
CHUNKED = record(CHUNKS, chunked(saved(), Chunker(mode="content", size=1000, overlap=0.2), 0, 9).encode())


class FakeElastic:
    """Elasticsearch without an index of the site; `seconds`: until it says so."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.pages = FakePages()
        self.indexes = SimpleNamespace(now=self._now)
        self._seconds = seconds

    async def _now(self, site: str) -> None:
        await asyncio.sleep(self._seconds)


class FakeModels(FakeEmbedder):
    """One model for all sites; notes how urgent each call was."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.urgent: list[bool] = []
        self._seconds = seconds

    async def for_new(self, site: str) -> FakeEmbedder:
        return self

    async def warm(self) -> None: ...

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        self.urgent.append(urgent)
        await asyncio.sleep(self._seconds)
        return await super().passages(texts, urgent=urgent)


def embed_stage(models: FakeModels, lane: Lane = "save") -> Stage:
    return ingest.embed_stage(cast(Elastic, FakeElastic()), cast(Models, models), lane)


class Bus(FakeSender):
    """What a worker sends through; `topics`: of all that was sent, dead letters too."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: list[Topic] = []

    async def send(self, topic: Topic, key: str, message: Any, **options: Any) -> None:
        self.topics.append(topic)

    async def send_bytes(self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self.topics.append(topic)


async def worked_on(stage: Stage, topic: Topic, given: Record) -> list[Topic]:
    """Topics of what was sent until a worker was done with this record."""
    bus = Bus()
    stage = replace(stage, on_dead=None)
    await Guard(stage, topic, stage.routes[topic], bus, RetryPolicy(1, 0.0), TRY_TIMEOUT)(RecordInFlight(given, b""))
    return bus.topics


async def test_the_parts_of_a_page_are_indexed_one_after_the_other_and_pages_side_by_side() -> None:
    """Side by side, a page's last part could be searchable, and its receipt sent, before its first."""
    begun: list[bytes | None] = []
    ended: list[bytes | None] = []
    may_end = asyncio.Event()
    all_ended = asyncio.Event()

    async def work(work: RecordInFlight) -> None:
        begun.append(work.record.key)
        await may_end.wait()

    def finished(record: Record) -> None:
        ended.append(record.key)
        if len(ended) == 4:
            all_ended.set()

    async with Elastic("http://127.0.0.1:9", SETTINGS) as elastic:
        stage = ingest.index_stage(SETTINGS, elastic)
    failures: list[BaseException] = []
    in_flight = InFlight(window=16, order_key=stage.order_key, work=work, finished=finished, failed=failures.append)
    for offset, key in enumerate([b"town:en:fees#0", b"town:en:fees#1", b"town:en:pool#0", b"town:en:fees#2"]):
        in_flight.put(Record("ingest.embeddings", 0, offset, key, b""))
    await asyncio.sleep(0.01)
    assert begun == [b"town:en:fees#0", b"town:en:pool#0"]
    may_end.set()
    async with asyncio.timeout(5):
        await all_ended.wait()
    assert [key for key in ended if key and b"fees" in key] == [b"town:en:fees#0", b"town:en:fees#1", b"town:en:fees#2"]
    assert failures == []


async def test_a_large_page_has_more_time_than_other_messages() -> None:
    assert await worked_on(embed_stage(FakeModels(LONGER)), CHUNKS, CHUNKED) == [EMBEDDINGS]
    slow = ingest.chunk_stage(SETTINGS, cast(Elastic, FakeElastic(LONGER)), ingest.attachments_of(SETTINGS))
    assert await worked_on(slow, CHANGES, CHANGED) == [CHUNKS]
    assert slow.teardown
    await slow.teardown()


@pytest.mark.parametrize(("lane", "urgent"), [("save", True), ("bulk", False)])
async def test_an_editors_save_goes_before_imports_at_the_model(lane: Lane, urgent: bool) -> None:
    models = FakeModels()
    await embed_stage(models, lane).routes[CHUNKS](CHUNKED, FakeSender())
    assert set(models.urgent) == {urgent}


def readers() -> list[psutil.Process]:
    """Processes of ours that read attachments."""
    return [child for child in psutil.Process().children() if "adapters.extraction.child" in child.cmdline()]


async def test_what_read_attachments_ends_with_its_stage() -> None:
    text = Attachment(title="Rules", media_type="text/plain", data_base64=b64encode(b"No dogs.").decode())
    stage = ingest.chunk_stage(SETTINGS, cast(Elastic, FakeElastic()), ingest.attachments_of(SETTINGS))
    sender = FakeSender()
    await stage.routes[CHANGES](record(CHANGES, saved(text).encode()), sender)
    assert b"No dogs." in sender.sent[0].message.encode()
    [reader] = readers()
    try:
        assert stage.teardown
        await stage.teardown()
        assert readers() == []
    finally:
        if reader.is_running():
            reader.kill()
