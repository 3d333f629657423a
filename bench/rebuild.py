"""`rebuild --from embeddings` against `helpers.async_bulk` writing the same documents from memory; and its memory.

    synthetic pages ─┬─▶ ingest.embeddings ─▶ fill (a process of its own) ─▶ an index
                     └─▶ documents in memory ─▶ async_bulk (another one) ──▶ an index with the same mapping

Embedding is off the clock, reading and decoding the topic is on it. Both end with a refresh.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from elasticsearch.helpers import async_bulk
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import IndexInfo
from adapters.elastic.pages import PageIndex
from adapters.elastic.writer import Write, Writer, Written
from adapters.embedders.registry import Models
from adapters.kafka import KafkaSender, bootstrap_servers, ensure_topics
from bench.report import report
from bench.system import home
from cli.engine import engine_settings
from infra import engine
from infra.engine import open_progress
from pipelines.ingest.barrier import Barrier
from pipelines.ingest.rebuild import Rebuilder
from pipelines.runtime.settings import Settings, load
from schemas.head import Head
from schemas.ingest import ChunkCounts, EmbeddedChunk, PageEmbeddings
from schemas.keys import part_key
from schemas.page import ChangeRef, PageMeta
from schemas.topics import EMBEDDINGS

SITE = "bench-rebuild"
DIMS = 384
PAGE = 25  # chunks
CHARS = 420  # of a chunk, as cut at 512
AT_ONCE = 64  # messages sent side by side
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def main(sizes: Sequence[int], rounds: int) -> None:
    """Chunks per second, their ratio, and the highest memory, for each size."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, sizes, rounds))


async def _run(settings: Settings, sizes: Sequence[int], rounds: int) -> None:
    lines: list[tuple[object, ...]] = []
    async with _servers(settings) as configured, Elastic(str(configured.elasticsearch), configured) as elastic:
        await elastic.indexes.create(SITE, 1, "bench", "bench", DIMS, configured.chunker.fingerprint, live=True)
        filled = 0
        for size in sorted(sizes):
            await _send(configured, range(filled // PAGE, size // PAGE))
            filled = size
            seconds: dict[str, float] = {"bulk": 0.0, "fill": 0.0}
            memory: dict[str, int] = {}
            for number in range(rounds):  # alternating, so that a busy moment of the machine hits both
                for way in ("bulk", "fill") if number % 2 else ("fill", "bulk"):
                    measured = await _measured(way, size)
                    seconds[way] += measured["seconds"] / rounds
                    memory[way] = max(memory.get(way, 0), round(measured["peak_mib"]))
            ratio = round(seconds["bulk"] / seconds["fill"], 3)
            for way, name, share in (("bulk", "async_bulk from memory", 1.0), ("fill", "rebuild from topic", ratio)):
                speed = round(size / seconds[way])
                lines.append((name, size, round(seconds[way], 2), speed, share, memory[way]))
        for info in await elastic.indexes.generations(SITE):
            await elastic.es.indices.delete(index=info.name)
    columns = ("way", "chunks", "seconds", "chunks/s", "ratio", "peak MiB")
    report("rebuild", f"{PAGE} chunks of {DIMS} dimensions a page, mean of {rounds} rounds", columns, lines)


@asynccontextmanager
async def _servers(settings: Settings) -> AsyncIterator[Settings]:
    """Kafka with topics and Elasticsearch, without workers; the children of this process find them, too."""
    async with AsyncExitStack() as stack:
        if not (settings.kafka and settings.elasticsearch):
            with open_progress() as progress:
                local = await engine.start(engine_settings(settings), detach=False, progress=progress)
            stack.push_async_callback(local.stop)
            os.environ |= {"PAGEWIRE_KAFKA": local.kafka, "PAGEWIRE_ELASTICSEARCH": local.elasticsearch}
            settings = load()
        await ensure_topics(bootstrap_servers(settings), settings)
        yield settings


async def _send(settings: Settings, pages: range) -> None:
    room = asyncio.Semaphore(AT_ONCE)
    async with KafkaSender(settings) as sender, asyncio.TaskGroup() as group:
        for part in track(synthetic(pages, settings), description="sending pages", total=len(pages)):
            await room.acquire()
            key = part.change.page_key
            sending = group.create_task(sender.send(EMBEDDINGS, part_key(key, 0), part, partition_key=key))
            sending.add_done_callback(lambda _: room.release())


def synthetic(pages: range, settings: Settings) -> Iterator[PageEmbeddings]:
    """Pages of words and vectors by chance, the same at every call."""
    words = np.array([f"word{number}" for number in range(5_000)])
    for number in pages:
        rng = np.random.default_rng(number)
        vectors = rng.normal(size=(PAGE, DIMS)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        chunks = tuple(
            EmbeddedChunk(
                field="content",
                ord=ord,
                text=" ".join(rng.choice(words, CHARS // 8))[:CHARS],
                embed_hash=f"{number:016x}{ord:016x}",
                vector=vectors[ord],
            )
            for ord in range(PAGE)
        )
        change = ChangeRef(
            op="upsert",
            site=SITE,
            lang="en",
            page_id=f"page{number}",
            revision=1,
            accepted_at=NOW,
            partition=0,
            offset=number,
        )
        yield PageEmbeddings(
            change=change,
            meta=PageMeta(title=f"Page {number}", url=f"https://town.example/{number}"),
            chunker=settings.chunker.fingerprint,
            embedder="bench",
            model="bench",
            dims=DIMS,
            part=0,
            parts=1,
            counts={"content": PAGE},
            embedded=PAGE,
            chunks=chunks,
        )


async def _measured(way: str, size: int) -> dict[str, float]:
    """One way in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.rebuild", way, str(size), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    if child.returncode:
        raise SystemExit(f"bench.rebuild {way} ended with exit code {child.returncode}")
    measured: dict[str, float] = json.loads(out)
    return measured


async def _fill(settings: Settings, size: int) -> float:
    async with Elastic(str(settings.elasticsearch), settings) as elastic:
        models = Models(settings, elastic.indexes)
        rebuilder = Rebuilder(SITE, settings, elastic, models, Barrier(settings))
        async with elastic.rebuilds.lease(SITE):
            rebuild = await rebuilder.begin("embeddings", fresh=True)
            began = perf_counter()
            done = await rebuilder.fill(rebuild)
            await elastic.es.indices.refresh(index=rebuild.index)
            seconds = perf_counter() - began
            assert (done.chunks, done.embedded) == (size, 0), done
            await rebuilder.discard(rebuild.generation)
    return seconds


class _Collecting(Writer):
    """Keeps what would be written."""

    def __init__(self) -> None:
        self.writes: list[Write] = []

    async def write(self, writes: Sequence[Write]) -> list[Written]:
        self.writes += writes
        return [Written(write.id, 201) for write in writes]


async def _bulk(settings: Settings, size: int) -> float:
    async with Elastic(str(settings.elasticsearch), settings) as elastic:
        chunker = settings.chunker.fingerprint
        await elastic.indexes.create(SITE, 999_999, "bench", "bench", DIMS, chunker)
        name = f"pagewire-{SITE}-999999"
        actions = await _actions(name, settings, size)
        began = perf_counter()
        await async_bulk(elastic.es, actions)
        await elastic.es.indices.refresh(index=name)
        seconds = perf_counter() - began
        await elastic.es.indices.delete(index=name)
    return seconds


async def _actions(name: str, settings: Settings, size: int) -> list[dict[str, Any]]:
    """The documents that a rebuild writes."""
    collecting = _Collecting()
    info = IndexInfo(name, SITE, "bench", "bench", DIMS, settings.chunker.fingerprint)
    index = PageIndex(None, collecting, info)  # type: ignore[arg-type] # nothing is asked
    for part in synthetic(range(size // PAGE), settings):
        head = Head(change=part.change, state="live", counts=part.counts, cost=ChunkCounts(total=PAGE), settled_at=NOW)
        await index.write(part, head)
    return [{"_index": name, "_id": write.id, "_source": write.document} for write in collecting.writes]


def peak_mib() -> float:
    """The most memory this process ever had resident (proc(5), VmHWM)."""
    status = Path("/proc/self/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    work = {"fill": _fill, "bulk": _bulk}[sys.argv[1]]
    took = asyncio.run(work(load(), int(sys.argv[2])))
    print(json.dumps({"seconds": took, "peak_mib": peak_mib()}))
