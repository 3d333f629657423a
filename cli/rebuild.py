"""`pagewire index rebuild`: a new index of a site, filled, audited, compared and promoted while the old one goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.audit import audit, holdings
from cli.generations import at_work, by_hand, discard, promote, rebuilds, rollback, run, way_back
from cli.output import NOT_SO, Json, err, out, print_json, table
from cli.rebuild_steps import AT_ONCE, Fleet, RebuildOptions, RebuildSteps, print_fleet, rebuild_fleet, rebuild_site
from cli.work import FollowParent
from pipelines.evaluate.non_inferiority import MARGIN
from pipelines.evaluate.quality_gate import gate_cases
from schemas.rebuild import GateReport, RebuildBy, RebuildSource

if TYPE_CHECKING:
    from wiring.settings import Settings

NICE = 10  # saves and questions go first


def rebuild(
    source: Annotated[
        RebuildSource,
        typer.Option(
            "--from",
            help="changes: everything again. chunks: cut as they are, for another model. embeddings: as they are.",
        ),
    ],
    site: Annotated[str | None, typer.Argument(help="Site, as in pagewire.yaml; or --all, or --sites.")] = None,
    all_sites: Annotated[bool, typer.Option("--all", help="Every site of pagewire.yaml, some at a time.")] = False,
    sites: Annotated[
        str | None, typer.Option(metavar="GLOB", help="The sites whose names match, for example `shop-*`.")
    ] = None,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Sites rebuilt side by side.")] = AT_ONCE,
    again: Annotated[
        bool, typer.Option("--again", help="With several: also those whose index is as wanted already.")
    ] = False,
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
            help="A dataset, as `eval run` asks one: exit code 1, and no promotion, unless the pages of its questions "
            "are shown to be found as well as now, but for a margin.",
        ),
    ] = None,
    margin: Annotated[
        float, typer.Option(min=0.001, max=0.5, help="Loss of hit@1 and MRR@10 that is put up with; with --gate.")
    ] = MARGIN,
    promote: Annotated[bool, typer.Option("--promote", help="Make it live when it is right.")] = False,
    nice: Annotated[
        int, typer.Option(min=0, max=19, help="Give way to other processes: 0 not at all, 19 to everybody.")
    ] = NICE,
    by: Annotated[
        RebuildBy,
        typer.Option(
            help="self: this command embeds and writes. workers: those that run the stage `rebuild` do, side by side; "
            "with --from changes.",
        ),
    ] = "self",
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete an unfinished rebuild first.")] = False,
    json: Json = False,
    follow_parent: FollowParent = False,
) -> None:
    """Build a new index of a site from a topic, and audit it. The live one answers and takes saves meanwhile.

    Stopped or killed, the same command goes on where it was. With several sites one that fails keeps no other from its
    turn; a table says what came of each, and the exit code is 1 when any failed.

    Example: pagewire index rebuild town --from changes --chunk-size 1000 --promote

    Example: pagewire index rebuild town --from changes --embedder bge-m3 --by workers

    Example: pagewire index rebuild --sites "shop-*" --from chunks --embedder bge-m3 --promote
    """
    wanted = RebuildOptions(source, embedder, chunk_size, chunk_mode, gate, margin, promote, fresh, follow_parent, by)
    if (site is not None) + all_sites + (sites is not None) != 1:
        raise typer.BadParameter("name one site, or say --all, or --sites with a pattern")
    if site is None:
        if gate is not None:
            raise typer.BadParameter("--gate is for one site: its questions are that site's")
        chosen = Fleet(sites or "*", at_once, again)
        came = run(follow_parent, lambda settings: rebuild_fleet(settings, chosen, wanted), nice)
        raise typer.Exit(print_fleet(came, json=json))
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


async def _rebuild(settings: Settings, site: str, wanted: RebuildOptions) -> RebuildSteps:
    cases = gate_cases(wanted.questions, site) if wanted.questions else []
    async with (
        at_work(settings, site) as (clients, bars),
        by_hand(wanted.announced, clients, "rebuild.start", site) as act,
    ):
        return await rebuild_site(clients, site, wanted, bars, act, cases)


def _print(done: RebuildSteps) -> None:
    made = done.rebuild
    if done.gate is not None:
        _print_gate(done.gate)
    # What was written: a page that was saved twice counts twice, and a deleted one counts.
    columns = ("index", "state", "changes#", "chunks#", "embedded#", "reused#", "remade#", "failures#", "seconds#")
    figures = (made.pages, made.chunks, made.embedded, made.chunks - made.embedded, made.remade, made.failures)
    line = (made.index, made.state, *(f"{figure:,}" for figure in figures), f"{made.seconds:,.1f}")
    out.print(table(columns, [line]))
    for failure in made.failed:
        err.print(f"[yellow]left out[/] {failure.page_key}: ", end="")
        err.print(failure.reason, markup=False, soft_wrap=True)
    if done.audit is not None:
        out.print(f"it holds {holdings(done.audit)}")
    if made.state == "live":
        out.print(f"live{way_back(made.site, done.previous)}")
    elif done.gate is not None and not done.gate.passed:
        out.print(f"not promoted; `pagewire index promote {made.site}` does it all the same")
    else:
        out.print(f"next: `pagewire index promote {made.site}`")


def _print_gate(gate: GateReport) -> None:
    lines = [
        (m.name, f"{m.live:.3f}", f"{m.candidate:.3f}", f"{m.difference:+.3f}", f"{m.low:+.3f} to {m.high:+.3f}")
        for m in gate.measures
    ]
    out.print(table(("figure", "live#", "candidate#", "difference#", "90 % interval#"), lines))
    if gate.worst:
        out.print()
        worst = [(one.live or "-", one.candidate or "-", one.page, one.question) for one in gate.worst]
        out.print(table(("live#", "candidate#", "page", "furthest behind"), worst))
    margin = f"a margin of {gate.margin:g}"
    if gate.passed:
        verdict = f"[green]not worse[/] by more than {margin}"
    elif any(measure.state == "worse" for measure in gate.measures):
        verdict = "[red]worse[/]"
    else:
        verdict = f"[red]too few questions[/]: {gate.needed:,} needed for {margin}"
    out.print(f"\n{verdict}, over {gate.questions} questions\n")


app = typer.Typer(no_args_is_help=True, help="The indexes of a site: build one anew, make it live, compare it.")
app.command("list")(rebuilds)
app.command()(rebuild)
app.command()(promote)
app.command()(rollback)
app.command()(discard)
app.command()(audit)
