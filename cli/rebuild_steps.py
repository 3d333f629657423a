"""The steps of a rebuild as a command does them, for one site or, some at a time, for many.

    names ─▶ the next one ─▶ as wanted already? ─▶ fill, audit, compare, promote ─▶ a line of the table
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
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cli.generations import RebuildBars, has_previous
from cli.output import NO_SERVICE, NOT_SO, Bars, err, out, print_json, table
from cli.wired import connected, noted, sites_called
from cli.work import ready
from pipelines.evaluate.dataset import Case
from pipelines.evaluate.quality_gate import compare
from pipelines.operate.audit.report import AuditReport
from pipelines.operate.audit_log import Act
from pipelines.operate.rebuild.generations import history
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.indexes import IndexGone, IndexInfo
from schemas.ingest import Chunker
from schemas.rebuild import GateReport, Rebuild, RebuildBy, RebuildSource

if TYPE_CHECKING:
    from wiring.clients import Clients
    from wiring.settings import Settings

FINDINGS = 20  # of an audit that are printed


@dataclass(frozen=True)
class RebuildOptions:
    """The options."""

    source: RebuildSource
    embedder: str | None
    chunk_size: int | None
    chunk_mode: Literal["content", "fixed"] | None
    questions: Path | None
    margin: float
    promote: bool
    fresh: bool
    announced: bool  # to who started us
    by: RebuildBy = "self"

    def chunker(self, settings: Settings) -> Chunker | None:
        """None: not asked for another one."""
        given = {"size": self.chunk_size, "mode": self.chunk_mode}
        update = {name: value for name, value in given.items() if value is not None}
        return settings.chunker.model_copy(update=update) if update else None


@dataclass
class RebuildSteps:
    """How far it came."""

    rebuild: Rebuild
    audit: AuditReport | None = None
    gate: GateReport | None = None
    previous: bool = False  # whether there is an index to roll back to


async def rebuild_site(
    clients: Clients, site: str, wanted: RebuildOptions, bars: RebuildBars, act: Act, cases: list[Case]
) -> RebuildSteps:
    """All steps, for the holder of the site's lease. Raises: PagewireError."""
    rebuilder = await clients.rebuilder(site, bars.fill, by=wanted.by)
    begun = await rebuilder.begin(
        wanted.source, embedder=wanted.embedder, chunker=wanted.chunker(clients.settings), fresh=wanted.fresh
    )
    act.target = begun.index
    if wanted.announced:
        ready(str(begun.generation))
    done = RebuildSteps(begun)
    if begun.state == "building":
        done.rebuild = await rebuilder.fill(begun)

        async def audit(index: str) -> bool:
            auditor = await clients.auditor()
            done.audit = await auditor.audit(site, index=index, report=bars.audit)
            # What would be lost in the log is no fault of this index.
            clean = not set(done.audit.counts) - {"log"}
            if not clean:
                _print_findings(done.audit)
            return clean

        done.rebuild = await rebuilder.verify(done.rebuild, audit)
    if cases and done.rebuild.state == "verified":
        known = await history(clients.elastic, site)
        if known.live is not None:  # else there is nothing to be worse than
            candidate = known.indexes[done.rebuild.index]
            done.gate = await _compare(clients, known.live, candidate, cases, wanted.margin, bars)
            done.rebuild = await rebuilder.judged(done.rebuild, done.gate, known.live.name)
    if wanted.promote and done.rebuild.state == "verified" and (done.gate is None or done.gate.passed):
        done.rebuild = await rebuilder.promote(done.rebuild.generation)
    done.previous = await has_previous(clients, site)
    return done


async def _compare(
    clients: Clients, live: IndexInfo, candidate: IndexInfo, cases: list[Case], margin: float, bars: RebuildBars
) -> GateReport:
    from wiring.index_search import pinned

    asks = [await pinned(info, clients.elastic.es, clients.models, clients.settings) for info in (live, candidate)]
    return await compare(cases, asks[0], asks[1], lambda asked: bars.gate(asked, len(cases)), margin)


def _print_findings(report: AuditReport) -> None:
    shown = [(found.kind, found.page_key, found.detail) for found in report.findings[:FINDINGS]]
    err.print(table(("kind", "page", "finding"), shown))


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


async def rebuild_fleet(settings: Settings, fleet: Fleet, wanted: RebuildOptions) -> list[SiteRebuildOutcome]:
    """What came of each site, in the order of their names.

    Raises: NoSuchSites. ServiceMissing, Retryable: before any site was begun.
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
                bars = RebuildBars(shown=False)  # each site's own would hide the one of all sites
                done = await rebuild_site(clients, site, wanted, bars, act, [])
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
