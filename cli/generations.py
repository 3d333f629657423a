"""`pagewire index list`, `promote`, `rollback`, `discard`: which generations a site has, and which is live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from cli.output import NOT_SO, Bars, Json, Site, complain, err, out, print_json, table
from cli.wired import at_stop, connected, noted
from cli.work import FollowParent, started
from pipelines.operate.audit import audit as audits
from pipelines.operate.audit_log import Act
from pipelines.operate.rebuild.generations import generations, history
from pipelines.runtime.indexes import IndexUnfit
from pipelines.runtime.niceness import give_way
from schemas.audit_log import Action
from schemas.rebuild import Generation, Rebuild

if TYPE_CHECKING:
    from wiring.clients import Clients
    from wiring.settings import Settings

Value = TypeVar("Value")

STOPPED = 130  # exit code of what was interrupted
STEPS = {"log": "audit: log", "index": "audit: index", "settling": "audit: under way"}


def rebuilds(site: Site, json: Json = False) -> None:
    """All generations of a site's index, the live one among them.

    Example: pagewire index list town
    """
    found = run(False, lambda settings: _generations(settings, site))
    if json:
        print_json([generation.model_dump(mode="json") for generation in found])
    else:
        columns = (
            "generation#",
            "state",
            "from",
            "model",
            "chunker",
            "index",
            "documents#",
            "size#",
            "begun",
            "promoted",
        )
        out.print(table(columns, [_line(generation) for generation in found]))


async def _generations(settings: Settings, site: str) -> list[Generation]:
    settings.site(site)
    async with connected(settings) as clients:
        return await generations(clients.elastic, site)


def _line(one: Generation) -> tuple[object, ...]:
    state = f"{one.state} {one.done / one.total:.0%}" if one.state == "building" and one.total else one.state
    size = f"{one.documents:,}", f"{one.bytes / 2**20:,.1f} MiB"
    promoted = f"{one.promoted_at:%Y-%m-%d %H:%M}" if one.promoted_at else ""
    return (
        one.generation,
        state,
        one.source,
        one.model,
        one.chunker,
        "shared" if one.shared else "own",
        *size,
        f"{one.created_at:%Y-%m-%d %H:%M}",
        promoted,
    )


def promote(
    site: Site,
    generation: Annotated[int | None, typer.Option(min=1, help="Default: the candidate.")] = None,
    json: Json = False,
    follow_parent: FollowParent = False,
) -> None:
    """Make a verified rebuild live. The index before stays for a rollback, older ones are deleted.

    Example: pagewire index promote town
    """

    async def work(settings: Settings) -> tuple[Rebuild, bool]:
        async with (
            at_work(settings, site) as (clients, bars),
            by_hand(follow_parent, clients, "rebuild.promote", site, str(generation or "")),
        ):
            live = await (await clients.rebuilder(site, bars.fill)).promote(generation)
            return live, await has_previous(clients, site)

    _print_live(*run(follow_parent, work), json=json)


def rollback(site: Site, json: Json = False, follow_parent: FollowParent = False) -> None:
    """Bring the previous index up to date and make it live again.

    Example: pagewire index rollback town
    """

    async def work(settings: Settings) -> tuple[Rebuild, bool]:
        async with (
            at_work(settings, site) as (clients, bars),
            by_hand(follow_parent, clients, "rebuild.rollback", site),
        ):
            live = await (await clients.rebuilder(site, bars.fill)).rollback()
            return live, await has_previous(clients, site)

    _print_live(*run(follow_parent, work), json=json)


def discard(site: Site, generation: Annotated[int, typer.Argument(min=1)], json: Json = False) -> None:
    """Delete a generation that is not live.

    Example: pagewire index discard town 3
    """

    async def work(settings: Settings) -> Rebuild:
        async with at_work(settings, site) as (clients, _), noted(clients, "rebuild.discard", site, str(generation)):
            return await (await clients.rebuilder(site)).discard(generation)

    deleted = run(False, work)
    if json:
        print_json(deleted)
    else:
        out.print(f"{deleted.index} is deleted")


def by_hand(
    follow_parent: bool, clients: Clients, action: Action, site: str, target: str = ""
) -> AbstractAsyncContextManager[Act]:
    """Note it in the audit log, unless a gateway has started us: it notes who asked for it."""
    return nullcontext(Act()) if follow_parent else noted(clients, action, site, target)


async def has_previous(clients: Clients, site: str) -> bool:
    """Whether there is an index to roll back to."""
    return any(rebuild.state == "previous" for rebuild in (await history(clients.elastic, site)).rebuilds)


def way_back(site: str, previous: bool) -> str:
    """The end of the line that says what is live now."""
    if not previous:
        return "; there is no index before it to roll back to"
    return f"; back with `pagewire index rollback {site}`"


def _print_live(live: Rebuild, previous: bool, *, json: bool) -> None:
    if json:
        print_json(live)
    else:
        out.print(f"{live.index} is live: {live.model}, {live.chunker}{way_back(live.site, previous)}")


def run(follow_parent: bool, work: Callable[[Settings], Awaitable[Value]], nice: int = 0) -> Value:
    """Do it; Ctrl-C and SIGTERM end it in order, and leave with exit code 130."""
    give_way(nice)
    settings = started(follow_parent)
    try:
        return asyncio.run(_stoppable(work(settings)))
    except IndexUnfit as error:  # a finding of the audit: no service is missing
        complain(error)
        raise typer.Exit(NOT_SO) from None
    except asyncio.CancelledError:
        err.print("stopped; the same command goes on from here")
        raise typer.Exit(STOPPED) from None


async def _stoppable(work: Awaitable[Value]) -> Value:
    task = asyncio.current_task()
    assert task
    at_stop(task.cancel)
    return await work


@asynccontextmanager
async def at_work(settings: Settings, site: str) -> AsyncIterator[tuple[Clients, RebuildBars]]:
    """Everything that is needed, for the only process that works on the site's indexes.

    Raises: UnknownSite, RebuildRunning, ServiceMissing, Retryable.
    """
    settings.site(site)
    async with connected(settings) as clients, clients.elastic.rebuilds.lease(site):
        with RebuildBars() as bars:
            yield clients, bars


class RebuildBars(Bars):
    """A bar for each step of a rebuild, unless they are not `shown`."""

    def __init__(self, *, shown: bool = True) -> None:
        super().__init__()
        self._shown = shown
        self._first: tuple[float, Rebuild] | None = None

    def fill(self, rebuild: Rebuild) -> None:
        """Messages of the topic, read and written."""
        began, first = self._first = self._first or (monotonic(), rebuild)
        seconds = max(monotonic() - began, 0.1)
        changes, chunks = (rebuild.pages - first.pages) / seconds, (rebuild.chunks - first.chunks) / seconds
        self.step("messages", rebuild.done, rebuild.total, f"{changes:,.0f} changes/s {chunks:,.0f} chunks/s")

    def audit(self, progress: audits.AuditProgress) -> None:
        """Records of the log, documents of the index, pages that do not agree yet."""
        self.step(STEPS[progress.step], progress.done, progress.total)

    def gate(self, done: int, total: int) -> None:
        """Questions asked of both indexes."""
        self.step("questions", done, total)

    def step(self, name: str, done: int, total: int | None = None, rate: str = "", says: str = "") -> None:
        if self._shown:
            super().step(name, done, total, rate, says)
