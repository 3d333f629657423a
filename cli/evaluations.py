"""`pagewire eval published`: the runs that were published, as the console shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from cli.admin_client import Gateway
from cli.output import Json, Site, explained, out, print_json, table
from pipelines.evaluate.comparison import GATED, WHOLE
from schemas.evaluation import ListedRun, PublishedRun, RunFigure, RunList

app = typer.Typer(no_args_is_help=True, help="Published runs of `eval run`. They are published by its --publish.")

Id = Annotated[str, typer.Argument(help="As `list` shows it.")]


@app.command("list")
def list_(
    site: Site,
    dataset: Annotated[str | None, typer.Option(help="Only of this dataset, by its name.")] = None,
    json: Json = False,
) -> None:
    """The published runs, the newest first.

    Example: pagewire eval published list town --dataset town
    """
    with explained():
        found = Gateway().read(RunList, "sites", site, "evaluations", dataset=dataset)
    if json:
        print_json(found)
    else:
        columns = ("begun", "dataset", "cases#", *(f"{name}#" for name in GATED), "note", "id")
        out.print(table(columns, _lines(found.runs)))


@app.command()
def show(site: Site, id: Id) -> None:
    """One run with its cases, as JSON. Exit code 1 when there is none of that id.

    Example: pagewire eval published show town 3e1b90c2f5a7d864
    """
    with explained():
        print_json(Gateway().read(PublishedRun, "sites", site, "evaluations", id))


@app.command()
def remove(site: Site, id: Id) -> None:
    """Take a run away. Exit code 1 when there is none of that id.

    Example: pagewire eval published remove town 3e1b90c2f5a7d864
    """
    with explained():
        Gateway().act("DELETE", "sites", site, "evaluations", id)


def _lines(runs: Iterable[ListedRun]) -> list[tuple[object, ...]]:
    lines: list[tuple[object, ...]] = []
    for run in runs:
        figures = run.groups.get(WHOLE, {})
        version = " ".join(part for part in (run.dataset, run.version, f"({run.fingerprint})") if part)
        shown = (_mean(figures.get(name)) for name in GATED)
        lines.append((run.begun, version, f"{run.asked:,}", *shown, run.note, run.id))
    return lines


def _mean(figure: RunFigure | None) -> str:
    return f"{figure.mean:.3f}" if figure else ""
