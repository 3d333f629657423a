"""`pagewire status`: the stages, the sites and, with `--watch`, the newest changes; `doctor`: what a machine lacks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from cli.output import NO_SERVICE, NOT_SO, Json, out, print_json, table
from cli.wired import load, logged, sites_called
from schemas.http import SystemStatus
from schemas.ingest import ReceiptEvent

if TYPE_CHECKING:
    from wiring.settings import Settings

LOOK_EVERY = 2.0  # seconds
NEWEST = 12  # changes shown
SHOWN = 50  # sites, and problems of sites
WIDTH = 60  # looks that a sparkline goes back
BARS = "▁▂▃▄▅▆▇█"
COLOURS = {"searchable": "green", "deleted": "cyan", "failed": "red", "queued": "yellow", "superseded": "dim"}


def status(
    json: Annotated[bool, typer.Option("--json", help="Print JSON; with --watch one document per look.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every two seconds until Ctrl-C; shows the newest changes too.")
    ] = False,
    glob: Annotated[
        str | None,
        typer.Option("--sites", metavar="GLOB", help="Of the sites those whose names match, for example `shop-*`."),
    ] = None,
) -> None:
    """Lag, rate, freshness and dead letters. Exit code 3 when Kafka or Elasticsearch is away.

    Example: pagewire status --watch
    """
    settings = load()
    names = None if glob is None else sites_called(glob, settings)
    found = asyncio.run(_status(settings, names, json, watch))
    if not (found.kafka and found.elasticsearch):
        raise typer.Exit(NO_SERVICE)
    if found.problems or any(site.problem for site in found.sites):
        raise typer.Exit(NOT_SO)


async def _status(settings: Settings, names: Sequence[str] | None, json: bool, watch: bool) -> SystemStatus:
    from wiring.looking import looking

    async with looking(settings) as (reader, elastic):
        if not watch:
            found = await reader.status(names)
            if json:
                print_json(found)
            else:
                out.print(Group(*away(found), stages(found), "", sites(found)))
            return found
        with Live(console=out, auto_refresh=False, screen=out.is_terminal and not json) as live:
            view = StatusView()
            while True:
                found = await reader.status(names)
                if json:
                    print_json(found)
                else:
                    newest = await elastic.pages.newest_receipts(NEWEST) if found.elasticsearch else []
                    live.update(view.of(found, newest), refresh=True)
                await asyncio.sleep(LOOK_EVERY)


class Trail:
    """The last values of a figure, drawn as a line of bars."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=WIDTH)

    def add(self, value: float) -> None:
        self._values.append(value)

    def __str__(self) -> str:
        top = max(self._values, default=0.0) or 1.0
        return "".join(BARS[round(value / top * (len(BARS) - 1))] for value in self._values)


def stages(found: SystemStatus) -> RenderableType:
    """One line per stage and lane."""
    lines = [
        (s.stage, s.lane, s.topic, f"{s.lag:,}", f"{s.rate:,.1f}/s", s.members, s.dead_letters, s.parked)
        for s in found.stages
    ]
    return table(("stage", "lane", "reads", "lag#", "rate#", "workers#", "dead letters#", "parked#"), lines)


def sites(found: SystemStatus) -> RenderableType:
    """One line per site; of more than can be looked at the first, those that have a problem before all."""
    shown = sorted(found.sites, key=lambda site: site.problem is None)[:SHOWN]
    lines = [
        (
            s.site,
            f"{s.pages:,}",
            f"{s.chunks:,}",
            duration(s.freshness_p50_ms),
            duration(s.freshness_p95_ms),
            s.embedder,
        )
        for s in shown
    ]
    listed = Group(
        table(("site", "pages#", "chunks#", "fresh p50#", "fresh p95#", "embedder"), lines), *_outdated(found)
    )
    if len(shown) == len(found.sites):
        return listed
    others = f"{len(shown)} of {len(found.sites):,} sites; `--sites 'NAME*'` shows others, `--json` all."
    pages, chunks = sum(site.pages for site in found.sites), sum(site.chunks for site in found.sites)
    return Group(listed, Text(f"{others} Together they have {pages:,} pages, {chunks:,} chunks.", style="dim"))


def _outdated(found: SystemStatus) -> list[Text]:
    outdated = [site for site in found.sites if site.outdated]
    if not outdated:
        return []
    one, several = f"site {outdated[0].site}", f"{len(outdated):,} sites"
    said = f"pages of {several if outdated[1:] else one} that another version has read, perhaps otherwise than this one"
    again = "--all" if outdated[1:] else outdated[0].site
    count = sum(site.outdated for site in outdated)
    command = f"`pagewire index rebuild {again} --from changes --promote`"
    return [Text(f"{said}: {count:,}; {command} reads them anew", "yellow")]


def changes(newest: Sequence[ReceiptEvent]) -> RenderableType:
    """The newest changes: their states, milliseconds and embeddings."""
    made = table(("at", "page", "revision#", "", "took#", "embedded#", "reused#", "removed#"))
    for event in newest:
        took = (event.at - event.change.accepted_at).total_seconds() * 1000
        made.add_row(
            f"{event.at.astimezone():%H:%M:%S}",
            Text(event.change.page_key),
            str(event.change.revision),
            Text(event.state, style=COLOURS[event.state]),
            duration(None if event.state == "queued" else took),
            *(str(n) for n in (event.chunks.embedded, event.chunks.reused, event.chunks.removed)),
        )
        if event.error is not None:
            made.add_row("", Text(f"{event.error.stage}: {event.error.reason}", style="red"))
    return made


class StatusView:
    """The whole picture, with what it has seen so far."""

    def __init__(self) -> None:
        self._lag: dict[str, Trail] = {"save": Trail(), "bulk": Trail()}

    def of(self, found: SystemStatus, newest: Sequence[ReceiptEvent]) -> RenderableType:
        """What one look has found."""
        for lane, trail in self._lag.items():
            trail.add(sum(s.lag for s in found.stages if s.lane == lane))
        trails = Text("\n".join(f"lag, {lane} lane  {trail}" for lane, trail in self._lag.items()), style="dim")
        return Group(*away(found), stages(found), trails, "", sites(found), "", changes(newest))


def away(found: SystemStatus) -> list[RenderableType]:
    """One line per service that does not answer, and per other thing that is wrong."""
    services = (("Kafka", found.kafka), ("Elasticsearch", found.elasticsearch))
    lines = [f"{name} does not answer" for name, there in services if not there]
    lines += found.problems
    of_sites = [site.problem for site in found.sites if site.problem]
    lines += of_sites[:SHOWN]
    if len(of_sites) > SHOWN:
        lines.append(f"{len(of_sites) - SHOWN:,} more sites have problems; `--json` shows them")
    return [Text(line, style="red") for line in lines]


def duration(milliseconds: float | None) -> str:
    """For people: `76 ms`, `12.3 s`."""
    if milliseconds is None:
        return ""
    return f"{milliseconds:,.0f} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:,.1f} s"


doctor_app = typer.Typer(no_args_is_help=True, help="What is missing on this machine, and the command that mends it.")
CHECK_COLOURS = {"fine": "green", "problem": "red", "unknown": "yellow"}


@doctor_app.command()
def embedder(
    name: Annotated[
        str | None,
        typer.Argument(
            help="`lite`, `bge-m3`, `bge-m3-sparse`, `onnx:FOLDER` or `openai:MODEL`; default: PAGEWIRE_EMBEDDER."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Whether an embedder can work here: its package, its weights, one vector, and the live indexes of the sites, which
    are compared where Elasticsearch answers. Exit code 1 at the first thing that is missing.

    Example: pagewire doctor embedder

    Example: pagewire doctor embedder bge-m3 --json
    """
    settings = logged()
    from wiring.embedder_check import check_embedder

    report = asyncio.run(check_embedder(settings, name or settings.embedder))
    if json:
        print_json({**asdict(report), "fine": report.fine})
    else:
        lines = table(("check", "", "found"))
        for check in report.checks:
            lines.add_row(check.name, Text(check.state, CHECK_COLOURS[check.state]), Text(check.said))
        out.print(lines)
    if not report.fine:
        raise typer.Exit(NOT_SO)
