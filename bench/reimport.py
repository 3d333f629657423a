"""Import generated pages, then the same file again, unchanged: what does the second time cost?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from more_itertools import chunked

from bench.report import report
from bench.servers import servers
from bench.synthetic import document
from bench.system import home
from cli.content import import_documents
from cli.up import running
from connectors.cms.documents import Left, documents
from schemas.ingest import ChunkCounts
from schemas.keys import page_key
from wiring.clients import Clients
from wiring.settings import Settings

SITE = "reimport"
LOOK = 500  # receipts read at once


def main(pages: int, chunks: int) -> None:
    """Seconds and embeddings of both imports, and their ratio."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, pages, chunks))


async def _run(settings: Settings, pages: int, chunks: int) -> None:
    async with servers(settings) as configured, running(configured) as started:
        file = Path(configured.home) / "pages.ndjson"
        content = [document(number, chunks).model_dump_json(exclude_none=True) for number in range(pages)]
        file.write_text("\n".join(content))
        first = await _import(started.settings, file, pages)
        again = await _import(started.settings, file, pages)
    lines = [
        (name, pages, counts.total, counts.embedded, counts.reused, round(seconds, 2), round(first[0] / seconds, 1))
        for name, (seconds, counts) in (("first", first), ("again, unchanged", again))
    ]
    columns = ("import", "pages", "chunks", "embedded", "reused", "seconds", "times as fast")
    report("reimport", "the same file twice, accepted -> searchable", columns, lines)


async def _import(settings: Settings, file: Path, pages: int) -> tuple[float, ChunkCounts]:
    """Seconds until all is searchable, and what the receipts count."""
    began = perf_counter()
    result = await import_documents(settings, SITE, documents(file, Left()), total=pages)
    seconds = perf_counter() - began
    assert (result["sent"], result["failed"]) == (pages, {}), result
    return seconds, await _costs(settings, [page_key(SITE, "en", f"page-{number}") for number in range(pages)])


async def _costs(settings: Settings, keys: Sequence[str]) -> ChunkCounts:
    total = embedded = reused = 0
    async with Clients(settings) as clients:
        reader = await clients.receipts(waiting=False)
        for some in chunked(keys, LOOK):
            for receipt in (await reader.receipts(SITE, some)).values():
                assert receipt.state == "searchable", receipt
                total += receipt.chunks.total
                embedded += receipt.chunks.embedded
                reused += receipt.chunks.reused
    return ChunkCounts(total=total, embedded=embedded, reused=reused)
