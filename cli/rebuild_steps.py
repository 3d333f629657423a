"""The steps of a rebuild as a command does them: fill, audit, compare, promote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from cli.generations import has_previous
from cli.output import err, table
from cli.work import ready
from pipelines.evaluate.quality_gate import GateQuestion, compare
from pipelines.operate.audit import audit as audits
from pipelines.operate.audit.report import AuditReport
from pipelines.operate.audit_log import Act
from pipelines.operate.rebuild.generations import history
from pipelines.runtime.indexes import IndexInfo
from schemas.ingest import Chunker
from schemas.quality_gate import GateReport
from schemas.rebuild import Rebuild, RebuildBy, RebuildSource

if TYPE_CHECKING:
    from wiring.clients import Clients
    from wiring.settings import Settings

FINDINGS = 20  # told of an audit


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


class Watching(Protocol):
    """Shows how far each step is (cli.generations.Bars)."""

    def fill(self, rebuild: Rebuild) -> None: ...

    def audit(self, progress: audits.AuditProgress) -> None: ...

    def gate(self, done: int, total: int) -> None: ...


async def rebuild_site(
    clients: Clients, site: str, wanted: RebuildOptions, bars: Watching, act: Act, cases: list[GateQuestion]
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
    clients: Clients, live: IndexInfo, candidate: IndexInfo, cases: list[GateQuestion], margin: float, bars: Watching
) -> GateReport:
    from wiring.index_search import pinned

    asks = [await pinned(info, clients.elastic.es, clients.models, clients.settings) for info in (live, candidate)]
    return await compare(cases, asks[0], asks[1], lambda asked: bars.gate(asked, len(cases)), margin)


def _print_findings(report: AuditReport) -> None:
    shown = [(found.kind, found.page_key, found.detail) for found in report.findings[:FINDINGS]]
    err.print(table(("kind", "page", "finding"), shown))
