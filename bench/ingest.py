"""Bulk import of XQuAD English, accepted to searchable, against the embedder alone on the same chunks, same run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import httpx
from rich.progress import track

from bench.report import report
from bench.system import resident, system
from bench.xquad import Corpus, load
from pipelines.clients import Clients
from pipelines.ingest.agents import chunked
from pipelines.ingest.embed import plan
from pipelines.runtime.settings import Settings
from schemas.page import PageChange

SITE = "import"


def main(data: Path, lang: str, pages: int) -> None:
    """Chunks per second through all stages, as a share of the bare embedder."""
    corpus = load(data, lang)
    asyncio.run(_run(replace(corpus, articles=corpus.articles[:pages])))


async def _run(corpus: Corpus) -> None:
    async with system([SITE]) as (started, client):
        async with Clients(started.settings) as clients:
            texts = _texts(corpus, started.settings)
            model = await clients.models.for_site(SITE)
            await model.passages(texts[:4])
            began = perf_counter()
            half = len(texts) // 2
            await model.passages(texts[:half])
            bare_before = perf_counter() - began
            began = perf_counter()
            await put_in(client, SITE, corpus)
            imported = perf_counter() - began
            began = perf_counter()
            await model.passages(texts[half:])
            bare = bare_before + perf_counter() - began
        memory = {child.name: round(resident(child.pid or 0) / 2**20) for child in started.children}
    lines = [
        ("embedder alone", len(texts), round(len(texts) / bare, 2), 1.0),
        ("import, accepted -> searchable", len(texts), round(len(texts) / imported, 2), round(bare / imported, 3)),
    ]
    report("ingest", f"{len(corpus.pages)} pages", ("way", "chunks", "chunks/s", "ratio"), lines, memory_mib=memory)


def _texts(corpus: Corpus, settings: Settings) -> list[str]:
    """What the embed stage will embed."""
    texts = []
    for page in corpus.pages:
        change = PageChange(
            op="upsert",
            site=SITE,
            lang=corpus.lang,
            page_id=page.id,
            revision=1,
            accepted_at="2026-01-01T00:00:00Z",
            source="bench",
            page=page,
        )
        texts += [planned.text for planned in plan(chunked(change, settings.chunker, 0, 0), "bench")]
    return texts


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
            receipt = (await client.get(f"/sites/{site}/pages/{page.id}/receipt?lang={corpus.lang}")).json()
            if receipt["state"] == "searchable":
                break
            assert receipt["state"] == "queued", receipt
            await asyncio.sleep(0.2)
