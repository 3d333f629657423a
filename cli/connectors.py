"""`pagewire reconcile` and `watch`: what the connectors of a site have missed, and a folder that is followed."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import NOT_SO, Bars, Json, Site, complain, err, out, print_json, table
from cli.wired import at_stop, connected, logged, user
from cli.work import ready
from connectors.cms.fetching import SafeFetch
from connectors.cms.folder.source import FolderSource
from connectors.cms.folder.watch import Watch
from connectors.cms.reconcile import Reconciled, note, noted_reconcile, reconcile
from connectors.cms.settings import FolderConnector, PushConnector, SitemapConnector
from connectors.cms.sitemap.websub import Subscription
from connectors.cms.sources import configured, opened
from connectors.cms.sync import AlreadyRunning, PageFailure, SyncOutcome, SyncProgress
from pipelines.ingest.importing import settle
from pipelines.ingest.receipts import ReceiptReader
from pipelines.operate.states import ConnectorRunOutcome
from pipelines.runtime.errors import Permanent, Retryable, WrongUse
from schemas.ingest import Receipt
from schemas.keys import parse_page_key

if TYPE_CHECKING:
    from wiring.settings import Settings

NAMED = 8  # pages of one look
STEPS = {"log": "change log", "inventory": "listed", "pages": "sent"}


def reconcile_site(
    site: Site,
    connector: Annotated[
        str | None, typer.Argument(help="One of its connectors; default: all that can be asked.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Delete even more than half of a connector's pages.")] = False,
    json: Json = False,
) -> None:
    """Compare what a CMS lists with the change log, and send what is missing, newer or gone.

    Exit code 0 when nothing is left to do, 1 when something could not be read or was not deleted (with --dry-run: when
    there is something to do).

    Example: pagewire reconcile town blog
    """
    settings = logged()
    names = [connector] if connector else _askable(settings, site)
    for name in names:
        configured(settings, site, name)
    done, failed = asyncio.run(_reconcile(settings, site, names, force=force, dry_run=dry_run))
    if json:
        print_json([asdict(one) for one in done])
    else:
        _print(done)
    for error in failed:
        complain(error)
    if failed:
        raise typer.Exit(NOT_SO)
    if not all(one.done and not (dry_run and _differs(one)) for one in done):
        raise typer.Exit(NOT_SO)


def watch(
    site: Site,
    connector: Annotated[str, typer.Argument(help="One of its connectors: a folder, or a sitemap with feeds.")],
) -> None:
    """Follow a folder: what is saved, renamed or deleted there is so in the search, seconds later. Ctrl-C ends it.

    Of a website, follow the feeds: pages of new entries are visited and sent. Deletes are left to reconcile.

    Example: pagewire watch town handbook
    """
    settings = logged()
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it tells of each event
    source = configured(settings, site, connector)
    if isinstance(source, SitemapConnector) and source.feeds:
        asyncio.run(_until_stopped(_follow(settings, site, connector, source)))
    elif isinstance(source, FolderConnector):
        asyncio.run(_until_stopped(_watch(settings, site, connector)))
    else:
        raise WrongUse(
            f"connector {connector!r} of site {site} is of the kind {source.kind}; "
            "folders are watched, and sitemaps with `feeds`"
        )


def _askable(settings: Settings, site: str) -> list[str]:
    found = [n for n, one in settings.site(site).connectors.items() if not isinstance(one, PushConnector)]
    if not found:
        raise WrongUse(f"site {site} has no connector that could be asked for its pages; see docs/howto/connect.md")
    return found


async def _reconcile(
    settings: Settings, site: str, names: list[str], *, force: bool, dry_run: bool
) -> tuple[list[Reconciled], list[Exception]]:
    """One after the other; a CMS that is away does not keep the others from being asked."""
    done: list[Reconciled] = []
    failed: list[Exception] = []
    async with connected(settings) as clients:
        intake, changes = await clients.intake(), partial(clients.changes_of, site)
        runs = await clients.connector_runs()
        with Bars() as bars:
            for name in names:
                try:
                    steps = _report(bars, name if len(names) > 1 else "")
                    if not dry_run:
                        work = noted_reconcile(settings, site, name, user(), runs, changes, intake, steps, force=force)
                        done.append(await work)
                        continue
                    async with opened(settings, site, name) as source:
                        look = reconcile(source, site, name, changes, intake, settings.home, steps, dry_run=True)
                        done.append(await look)
                except (Permanent, Retryable) as error:
                    if len(names) == 1:
                        raise
                    failed.append(error)
    return done, failed


async def _until_stopped(work: Coroutine[None, None, None]) -> None:
    working = asyncio.create_task(work)
    at_stop(working.cancel)
    with suppress(asyncio.CancelledError):
        await working


async def _watch(settings: Settings, site: str, name: str) -> None:
    async with (
        opened(settings, site, name) as source,
        connected(settings) as clients,
        (await clients.connector_runs()).run(site, name, "watch", user()) as came,
    ):
        assert isinstance(source, FolderSource)
        intake = await clients.intake()
        try:
            with Bars() as bars:
                steps = _report(bars, "")
                changes = partial(clients.changes_of, site)
                first = await reconcile(source, site, name, changes, intake, settings.home, steps)
            note(came, first)
            _print([first])
        except AlreadyRunning as error:
            err.print(f"{error}; watching all the same")
        ready("watching", str(source.folder))
        seen = source.seen if source.seen is not None else await source.scan()
        receipts = await clients.receipts(waiting=True)
        sent: asyncio.Queue[Mapping[str, int]] = asyncio.Queue()

        def report(outcome: SyncOutcome) -> None:
            _add(came, outcome)
            sent.put_nowait(outcome.revisions)

        async with _beside(_tell_notes(receipts, site, sent)):
            await Watch(source, site, name, intake, seen, report).run(source.folder)


async def _tell_notes(receipts: ReceiptReader, site: str, sent: asyncio.Queue[Mapping[str, int]]) -> None:
    """Print what the receipts of sent pages say: what failed, and which attachments cannot be read."""
    with receipts.newly_settled() as settled:
        while True:
            revisions = dict(await sent.get())
            while not sent.empty():
                revisions |= sent.get_nowait()
            try:
                told: dict[str, Receipt] = {}
                async for _, found in settle(site, revisions, receipts, settled):
                    told = found
            except Retryable as error:
                err.print(f"not known whether pages have notes: {error}", markup=False, soft_wrap=True)
            for key, receipt in told.items():
                what = "failed" if receipt.state == "failed" else "note"
                said = receipt.error or "; ".join(receipt.notes)
                err.print(f"{what} {_some([key]).strip(' ()')}: {said}", markup=False, soft_wrap=True)


async def _follow(settings: Settings, site: str, name: str, connector: SitemapConnector) -> None:
    from connectors.cms.sitemap.follow import (
        follow,  # needs the extra `crawl`
        keep_subscribed,
    )
    from gateway.edge.auth import token_secret

    async with (
        opened(settings, site, name),  # raises what is missing, before the first poll
        connected(settings) as clients,
        (await clients.connector_runs()).run(site, name, "watch", user()) as came,
    ):
        intake = await clients.intake()
        ready("following", ", ".join(connector.feeds))
        async with SafeFetch(settings.fetch_allow) as fetch, AsyncExitStack() as stack:
            if connector.websub:
                of_topic = partial(Subscription, site, name, secret=token_secret(settings))
                work = keep_subscribed(fetch, connector.feeds, connector.websub, of_topic)
                await stack.enter_async_context(_beside(work))
            await follow(connector, partial(opened, settings, site, name), site, name, intake, partial(_add, came))


async def _told(work: Coroutine[None, None, None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - pages are followed all the same
        complain(error)


@asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Work until the block ends. An error of the work is printed at once, and does not end the block."""
    task = asyncio.create_task(_told(work))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _add(came: ConnectorRunOutcome, outcome: SyncOutcome) -> None:
    came.sent += outcome.sent
    came.deleted += outcome.deleted
    came.failed += outcome.failed
    _tell(outcome)


def _tell(outcome: SyncOutcome) -> None:
    sent, deleted = _some(outcome.revisions), _some(outcome.deletes)
    print(f"{outcome.sent} sent{sent}, {outcome.deleted} deleted{deleted}", flush=True)
    _print_failures(outcome.failures)


def _some(keys: Iterable[str]) -> str:
    """` (en about, en fees)`: the first of many."""
    names = [f"{page.lang} {page.page_id}" for page in map(parse_page_key, keys)]
    more = [f"and {len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return f" ({', '.join([*names[:NAMED], *more])})" if names else ""


def _differs(one: Reconciled) -> bool:
    return bool(one.missing or one.newer or one.revived or one.gone)


def _print(done: list[Reconciled]) -> None:
    columns = ("connector", "listed#", "in the log#", "missing#", "newer#", "back#", "gone#", "sent#", "deleted#")
    lines = [(r.connector, r.listed, r.known, r.missing, r.newer, r.revived, r.gone, r.sent, r.deleted) for r in done]
    if done:
        out.print(table(columns, lines))
    for one in done:
        if one.omitted:
            reasons = Counter(re.sub(r"https?://\S+", "another", why) for why in one.omitted.values())
            told = ", ".join(f"{count:,} {why}" for why, count in reasons.most_common())
            err.print(f"{one.connector}: left out {told}; --json names them", markup=False, soft_wrap=True)
        _print_failures(one.failures)
        if one.failed > len(one.failures):
            err.print(f"... and {one.failed - len(one.failures):,} more")
        if one.refused:
            complain(
                f"{one.connector}: {one.gone:,} of {one.known:,} pages are not listed any more, and "
                f"{one.barred:,} are not shown to visitors; nothing was deleted. If that is right: --force"
            )


def _print_failures(failures: list[PageFailure]) -> None:
    for one in failures:
        complain(f"{one.lang} {one.page_id}: {one.reason}")


def _report(bars: Bars, name: str) -> Callable[[SyncProgress], None]:
    before = f"{name}: " if name else ""
    return lambda progress: bars.step(before + STEPS[progress.step], progress.done, progress.total)
