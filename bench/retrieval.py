"""What our search costs beside Elasticsearch's own: the retrieve stage's work against one raw kNN request.

    ours   five fields by vector + keywords + how well the index knows the words + neighbours ─▶ sources
    raw    one kNN search over the same index, as many hits, the same text back

The same synthetic index and the same question vectors; the embedder is off the clock on both sides. One after the
other in turns, then as many visitors at once as are asked for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.elastic.pages import ElasticPages
from adapters.elastic.writer import Writer
from bench.report import numbers, percentile, question, report
from bench.servers import home, servers
from bench.synthetic import CHUNKS_A_PAGE, Model, change, embeddings, words
from pipelines.ingest.handlers import chunked
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.ports import EmbedderProfile
from pipelines.query.search.search import Searcher
from pipelines.runtime.indexes import alias
from schemas.query import Rephrased
from wiring.settings import Settings

SITE = "retrieval"
MODEL = Model("lite", "synthetic-384", 384)
AT_ONCE = 20  # pages written side by side
WRITERS = 3  # each waits for its own bulk, so that Elasticsearch indexes while Python makes the next one
MERGE_TIMEOUT = 3_600.0  # seconds
WARM_UP = 200  # questions; before that the servers still compile what they run


@dataclass(frozen=True)
class Asking:
    """The synthetic model as search needs it: the vector of a question is made of its text."""

    profile: EmbedderProfile
    spec: str = MODEL.spec
    fingerprint: str = MODEL.fingerprint
    dims: int = MODEL.dims

    async def for_site(self, site: str) -> Asking:
        return self

    async def query(self, text: str) -> NDArray[np.float32]:
        vector = np.random.default_rng([ord(letter) for letter in text]).standard_normal(MODEL.dims, np.float32)
        unit: NDArray[np.float32] = vector / np.linalg.norm(vector)
        return unit

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> NDArray[np.float32]:
        return np.stack([await self.query(text) for text in texts])


def main(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes, multiples of 25.")] = "10000",
    questions: Annotated[int, typer.Option(min=10, help="Questions asked each way.")] = 200,
    visitors: Annotated[int, typer.Option(min=1, help="At once, for the throughput.")] = 8,
) -> None:
    """The retrieve stage's work against one raw kNN request to Elasticsearch."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, sorted(numbers(chunks)), questions, visitors))


async def _run(settings: Settings, sizes: Sequence[int], questions: int, visitors: int) -> None:
    lines: list[tuple[object, ...]] = []
    async with servers(settings) as configured, Elastic(str(configured.elasticsearch), configured) as elastic:
        filled = 0
        for size in sizes:
            await _fill(configured, elastic, range(filled, size // CHUNKS_A_PAGE))
            filled = size // CHUNKS_A_PAGE
            lines.append((size, *await _measured(configured, elastic, questions, visitors)))
    columns = (
        "chunks",
        "ours p50 ms",
        "p95",
        "raw p50 ms",
        "p95",
        "ratio p50",
        f"{visitors} at once, ours/s",
        "raw/s",
        "ratio",
    )
    report("retrieval", f"retrieve stage against one raw kNN request, {questions} questions", columns, lines)


async def _fill(settings: Settings, elastic: Elastic, numbers: range) -> None:
    info = await elastic.indexes.ensure(
        SITE,
        embedder=MODEL.spec,
        model=MODEL.fingerprint,
        dims=MODEL.dims,
        chunker=settings.chunker.fingerprint,
    )
    es = elastic.es.options(request_timeout=MERGE_TIMEOUT)
    batches = iter(track(numbers[::AT_ONCE], description=f"indexing {len(numbers):,} pages"))

    async def write() -> None:
        async with aclosing(Writer(es)) as writer:
            index = ElasticPages(es, elastic.indexes, writer).at(info)

            async def put(number: int) -> None:
                page = chunked(change(SITE, number), settings.chunker, 0, number)
                for part in embeddings(page, MODEL):
                    await index.write(part, None)

            for start in batches:
                await asyncio.gather(*map(put, range(start, min(start + AT_ONCE, numbers.stop))))

    await es.indices.put_settings(index=info.name, settings={"index": {"refresh_interval": "-1"}})
    await asyncio.gather(*(write() for _ in range(WRITERS)))
    await es.indices.forcemerge(index=info.name, max_num_segments=1)
    await es.indices.refresh(index=info.name)


async def _measured(settings: Settings, elastic: Elastic, questions: int, visitors: int) -> tuple[object, ...]:
    asking = Asking(EmbedderProfile(short_floor=-1.0, content_floor=-1.0))
    searcher = Searcher(elastic.search, asking, settings)
    rng = random.Random(1)
    texts = [words(rng, 8) for _ in range(WARM_UP + questions)]

    async def ours(text: str) -> None:
        found = await retrieve(_asked(text), searcher, elastic.search, settings)
        assert found.sources

    async def raw(text: str) -> None:
        found = await elastic.es.search(
            index=alias(SITE),
            knn={
                "field": "embedding",
                "query_vector": await asking.query(text),
                "k": settings.flow_of(SITE).hits,
                "num_candidates": 100,
            },
            size=settings.flow_of(SITE).hits,
            source_includes=["text", "title", "url"],
        )
        assert found["hits"]["hits"]

    for text in texts[:WARM_UP]:
        await ours(text)
        await raw(text)
    pairs = [(await _timed(ours, t), await _timed(raw, t)) for t in track(texts[WARM_UP:], description="asking")]
    mine, theirs = [m for m, _ in pairs], [t for _, t in pairs]
    together = {way: await _throughput(way, texts[WARM_UP:], visitors) for way in (ours, raw)}
    return (
        *(round(percentile(values, q) * 1000, 1) for values in (mine, theirs) for q in (50, 95)),
        round(percentile(mine, 50) / percentile(theirs, 50), 2),
        round(together[ours], 1),
        round(together[raw], 1),
        round(together[ours] / together[raw], 2),
    )


async def _timed(way: Callable[[str], Awaitable[None]], text: str) -> float:
    began = perf_counter()
    await way(text)
    return perf_counter() - began


async def _throughput(way: Callable[[str], Awaitable[None]], texts: Sequence[str], visitors: int) -> float:
    """Questions a second."""
    waiting = iter(texts)

    async def visitor() -> None:
        for text in waiting:
            await way(text)

    began = perf_counter()
    await asyncio.gather(*(visitor() for _ in range(visitors)))
    return len(texts) / (perf_counter() - began)


def _asked(text: str) -> Rephrased:
    return Rephrased(request=question(SITE, "en", text), question=text, mode="semantic")
