"""A model that is busy with many large pages buries none of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pytest
from more_itertools import batched

from pipelines.ingest import embed, handlers
from pipelines.ingest.embed import Embedding
from pipelines.ingest.ports import KnownPages
from pipelines.runtime.dead_letters import from_headers
from pipelines.runtime.embedder import Embedders
from pipelines.runtime.record import Headers, Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Stage
from pipelines.runtime.try_limit import TryQueue
from schemas.ingest import Chunk, Chunker, PageChunks
from schemas.page import ChangeRef, PageMeta
from schemas.topics import CHUNKS, Topic
from tests import skipping_time
from wiring.ingest import EMBED_TIMEOUT
from worker.guard import Guard
from worker.in_flight import InFlight

PAGES, CHUNKS_EACH, PARTITIONS = 64, 600, 4
RATE = 0.25  # chunks a second
DIMS = 4


class SlowModel:
    """One call after the other, as ModelThreads runs them."""

    spec = fingerprint = "slow"
    dims = DIMS

    def __init__(self) -> None:
        self.turn = asyncio.Lock()  # first come, first served
        self.line = TryQueue()
        self.made = 0

    async def passages(self, texts: list[str], *, urgent: bool) -> Any:
        async def call(piece: Sequence[str]) -> None:
            with self.line.place():
                async with self.turn:
                    await asyncio.sleep(len(piece) / RATE)
                    self.made += len(piece)

        await asyncio.gather(*(call(piece) for piece in batched(texts, 16)))
        return np.full((len(texts), DIMS), 0.5, np.float32)


class Models:
    def __init__(self, model: SlowModel) -> None:
        self.model = model

    async def for_new(self, site: str) -> SlowModel:
        return self.model


class Known:
    async def vectors(self, site: str, hashes: object) -> dict[str, Any]:
        return {}

    async def units(self, site: str, page: str, model: str) -> list[Any]:
        return []

    async def heads(self, site: str, keys: object) -> dict[str, Any]:
        return {}


class Bus:
    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.dead: list[str] = []

    async def send(self, topic: Topic, key: str, *args: object, **options: object) -> None:
        self.sent[key.partition("#")[0]] += 1

    async def send_bytes(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, *, partition: int | None = None
    ) -> None:
        self.dead.append(from_headers(headers).message)


def record(number: int) -> Record:
    change = ChangeRef(
        op="upsert",
        site="town",
        lang="en",
        page_id=f"p{number}",
        revision=1,
        accepted_at=datetime.now(UTC),
        partition=number % PARTITIONS,
        offset=number,
    )
    page = PageChunks(
        change=change,
        meta=PageMeta(title="t", url=""),
        chunker=Chunker(mode="content", size=512, overlap=0.2),
        # As headings have none, no unit comes on top of the chunks.
        chunks=tuple(Chunk(field="content", ord=n, text=f"# p{number} c{n}") for n in range(CHUNKS_EACH)),
    )
    return Record(CHUNKS.name, number % PARTITIONS, number, change.page_key.encode(), page.encode())


def test_pages_that_wait_days_for_a_busy_model_are_embedded_and_none_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "AT_ONCE", PAGES * 10**6)  # no threads where time is skipped

    async def scenario() -> tuple[Bus, SlowModel, float]:
        bus, model = Bus(), SlowModel()
        embedding = Embedding(cast(Embedders, Models(model)), cast(KnownPages, Known()), urgent=False)
        handler = handlers.embed_handler(embedding)
        stage = Stage("embed", {CHUNKS: handler}, lane="bulk", try_timeout=EMBED_TIMEOUT)
        guard = Guard(stage, CHUNKS, handler, cast(Any, bus), RetryPolicy(6, 900.0), 60.0)
        done: list[Record] = []
        flight = InFlight(
            window=16,
            order_key=lambda r: r.key or b"",
            work=guard,
            finished=done.append,
            failed=bus.dead.append,  # type: ignore[arg-type]
        )
        begun = asyncio.get_running_loop().time()
        for number in range(PAGES):
            flight.put(record(number))
        while len(done) < PAGES and not bus.dead:  # noqa: ASYNC110 - looks once a minute of skipped time
            await asyncio.sleep(60)
        await flight.drain(0.0)
        return bus, model, asyncio.get_running_loop().time() - begun

    bus, model, seconds = skipping_time.run(scenario())
    assert bus.dead == []
    assert len(bus.sent) == PAGES
    assert model.made >= PAGES * CHUNKS_EACH
    assert seconds <= 1.1 * model.made / RATE + 60  # and nothing was embedded twice, or waited for in vain
    assert model.made <= 2.1 * PAGES * CHUNKS_EACH  # chunks, and their units
