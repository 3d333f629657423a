"""Rebuild, audit and search of 10,000 and 100,000 chunks: does a chunk cost the same, and does memory stay flat?

    synthetic pages ─▶ the three ingest topics ─▶ pagewire rebuild --from embeddings ─▶ pagewire audit ─▶ questions

The commands run as processes of their own, whose resident memory is looked at ten times a second. What larger
installations need is computed from such figures: bench.sizing.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from adapters.elastic.bundle import Elastic
from adapters.elastic.search import Pinned, SiteSearch
from bench.report import numbers, percentile, report
from bench.servers import command, home, servers
from bench.synthetic import CHUNKS_A_PAGE, Model, send, words
from pipelines.query.search.ports import Floors
from pipelines.runtime.indexes import IndexInfo
from wiring.settings import Settings

SITE = "scale"
QUESTIONS = 60
HITS = 30  # by vector and by keywords, as search asks for
DEPTH = Floors(-1.0, -1.0)  # vectors by chance are near nothing: no floor
SERIES = 40  # looks at the memory that are kept in the report


@dataclass(frozen=True)
class Step:
    """All figures at one size."""

    chunks: int
    rebuild_s: float
    rebuild_peak_mib: int
    audit_s: float
    audit_peak_mib: int
    question_p50_ms: float
    question_p95_ms: float
    index_mib: float


def main(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes, multiples of 25.")] = "10000,100000",
    dims: Annotated[int, typer.Option(min=1, max=4096, help="Length of the vectors.")] = 384,
) -> None:
    """Rebuild, audit and search at several sizes: cost per chunk, memory, disk."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, sorted(numbers(chunks)), Model("lite", f"synthetic-{dims}", dims)))


async def _run(settings: Settings, sizes: Sequence[int], model: Model) -> None:
    steps: list[Step] = []
    memory: dict[str, list[int]] = {}
    async with servers(settings) as configured, Elastic(str(configured.elasticsearch), configured) as elastic:
        # A site that has an index: so the rebuild takes its model from there, and loads none.
        await elastic.indexes.ensure(
            SITE,
            embedder=model.spec,
            model=model.fingerprint,
            dims=model.dims,
            chunker=configured.chunker.fingerprint,
        )
        sent = 0
        for size in sizes:
            pages = size // CHUNKS_A_PAGE
            await send(configured, SITE, range(sent, pages), model)
            sent = pages
            step, looks = await _measure(elastic, pages * CHUNKS_A_PAGE)
            steps.append(step)
            memory |= {f"{size} {name}": _thinned(resident) for name, resident in looks.items()}
    columns = ("figure", *(f"{step.chunks:,} chunks" for step in steps), "per chunk, last : first")
    report(
        f"scale-{model.dims}",
        f"synthetic pages of {CHUNKS_A_PAGE} chunks, {model.dims} dimensions, one shard",
        columns,
        _lines(steps),
        steps=[asdict(step) for step in steps],
        resident_mib=memory,
    )


async def _measure(elastic: Elastic, chunks: int) -> tuple[Step, Mapping[str, list[int]]]:
    rebuilt = await command("rebuild", SITE, "--from", "embeddings", "--fresh", "--json")
    made = json.loads(rebuilt.output)
    assert made["rebuild"]["chunks"] == chunks, made["rebuild"]
    index = made["rebuild"]["index"]
    audited = await command("audit", SITE, "--index", index, "--json")
    audit = json.loads(audited.output)
    assert audit["clean"], audit
    [info] = [info for info in await elastic.indexes.generations(SITE) if info.name == index]
    times = await _ask(elastic, info)
    stored = await elastic.rebuilds.sizes(SITE)
    step = Step(
        chunks=chunks,
        rebuild_s=made["rebuild"]["seconds"],
        rebuild_peak_mib=rebuilt.peak_mib,
        audit_s=audit["seconds"],
        audit_peak_mib=audited.peak_mib,
        question_p50_ms=percentile(times, 50) * 1000,
        question_p95_ms=percentile(times, 95) * 1000,
        index_mib=stored[index][1] / 2**20,
    )
    return step, {"rebuild": rebuilt.resident, "audit": audited.resident}


async def _ask(elastic: Elastic, info: IndexInfo) -> list[float]:
    """Seconds per question: one search by vector and by keywords, without the model."""
    search = SiteSearch(elastic.es, Pinned(info))
    rng, vectors = random.Random(1), np.random.default_rng(1)
    times = []
    for _ in range(QUESTIONS):
        vector = vectors.standard_normal(info.dims, np.float32)
        text = words(rng, 8)
        began = perf_counter()
        found = await search.candidates(
            SITE,
            text,
            vector / np.linalg.norm(vector),
            model=info.model,
            floors=DEPTH,
            content_hits=HITS,
            keyword_hits=HITS,
        )
        times.append(perf_counter() - began)
        assert found.dense
    return times


def _lines(steps: Sequence[Step]) -> list[tuple[object, ...]]:
    first, last = steps[0], steps[-1]

    def line(name: str, field: str, per: int = 0) -> tuple[object, ...]:
        values = [getattr(step, field) / (step.chunks / per if per else 1) for step in steps]
        grown = (
            values[-1] / values[0]
            if per
            else (getattr(last, field) / last.chunks) / (getattr(first, field) / first.chunks)
        )
        return (name, *(round(float(value), 2) for value in values), round(grown, 2))

    return [
        line("rebuild from embeddings, s", "rebuild_s"),
        line("... per 1,000 chunks", "rebuild_s", 1000),
        line("audit, s", "audit_s"),
        line("... per 1,000 chunks", "audit_s", 1000),
        (*_plain("rebuild, highest resident memory, MiB", "rebuild_peak_mib", steps), ""),
        (*_plain("audit, highest resident memory, MiB", "audit_peak_mib", steps), ""),
        (*_plain("a question by vector and keywords, p50 ms", "question_p50_ms", steps), ""),
        (*_plain("... p95 ms", "question_p95_ms", steps), ""),
        line("index on disk, KiB per chunk", "index_mib", 1024),
    ]


def _plain(name: str, field: str, steps: Sequence[Step]) -> tuple[object, ...]:
    return (name, *(round(float(getattr(step, field)), 1) for step in steps))


def _thinned(resident: Sequence[int]) -> list[int]:
    """MiB over time, at most `SERIES` values."""
    every = max(1, len(resident) // SERIES)
    return [round(value / 2**20) for value in resident[::every]]
