"""`pagewire evaluations`: the runs that were published, as the console shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import out, print_json, table
from cli.user import noted
from cli.wired import on_site
from pipelines.evaluate.comparison import GATED, WHOLE
from pipelines.evaluate.publication import UnknownRun
from schemas.evaluation import ListedRun, RunFigure, RunList

if TYPE_CHECKING:
    from wiring.clients import Clients

app = typer.Typer(no_args_is_help=True, help="Published runs of `eval run`. They are published by its --publish.")

Site = Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")]
Id = Annotated[str, typer.Argument(help="As `list` shows it.")]


@app.command("list")
def list_(
    site: Site,
    dataset: Annotated[str | None, typer.Option(help="Only of this dataset, by its name.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The published runs, the newest first.

    Example: pagewire evaluations list town --dataset town
    """
    found = on_site(site, lambda clients: clients.runs().of_site(site, dataset))
    if json:
        print_json(RunList(runs=tuple(found)))
    else:
        out.print(table(("begun", "dataset", "cases#", *(f"{name}#" for name in GATED), "note", "id"), _lines(found)))


@app.command()
def show(site: Site, id: Id) -> None:
    """One run with its cases, as JSON. Exit code 1 when there is none of that id.

    Example: pagewire evaluations show town 3e1b90c2f5a7d864
    """

    async def read(clients: Clients) -> None:
        found = await clients.runs().get(site, id)
        if found is None:
            raise UnknownRun(f"site {site} has no published run {id}")
        print_json(found)

    on_site(site, read)


@app.command()
def remove(site: Site, id: Id) -> None:
    """Take a run away. Exit code 1 when there is none of that id.

    Example: pagewire evaluations remove town 3e1b90c2f5a7d864
    """

    async def take(clients: Clients) -> None:
        async with noted(clients, "evaluations.remove", site, id):
            if not await clients.runs().remove(site, id):
                raise UnknownRun(f"site {site} has no published run {id}")

    on_site(site, take)


def _lines(runs: list[ListedRun]) -> list[tuple[object, ...]]:
    lines: list[tuple[object, ...]] = []
    for run in runs:
        figures = run.groups.get(WHOLE, {})
        version = " ".join(part for part in (run.dataset, run.version, f"({run.fingerprint})") if part)
        shown = (_mean(figures.get(name)) for name in GATED)
        at = run.begun.astimezone().strftime("%Y-%m-%d %H:%M")
        lines.append((at, version, f"{run.asked:,}", *shown, run.note, run.id))
    return lines


def _mean(figure: RunFigure | None) -> str:
    return f"{figure.mean:.3f}" if figure else ""
