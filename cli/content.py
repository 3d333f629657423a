"""`pagewire import`, `pages`, `delete` and `receipt`: pages in and out, a list of them, and the state of each."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.output import NOT_SO, Bars, Json, Site, err, out, print_json, table
from cli.wired import connected, load, logged, user
from connectors.cms.documents import Left, count, documents
from connectors.cms.sources import NoSource, opened, others
from connectors.cms.sync import TOLD, SyncProgress, sync
from pipelines.ingest.accept import Change
from pipelines.ingest.importing import Cursor, send, settle
from pipelines.ingest.receipts import ReceiptReader
from schemas.base import language_tag
from schemas.http import ListedPage, SystemStatus
from schemas.ingest import Receipt
from schemas.keys import is_address, page_key, parse_page_key
from schemas.page import PageDocument

if TYPE_CHECKING:
    from wiring.clients import Clients
    from wiring.settings import Settings

STUCK_AFTER = 60.0  # seconds without one more page searchable
STEPS = {"inventory": "listed", "pages": "fetched"}
SHOWN = 20  # addresses left out that are named one by one


def import_pages(
    site: Site,
    source: Annotated[
        str,
        typer.Argument(
            help="A connector of the site, a folder of HTML, Markdown or office files, or NDJSON of page documents."
        ),
    ],
    wait: Annotated[bool, typer.Option(help="Wait until every page is searchable.")] = True,
    json: Json = False,
) -> None:
    """Import pages. Interrupted, it goes on where it stopped; repeated, it changes nothing.

    Example: pagewire import town pages.ndjson
    """
    settings = logged()
    connectors, path = settings.site(site).connectors, Path(source)
    if source in connectors:
        result = _stoppable(import_connector(settings, site, source, wait))
    elif not path.exists():
        raise NoSource(
            f"{source}: no such file or folder, nor a connector of site {site}; {others(connectors, source)}"
        )
    else:
        total = count(path)
        cursor, left = Cursor(settings.home, site, path), Left()
        pages = documents(path, left, settings.site(site).languages)
        result = _stoppable(import_documents(settings, site, pages, total, cursor, wait, left))
    if json:
        print_json(result)
    else:
        _print_import(result)
    if result["failed"]:
        raise typer.Exit(NOT_SO)


def _stoppable(importing: Coroutine[None, None, dict[str, object]]) -> dict[str, object]:
    try:
        return asyncio.run(importing)
    except KeyboardInterrupt:
        err.print(
            "stopped: what was sent becomes searchable all the same; the same command sends the rest", soft_wrap=True
        )
        raise


async def import_documents(
    settings: Settings,
    site: str,
    pages: Iterable[PageDocument],
    total: int | None = None,
    cursor: Cursor | None = None,
    wait: bool = True,
    left: Left | None = None,
) -> dict[str, object]:
    """Import with progress bars; returns how many pages were sent and are still queued, the errors by page key, and
    notes on pages that are searchable without all that belongs to them.

    Args:
        left: what reading `pages` leaves out; errors and omissions by file, or by line.
    """
    left = left or Left()
    async with connected(settings) as clients:
        receipts = await clients.receipts(waiting=wait)
        with receipts.newly_settled() as settled, Bars() as bars:
            revisions = await send(
                site,
                pages,
                await clients.intake(),
                cursor,
                lambda p: bars.step("sent", p.sent, total),
                left.failed,
            )
            told = await _settle(clients, receipts, settled, site, revisions, bars) if wait and revisions else {}
    return _result(site, revisions, wait, told, left.failed) | {"omitted": left.omitted}


async def import_connector(settings: Settings, site: str, name: str, wait: bool = True) -> dict[str, object]:
    """Sync a connector with progress bars; returns what `import_documents` does, and the addresses that were left out.

    Raises: PagewireError.
    """
    async with (
        opened(settings, site, name) as source,
        connected(settings) as clients,
        (await clients.connector_runs()).run(site, name, "import", user()) as came,
    ):
        receipts = await clients.receipts(waiting=wait)
        with receipts.newly_settled() as settled, Bars() as bars:

            def report(progress: SyncProgress) -> None:
                bars.step(STEPS[progress.step], progress.done, progress.total)

            outcome = await sync(source, site, name, await clients.intake(), settings.home, report)
            came.sent, came.left_out, came.failed = outcome.sent, outcome.left_out, outcome.failed
            revisions = outcome.revisions
            told = await _settle(clients, receipts, settled, site, revisions, bars) if wait and revisions else {}
    unread: dict[str, str | None] = {page_key(site, one.lang, one.page_id): one.reason for one in outcome.failures}
    return _result(site, revisions, wait, told, unread) | {
        "superseded": outcome.superseded,
        "left_out": outcome.left_out,
        "omitted": outcome.omitted,
    }


def _result(
    site: str,
    revisions: Mapping[str, int],
    wait: bool,
    told: Mapping[str, Receipt],
    unread: Mapping[str, str | None],
) -> dict[str, object]:
    return {
        "site": site,
        "sent": len(revisions),
        "queued": 0 if wait else len(revisions),
        "failed": dict(unread) | {key: one.error for key, one in told.items() if one.state == "failed"},
        "notes": {key: list(one.notes) for key, one in told.items() if one.state != "failed"},
    }


async def _settle(
    clients: Clients, receipts: ReceiptReader, settled: set[str], site: str, revisions: Mapping[str, int], bars: Bars
) -> Mapping[str, Receipt]:
    """Wait until all is searchable; returns the receipts of what failed, or lacks something, by page key."""
    told: Mapping[str, Receipt] = {}
    done, since, reader = -1, monotonic(), clients.status()
    async for progress, found in settle(site, revisions, receipts, settled):
        told = found
        bars.step("searchable", progress.searchable + progress.failed, len(revisions))
        if progress.searchable != done:
            done, since = progress.searchable, monotonic()
        elif monotonic() - since > STUCK_AFTER:
            err.print(f"no further page has become searchable for {STUCK_AFTER:.0f} s:", soft_wrap=True)
            for line in waited_for(await reader.status()):
                err.print(f"- {line}", markup=False, soft_wrap=True)
            since = monotonic()
    return told


def waited_for(found: SystemStatus) -> list[str]:
    """Why pages are not searchable yet: a line for each thing that is away, wrong, or has messages left."""
    services = (("Kafka", found.kafka), ("Elasticsearch", found.elasticsearch))
    lines = [f"{name} does not answer" for name, there in services if not there]
    lines += [*found.problems, *(site.problem for site in found.sites if site.problem)]
    behind = [stage for stage in found.stages if stage.lane is not None and stage.lag]
    for stage in behind:
        name = f"{stage.stage} (bulk)" if stage.lane == "bulk" else stage.stage
        if stage.members:
            lines.append(f"{name} is at work, {stage.lag:,} messages are left")
        else:
            lines.append(f"{name} has {stage.lag:,} messages left: no `pagewire worker {stage.stage}` runs")
    if found.kafka and not behind:
        lines.append("no stage has a message left: see `pagewire dlq list`, and the page's `pagewire receipt`")
    return lines


def _print_import(result: Mapping[str, object]) -> None:
    failed, notes, omitted = (result.get(name, {}) for name in ("failed", "notes", "omitted"))
    assert isinstance(failed, dict)
    assert isinstance(notes, dict)
    assert isinstance(omitted, dict)
    for key, reason in _first(omitted, SHOWN, "left out"):
        err.print(f"left out {key}: {reason}", markup=False, soft_wrap=True)
    for key, lacking in _first(notes, TOLD, "with a note"):
        err.print(f"[yellow]note[/] {key}: {escape('; '.join(lacking))}", soft_wrap=True)
    for key, error in _first(failed, TOLD, "failed"):
        err.print(f"[red]failed[/] {escape(key)}: {escape(str(error))}", soft_wrap=True)
    if result["queued"]:
        rest = f"{result['queued']} queued; `pagewire status` shows how many are left in the lane `bulk`"
    else:
        rest = f"{len(failed)} failed, the rest searchable"
        rest += f", {len(notes)} of them with a note" if notes else ""
    rest += f", {len(omitted):,} addresses left out" if omitted else ""
    out.print(f"{result['sent']} pages sent, {rest}")


def _first(of: Mapping[str, Any], most: int, what: str) -> Iterator[tuple[str, Any]]:
    """So many of them; after the last one a line says how many more there are."""
    yield from islice(of.items(), most)
    if len(of) > most:
        err.print(f"... and {len(of) - most:,} more {what}; --json names them all")


def pages(
    site: Site,
    url: Annotated[str | None, typer.Option(help="Only pages of this address; with or without host.")] = None,
    json: Json = False,
) -> None:
    """The pages that visitors can find, by their ids. Exit code 1 when there is none.

    Example: pagewire pages town

    Example: pagewire pages town --url https://www.town.example/pool
    """
    settings = load()
    settings.site(site)
    found = asyncio.run(_pages(settings, site, url))
    if json:
        print_json({"pages": [page.model_dump() for page in found]})
    elif found:
        lines = [(page.page_id, page.lang, page.title, page.url) for page in found]
        out.print(table(("page", "lang", "title", "url"), lines))
    else:
        what = f"no page of site {site} has this address" if url else f"site {site} has no page that can be found"
        err.print(what, markup=False, soft_wrap=True)
    if not found:
        raise typer.Exit(NOT_SO)


async def _pages(settings: Settings, site: str, url: str | None) -> list[ListedPage]:
    async with connected(settings) as clients:
        view = clients.page_view()
        if url is not None:
            return await view.at(site, url, groups=None)
        found: list[ListedPage] = []
        after: str | None = ""
        while after is not None:
            some = await view.pages(site, groups=None, after=after)
            found += some.pages
            after = some.next
    return found


def delete(
    site: Site,
    pages: Annotated[list[str], typer.Argument(help="Page ids, or addresses (`https://...`).")],
    lang: Annotated[str | None, typer.Option(help="Language; default: the site's first.")] = None,
    json: Json = False,
) -> None:
    """Delete pages, and wait until no search finds them any more. Exit code 1 when one of them is unknown or failed.

    Example: pagewire delete town handbook/2019.pdf handbook/2020.pdf
    """
    settings = load()
    tag = language_tag(lang or settings.site(site).languages[0])
    became = asyncio.run(_delete(settings, site, tag, pages))
    if json:
        print_json(became)
    else:
        for page, state in became.items():
            out.print(f"{page}  {state}", markup=False, soft_wrap=True)
        if "unknown" in became.values() and len(settings.site(site).languages) > 1:
            err.print(f"looked for in {tag}; a page in another language: --lang", markup=False, soft_wrap=True)
    if any(state != "deleted" for state in became.values()):
        raise typer.Exit(NOT_SO)


async def _delete(settings: Settings, site: str, lang: str, pages: Sequence[str]) -> dict[str, str]:
    """The state of each page: `deleted`, `unknown`, or why it is still there."""
    async with connected(settings) as clients:
        receipts = await clients.receipts(waiting=True)
        with receipts.newly_settled() as settled:
            keys = {await _key(clients, site, lang, page): page for page in pages}
            known = await receipts.receipts(site, keys)
            addresses = [parse_page_key(key) for key in known]
            changes = [Change("delete", PageDocument(id=one.page_id, lang=one.lang)) for one in addresses]
            accepted = await (await clients.intake()).accept(site, changes, "command")
            told: Mapping[str, Receipt] = {}
            async for _, found in settle(site, {one.page_key: one.revision for one in accepted}, receipts, settled):
                told = found
    return {
        page: "unknown" if key not in known else str(told[key].error) if key in told else "deleted"
        for key, page in keys.items()
    }


def receipt(
    site: Site,
    page: Annotated[str, typer.Argument(help="Page id, or address (`https://...`).")],
    lang: Annotated[str | None, typer.Option(help="Language; default: the site's first.")] = None,
    json: Json = False,
) -> None:
    """Show the state of a page's newest change. Exit code 1 when the page is unknown or its change failed.

    Example: pagewire receipt demo library --lang de
    """
    settings = load()
    default = settings.site(site).languages[0]
    found = asyncio.run(_receipt(settings, site, language_tag(lang or default), page))
    if found is None:
        others = [each for each in settings.site(site).languages if each != (lang or default)]
        hint = f"; it may be there in another language: --lang {others[0]}" if others else ""
        asked = f"page {page!r} of site {site} was never accepted in the language {lang or default!r}"
        err.print(asked + hint, markup=False, soft_wrap=True)
        raise typer.Exit(NOT_SO)
    if json:
        print_json(found)
    else:
        _print_receipt(found)
    if found.state == "failed":
        raise typer.Exit(NOT_SO)


async def _receipt(settings: Settings, site: str, lang: str, page: str) -> Receipt | None:
    async with connected(settings) as clients:
        reader = await clients.receipts(waiting=False)
        address = parse_page_key(await _key(clients, site, lang, page))
        return await reader.receipt(site, address.lang, address.page_id)


async def _key(clients: Clients, site: str, lang: str, page: str) -> str:
    """The key of a page that is named by its id in this language, or by the address that visitors know it by."""
    found = await clients.page_view().at(site, page, groups=None) if is_address(page) else []
    own = [each for each in found if each.lang == lang] or found
    return page_key(site, own[0].lang, own[0].page_id) if own else page_key(site, lang, page)


def _print_receipt(found: Receipt) -> None:
    chunks = found.chunks
    state = "searchable, with a note" if found.state == "searchable" and found.notes else found.state
    out.print(f"{found.page_key}  [bold]{state}[/]")
    out.print(f"  accepted    revision {found.accepted_revision} at {found.accepted_at:%Y-%m-%d %H:%M:%S}")
    if found.searchable_at and found.state == "deleted":
        out.print(f"  gone        since {found.searchable_at:%Y-%m-%d %H:%M:%S}")
    elif found.searchable_at:
        lag = f", {found.lag_ms:,} ms after it was accepted" if found.lag_ms is not None else ""
        out.print(f"  searchable  revision {found.searchable_revision} at {found.searchable_at:%Y-%m-%d %H:%M:%S}{lag}")
    out.print(
        f"  chunks      {chunks.total} ({chunks.embedded} embedded, {chunks.reused} reused, {chunks.removed} removed)"
    )
    if found.reading and (words := found.reading.words):
        out.print(f"  words       {words.indexed:,} of {words.visible:,} that visitors see")
        for why, count in words.left_out.items():
            out.print(f"  left out    {why}: {count:,}", markup=False)
    for key, values in found.labels.items():
        out.print(f"  label       {key}: {', '.join(values)}", markup=False, soft_wrap=True)
    if found.error:
        out.print(f"  error       {found.error}", markup=False, soft_wrap=True)
    for note in found.notes:
        out.print(f"  note        {note}", markup=False, soft_wrap=True)
