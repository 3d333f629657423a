"""`pagewire rebuild --all` and `--sites`: many sites, some at a time, and a table of what came of each.

    names ─▶ the next one ─▶ as wanted already? ─▶ fill, audit, promote ─▶ a line of the table
             (so many side by side)

A site that fails keeps no other from its turn. Where a service is away no further one is begun: they would all fail.
Killed, the same command passes over what is done and goes on with what was begun.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal

from cli.bars import Bars
from cli.output import NO_SERVICE, NOT_SO, out, print_json, table
from cli.rebuild_steps import RebuildOptions, rebuild_site
from cli.site_names import sites_called
from cli.user import noted
from cli.wired import connected
from pipelines.operate.audit import audit as audits
from pipelines.operate.rebuild.generations import history
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.indexes import IndexGone
from schemas.rebuild import Rebuild

if TYPE_CHECKING:
    from wiring.clients import Clients
    from wiring.settings import Settings

AT_ONCE = 2  # a rebuild waits for the embedder most of the time; each holds some 100 MiB

Outcome = Literal["live", "verified", "as wanted", "no index", "failed", "not begun"]


@dataclass(frozen=True)
class Fleet:
    """Which sites, and how."""

    glob: str
    at_once: int
    again: bool  # also those that are as wanted

    def names(self, settings: Settings) -> list[str]:
        """In the order of the alphabet. Raises: NoSuchSites."""
        return sorted(sites_called(self.glob, settings))


@dataclass(frozen=True)
class SiteRebuildOutcome:
    """What came of one site."""

    site: str
    outcome: Outcome
    rebuild: Rebuild | None = None
    why: str = ""
    code: str = ""
    away: bool = False  # a service did not answer


class _Unwatched:
    """Many bars would be none."""

    def fill(self, rebuild: Rebuild) -> None: ...

    def audit(self, progress: audits.AuditProgress) -> None: ...

    def gate(self, done: int, total: int) -> None: ...


async def rebuild_fleet(settings: Settings, fleet: Fleet, wanted: RebuildOptions) -> list[SiteRebuildOutcome]:
    """What came of each site, in the order of their names.

    Raises:
        NoSuchSites. ServiceMissing, Retryable: before any site was begun.
    """
    sites = fleet.names(settings)
    async with connected(settings) as clients:
        await clients.auditor()  # connected before several want it at once
        await clients.audit_log()
        with Bars() as bars:
            done = count(1)

            async def one(site: str) -> SiteRebuildOutcome:
                came = await _one(clients, site, fleet, wanted)
                bars.step("sites", next(done), len(sites))
                return came

            return await some_at_a_time(sites, fleet.at_once, one)


async def some_at_a_time(
    sites: Sequence[str], at_once: int, one: Callable[[str], Awaitable[SiteRebuildOutcome]]
) -> list[SiteRebuildOutcome]:
    """What came of each; none is begun any more when a service was away for one."""
    came: dict[str, SiteRebuildOutcome] = {}
    left = deque(sites)

    async def work() -> None:
        while left and not any(done.away for done in came.values()):
            site = left.popleft()
            came[site] = await one(site)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(work())
    return [came.get(site) or SiteRebuildOutcome(site, "not begun") for site in sites]


async def _one(clients: Clients, site: str, fleet: Fleet, wanted: RebuildOptions) -> SiteRebuildOutcome:
    try:
        async with clients.elastic.rebuilds.lease(site):
            if passed := await _passed_over(clients, site, fleet, wanted):
                return SiteRebuildOutcome(site, passed)
            async with noted(clients, "rebuild.start", site) as act:
                done = await rebuild_site(clients, site, wanted, _Unwatched(), act, [])
            return SiteRebuildOutcome(site, "live" if done.rebuild.state == "live" else "verified", done.rebuild)
    except PagewireError as error:
        return SiteRebuildOutcome(site, "failed", why=str(error), code=error.code, away=isinstance(error, Retryable))


async def _passed_over(clients: Clients, site: str, fleet: Fleet, wanted: RebuildOptions) -> Outcome | None:
    """Why nothing is done for the site. Raises: PagewireError."""
    rebuilder = await clients.rebuilder(site)
    if not (await history(clients.elastic, site)).rebuilds:
        # Where pages were searchable once its index is lost, and is made again.
        with suppress(IndexGone):
            await clients.elastic.indexes.explain_absence(site)
            return "no index"
    if fleet.again or wanted.fresh:
        return None
    chunker = wanted.chunker(clients.settings)
    if not await rebuilder.is_as_wanted(wanted.source, embedder=wanted.embedder, chunker=chunker):
        return None
    if wanted.source == "changes":  # the only source that reads pages anew
        [status] = await clients.elastic.site_statuses([site])
        if status.outdated:
            return None
    return "as wanted"


def print_fleet(came: Sequence[SiteRebuildOutcome], *, json: bool) -> int:
    """The table, or JSON; returns the exit code."""
    if json:
        print_json({"sites": [_as_json(one) for one in came]})
    else:
        columns = ("site", "outcome", "index", "changes#", "chunks#", "embedded#", "failures#", "seconds#", "why")
        out.print(table(columns, [_line(one) for one in came]))
        counts = Counter(one.outcome for one in came)
        out.print("\n" + ", ".join(f"{number:,} {outcome}" for outcome, number in counts.most_common()))
    if any(one.away for one in came):
        return NO_SERVICE
    return NOT_SO if any(one.outcome == "failed" for one in came) else 0


def _line(one: SiteRebuildOutcome) -> tuple[object, ...]:
    made = one.rebuild
    if made is None:
        return (one.site, one.outcome, *[""] * 6, one.why)
    figures = (made.pages, made.chunks, made.embedded, made.failures)
    return (one.site, one.outcome, made.index, *(f"{n:,}" for n in figures), f"{made.seconds:,.1f}", one.why)


def _as_json(one: SiteRebuildOutcome) -> dict[str, object]:
    made = one.rebuild and one.rebuild.model_dump(mode="json")
    return {"site": one.site, "outcome": one.outcome, "rebuild": made, "code": one.code or None, "why": one.why or None}
