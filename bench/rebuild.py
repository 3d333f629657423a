"""`rebuild --from embeddings` against `helpers.async_bulk` writing the same documents from memory; and its memory.

    synthetic pages ─┬─▶ ingest.embeddings ─▶ fill (a process of its own) ─▶ an index
                     └─▶ documents in memory ─▶ async_bulk (another one) ──▶ an index with the same mapping

Embedding is off the clock, reading and decoding the topic is on it. Both end with a refresh.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from elasticsearch.helpers import async_bulk

from adapters.elastic.bundle import Elastic
from adapters.elastic.pages import PageIndex
from adapters.elastic.writer import Write, Writer, Written
from adapters.embedders.registry import Models
from bench.report import report
from bench.servers import servers
from bench.synthetic import AT, CHUNKS_A_PAGE, Model, change, embeddings, send
from bench.system import home
from pipelines.ingest.handlers import chunked
from pipelines.runtime.indexes import IndexInfo
from schemas.head import Head
from schemas.ingest import ChunkCounts
from wiring.rebuild import rebuilder
from wiring.settings import Settings
from wiring.settings_file import load

SITE = "bench-rebuild"
MODEL = Model("lite", "synthetic-384", 384)


def main(sizes: Sequence[int], rounds: int) -> None:
    """Chunks per second, their ratio, and the highest memory, for each size."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, sizes, rounds))


async def _run(settings: Settings, sizes: Sequence[int], rounds: int) -> None:
    lines: list[tuple[object, ...]] = []
    async with servers(settings) as configured, Elastic(str(configured.elasticsearch), configured) as elastic:
        chunker = configured.chunker.fingerprint
        await elastic.indexes.create(SITE, 1, MODEL.spec, MODEL.fingerprint, MODEL.dims, chunker, live=True)
        filled = 0
        for size in sorted(sizes):
            await send(configured, SITE, range(filled // CHUNKS_A_PAGE, size // CHUNKS_A_PAGE), MODEL)
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
    columns = ("way", "chunks", "seconds", "chunks/s", "ratio", "peak MiB")
    report(
        "rebuild", f"{CHUNKS_A_PAGE} chunks of {MODEL.dims} dimensions a page, mean of {rounds} rounds", columns, lines
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
        made = rebuilder(SITE, settings, elastic, models)
        async with elastic.rebuilds.lease(SITE):
            rebuild = await made.begin("embeddings", fresh=True)
            began = perf_counter()
            done = await made.fill(rebuild)
            await elastic.es.indices.refresh(index=rebuild.index)
            seconds = perf_counter() - began
            assert (done.chunks, done.embedded) == (size, 0), done
            await made.discard(rebuild.generation)
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
        await elastic.indexes.create(SITE, 999_999, MODEL.spec, MODEL.fingerprint, MODEL.dims, chunker)
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
    info = IndexInfo(name, SITE, MODEL.spec, MODEL.fingerprint, MODEL.dims, settings.chunker.fingerprint)
    index = PageIndex(None, None, collecting, None, info)  # type: ignore[arg-type] # nothing is asked
    for number in range(size // CHUNKS_A_PAGE):
        [part] = embeddings(chunked(change(SITE, number), settings.chunker, 0, number), MODEL)
        cost = ChunkCounts(total=CHUNKS_A_PAGE)
        await index.write(part, Head(change=part.change, state="live", counts=part.counts, cost=cost, settled_at=AT))
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
