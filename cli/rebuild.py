"""`pagewire rebuild`: a new index of a site, filled, audited, compared and promoted while the old one goes on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.audit import holdings
from cli.generations import Bars, Json, Site, at_work, by_hand, has_previous, run, way_back
from cli.output import NOT_SO, err, out, print_json, rows, table
from cli.work import FollowParent, ready
from pipelines.evaluate.non_inferiority import MARGIN
from pipelines.evaluate.quality_gate import Case, compare, load_cases
from pipelines.operate.audit.report import AuditReport
from pipelines.operate.rebuild.generations import history
from pipelines.runtime.indexes import IndexInfo
from schemas.ingest import Chunker
from schemas.quality_gate import GateReport
from schemas.rebuild import Rebuild, RebuildSource
from wiring.clients import Clients
from wiring.index_search import pinned
from wiring.settings import Settings

FINDINGS = 20  # told of an audit
NICE = 10  # saves and questions go first


@dataclass(frozen=True)
class Wanted:
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

    def chunker(self, settings: Settings) -> Chunker | None:
        """None: not asked for another one."""
        given = {"size": self.chunk_size, "mode": self.chunk_mode}
        update = {name: value for name, value in given.items() if value is not None}
        return settings.chunker.model_copy(update=update) if update else None


@dataclass
class Done:
    """How far it came."""

    rebuild: Rebuild
    audit: AuditReport | None = None
    gate: GateReport | None = None
    previous: bool = False  # whether there is an index to roll back to


def rebuild(
    site: Site,
    source: Annotated[
        RebuildSource,
        typer.Option(
            "--from",
            help="changes: everything again. chunks: cut as they are, for another model. embeddings: as they are.",
        ),
    ],
    embedder: Annotated[
        str | None, typer.Option(help="As PAGEWIRE_EMBEDDER. Default: the configured one; with embeddings, theirs.")
    ] = None,
    chunk_size: Annotated[
        int | None, typer.Option(min=32, max=20_000, help="Longest core in characters; with --from changes.")
    ] = None,
    chunk_mode: Annotated[
        Literal["content", "fixed"] | None, typer.Option(help="Where cores end; with --from changes.")
    ] = None,
    gate: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="YAML or NDJSON of {question, page}: exit code 1, and no promotion, unless the pages are shown to be "
            "found as well as now, but for a margin.",
        ),
    ] = None,
    margin: Annotated[
        float, typer.Option(min=0.001, max=0.5, help="Loss of hit@1 and MRR@10 that is put up with; with --gate.")
    ] = MARGIN,
    promote: Annotated[bool, typer.Option("--promote", help="Make it live when it is right.")] = False,
    nice: Annotated[
        int, typer.Option(min=0, max=19, help="Give way to other processes: 0 not at all, 19 to everybody.")
    ] = NICE,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete an unfinished rebuild first.")] = False,
    json: Json = False,
    follow_parent: FollowParent = False,
) -> None:
    """Build a new index of a site from a topic, and audit it. The live one answers and takes saves meanwhile.

    Stopped or killed, the same command goes on where it was.

    Example: pagewire rebuild town --from changes --chunk-size 1000 --promote
    """
    wanted = Wanted(source, embedder, chunk_size, chunk_mode, gate, margin, promote, fresh, announced=follow_parent)
    done = run(follow_parent, lambda settings: _rebuild(settings, site, wanted), nice)
    passed = done.gate is None or done.gate.passed
    if json:
        print_json(
            {
                "rebuild": done.rebuild.model_dump(mode="json"),
                "audit": done.audit and done.audit.model_dump(mode="json"),
                "gate": done.gate and done.gate.model_dump(mode="json"),
            }
        )
    else:
        _print(done)
    if not passed:
        raise typer.Exit(NOT_SO)


async def _rebuild(settings: Settings, site: str, wanted: Wanted) -> Done:
    cases = load_cases(wanted.questions) if wanted.questions else []
    async with (
        at_work(settings, site) as (clients, bars),
        by_hand(wanted.announced, clients, "rebuild.start", site) as act,
    ):
        rebuilder = await clients.rebuilder(site, bars.fill)
        begun = await rebuilder.begin(
            wanted.source, embedder=wanted.embedder, chunker=wanted.chunker(settings), fresh=wanted.fresh
        )
        act.target = begun.index
        if wanted.announced:
            ready(str(begun.generation))
        done = Done(begun)
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
    clients: Clients, live: IndexInfo, candidate: IndexInfo, cases: list[Case], margin: float, bars: Bars
) -> GateReport:
    asks = [await pinned(info, clients.elastic.es, clients.models, clients.settings) for info in (live, candidate)]
    return await compare(cases, asks[0], asks[1], lambda asked: bars.gate(asked, len(cases)), margin)


def _print(done: Done) -> None:
    made = done.rebuild
    if done.gate is not None:
        _print_gate(done.gate)
    # What was written: a page that was saved twice counts twice, and a deleted one counts.
    columns = ("index", "state", "changes#", "chunks#", "embedded#", "reused#", "remade#", "failures#", "seconds#")
    figures = (made.pages, made.chunks, made.embedded, made.chunks - made.embedded, made.remade, made.failures)
    line = (made.index, made.state, *(f"{figure:,}" for figure in figures), f"{made.seconds:,.1f}")
    out.print(rows(table(*columns), [line]))
    for failure in made.failed:
        err.print(f"[yellow]left out[/] {failure.page_key}: ", end="")
        err.print(failure.reason, markup=False, soft_wrap=True)
    if done.audit is not None:
        out.print(f"it holds {holdings(done.audit)}")
    if made.state == "live":
        out.print(f"live{way_back(made.site, done.previous)}")
    elif done.gate is not None and not done.gate.passed:
        out.print(f"not promoted; `pagewire promote {made.site}` does it all the same")
    else:
        out.print(f"next: `pagewire promote {made.site}`")


def _print_findings(report: AuditReport) -> None:
    shown = [(found.kind, found.page_key, found.detail) for found in report.findings[:FINDINGS]]
    err.print(rows(table("kind", "page", "finding"), shown))


def _print_gate(gate: GateReport) -> None:
    lines = [
        (m.name, f"{m.live:.3f}", f"{m.candidate:.3f}", f"{m.difference:+.3f}", f"{m.low:+.3f} to {m.high:+.3f}")
        for m in gate.measures
    ]
    out.print(rows(table("figure", "live#", "candidate#", "difference#", "90 % interval#"), lines))
    if gate.worst:
        out.print()
        worst = [(one.live or "-", one.candidate or "-", one.page, one.question) for one in gate.worst]
        out.print(rows(table("live#", "candidate#", "page", "furthest behind"), worst))
    margin = f"a margin of {gate.margin:g}"
    if gate.passed:
        verdict = f"[green]not worse[/] by more than {margin}"
    elif any(measure.state == "worse" for measure in gate.measures):
        verdict = "[red]worse[/]"
    else:
        verdict = f"[red]too few questions[/]: {gate.needed:,} needed for {margin}"
    out.print(f"\n{verdict}, over {gate.questions} questions\n")
