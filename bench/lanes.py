"""Does bulk work delay an editor's save? Save to searchable while nothing else goes on, during an import, a rebuild.

a site of synthetic pages, indexed ─▶ saves of small pages, one after the other: idle
                                   ─▶ the same beside `pagewire rebuild --from embeddings`, again and again
                                   ─▶ the same beside `pagewire rebuild --from changes`, every chunk embedded anew
                                   ─▶ the same while the bulk lane works on what `pagewire import` has sent
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated

import httpx
import typer
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.embedders.lite import DIMS, LiteEmbedder
from bench.report import percentile, report
from bench.servers import client_of, command, home, pass_over, servers, start
from bench.synthetic import CHUNKS_A_PAGE, Model, document, send
from cli.up import running
from schemas.rebuild import RebuildSource
from wiring.settings import Settings

SITE = "lanes"
MODEL = Model(LiteEmbedder.spec, LiteEmbedder.fingerprint, DIMS)
NOTES = 8  # small pages that are saved in turn
WARM = 20  # pages: servers and workers that have just been started are slow at first
OTHER_SIZE = 400  # characters: cut anew, no chunk of the rebuild is known already
IMPORTED = 5  # paragraphs of an imported page, a chunk each
UNDER_WAY = 120.0  # seconds a rebuild may take until it has begun
POLL = 0.2  # seconds
TARGET = 2.0  # times the idle figure

Save = Callable[[], Awaitable[float]]


def main(
    chunks: Annotated[int, typer.Option(min=25, help="Chunks of the site.")] = 20_000,
    saves: Annotated[int, typer.Option(min=2, help="Saves measured beside each load.")] = 60,
    pages: Annotated[int, typer.Option(min=1, help="Pages of the import; it must outlast the saves.")] = 200,
) -> None:
    """A save until searchable: idle, during an import, during rebuilds."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, chunks, saves, pages))


async def _run(settings: Settings, chunks: int, saves: int, pages: int) -> None:
    async with servers(settings) as configured, Elastic(str(configured.elasticsearch), configured) as elastic:
        await send(configured, SITE, range(chunks // CHUNKS_A_PAGE), MODEL)
        await command("rebuild", SITE, "--from", "embeddings", "--promote")
        await pass_over(configured)
        async with running(configured) as started, client_of(started) as client:
            save = _saver(client)
            await _import(configured, "warming", WARM)
            while await _queued(client, "warming", WARM - 1):
                await save()
            idle = await _measured("idle", save, saves // 2)
            async with _again_and_again(elastic, "embeddings"):
                embeddings = await _measured("rebuild from embeddings", save, saves)
            async with _again_and_again(elastic, "changes", "--chunk-size", str(OTHER_SIZE)):
                changes = await _measured("rebuild from changes", save, saves)
            idle += await _measured("idle again", save, saves - saves // 2)
            await _import(configured, "imported", pages)
            imported = await _measured("import", save, saves)
            assert await _queued(client, "imported", pages - 1), (
                f"imported before {saves} saves were done: give it more --pages"
            )
    loads = {
        "idle": idle,
        "rebuild from embeddings": embeddings,
        "rebuild from changes, all embedded": changes,
        f"import of {pages} pages": imported,
    }
    columns = ("beside", "saves", "p50 ms", "p95 ms", "worst", "p50 : idle", "p95 : idle")
    lines = [(name, len(times), *_figures(times, idle)) for name, times in loads.items()]
    report("lanes", f"save -> searchable, site of {chunks:,} chunks", columns, lines, target_p95=TARGET)


def _figures(times: Sequence[float], idle: Sequence[float]) -> tuple[float, ...]:
    p50, p95 = percentile(times, 50), percentile(times, 95)
    ratios = p50 / percentile(idle, 50), p95 / percentile(idle, 95)
    return (*(round(value, 1) for value in (p50, p95, max(times))), *(round(ratio, 2) for ratio in ratios))


async def _measured(load: str, save: Save, times: int) -> list[float]:
    return [await save() for _ in track(range(times), description=load)]


def _saver(client: httpx.AsyncClient) -> Save:
    """Saves small pages in turn, each time with another sentence; milliseconds until it is searchable."""
    count = 0

    async def save() -> float:
        nonlocal count
        count += 1
        page = {
            "id": f"note-{count % NOTES}",
            "title": "Opening hours of the library",
            "content": f"<p>The library has {count} new books this week.</p><p>It is open from Monday to Friday.</p>",
        }
        began = perf_counter()
        answer = await client.put(f"/sites/{SITE}/pages/{page['id']}?wait=searchable&timeout=60", json=page)
        took = (perf_counter() - began) * 1000
        assert answer.json().get("state") == "searchable", answer.text
        return took

    return save


@asynccontextmanager
async def _again_and_again(elastic: Elastic, source: RebuildSource, *options: str) -> AsyncIterator[None]:
    """Run a rebuild as long as the body lasts, again when it is done. The body begins when the first one has begun."""

    async def repeat() -> None:
        while True:
            process = await start("rebuild", SITE, "--from", source, *options, "--fresh")
            try:
                _, said = await process.communicate()
                assert process.returncode == 0, said.decode()
            finally:
                if process.returncode is None:
                    process.send_signal(signal.SIGINT)
                    await process.wait()

    repeating = asyncio.create_task(repeat(), name=f"rebuild from {source}")
    try:
        async with asyncio.timeout(UNDER_WAY):
            while not await _begun(elastic, source):
                assert not repeating.done(), repeating.exception()
                await asyncio.sleep(POLL)
        yield
        assert not repeating.done(), repeating.exception()
    finally:
        repeating.cancel()
        await asyncio.gather(repeating, return_exceptions=True)


async def _begun(elastic: Elastic, source: RebuildSource) -> bool:
    return any(r.state == "building" and r.source == source for r in await elastic.rebuilds.of_site(SITE))


async def _import(settings: Settings, name: str, pages: int) -> None:
    """Send them; the bulk lane is busy with them for long."""
    file = Path(settings.home) / "pages.ndjson"
    documents = [_imported_page(f"{name}-{number}", number) for number in range(pages)]
    file.write_text("\n".join(documents))
    await command("import", SITE, str(file), "--no-wait")


def _imported_page(page_id: str, number: int) -> str:
    page = document(number, IMPORTED)
    return page.model_copy(update={"id": page_id}).model_dump_json(exclude_none=True)


async def _queued(client: httpx.AsyncClient, name: str, number: int) -> bool:
    """Whether an imported page is not searchable yet."""
    answer = await client.get(f"/sites/{SITE}/pages/{name}-{number}/receipt?lang=en")
    return bool(answer.json()["state"] == "queued")
