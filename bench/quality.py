"""How often the right page comes first: XQuAD as three websites, asked through the gateway's own search.

Compares hybrid search with vectors alone and keywords alone, same index, same run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import httpx
from rich.progress import track

from bench.report import interval, report
from bench.system import system
from bench.xquad import Asked, Corpus, load

CONCURRENT = 4


def main(data: Path, langs: str, modes: str) -> None:
    """Share of questions whose page is the first hit, with bootstrap intervals."""
    asyncio.run(_run(data, langs.split(","), modes.split(",")))


async def _run(data: Path, pairs: Sequence[str], modes: Sequence[str]) -> None:
    corpora = {lang: load(data, lang) for pair in pairs for lang in pair.split(":")}
    indexed = {pair.split(":")[-1] for pair in pairs}
    async with system([f"xquad-{lang}" for lang in indexed]) as (started, client):
        for lang in sorted(indexed):
            await put_in(client, f"xquad-{lang}", corpora[lang])
        lines = []
        for pair in pairs:
            asked, pages = pair.split(":")[0], pair.split(":")[-1]
            for mode in modes:
                ranks = await ranks_of(client, f"xquad-{pages}", corpora[asked].questions, mode)
                mean, low, high = interval([rank == 1 for rank in ranks])
                reciprocal = interval([1 / rank if rank else 0.0 for rank in ranks])[0]
                first_five = interval([0 < rank <= 5 for rank in ranks])[0]
                lines.append((f"{asked} -> {pages}", mode, mean, low, high, first_five, reciprocal))
        columns = ("questions -> pages", "mode", "page@1", "95 % from", "to", "page@5", "page MRR@10")
        chunker = started.settings.chunker.fingerprint
        report("quality", f"right page first, chunks {chunker}", columns, lines, chunker=chunker)


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


async def ranks_of(client: httpx.AsyncClient, site: str, questions: Sequence[Asked], mode: str) -> list[int]:
    """The place of the right page among the pages found, from 1; 0 when it is not among them."""
    gate = asyncio.Semaphore(CONCURRENT)

    async def rank(asked: Asked) -> int:
        async with gate:
            answer = await client.get(f"/sites/{site}/search", params={"q": asked.question, "mode": mode, "size": 30})
        answer.raise_for_status()
        pages = list(dict.fromkeys(hit["page_id"] for hit in answer.json()["hits"]))[:10]
        return pages.index(asked.page_id) + 1 if asked.page_id in pages else 0

    return await asyncio.gather(*(rank(asked) for asked in questions))
