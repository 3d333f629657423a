"""Two runs that are there already, compared as `pagewire eval run --against` compares a new one with an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.evaluate import known_measures, write_junit
from cli.evaluation_print import Deciding, Junit, Margin, comparison_told, print_evaluation
from cli.output import NOT_SO, Json, explained, print_json
from pipelines.evaluate.dataset import load_dataset
from pipelines.evaluate.evaluation import against, evaluate
from pipelines.evaluate.non_inferiority import MARGIN
from pipelines.evaluate.run import Run


def compare_runs(
    live: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="File of the run that is to be beaten.")],
    candidate: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="File of the run that is held to it.")],
    dataset: Annotated[Path, typer.Option(exists=True, help="Dataset of both.")],
    margin: Margin = MARGIN,
    measure: Deciding = None,
    json: Json = False,
    xml: Junit = None,
) -> None:
    """Say whether a run is shown not to be worse than another of the same dataset, in all and by language and tag. Asks
    nothing, and needs no running system. Exit code 1 when it is not shown. A run of the system as it is now is compared
    by `pagewire eval run --against`.

    Example: pagewire eval compare live.ndjson candidate.ndjson --dataset town.yaml --margin 0.05
    """
    with explained():
        measures = known_measures(measure)
        cases, before, after = load_dataset(dataset), Run.read(live), Run.read(candidate)
        comparison = against(cases, before, after, margin, measures)
        report = evaluate(cases, after)
    write_junit(xml, f"pagewire eval compare {candidate.name}: {cases.label}", report, comparison, {})
    if json:
        print_json({"report": report.model_dump(mode="json"), "comparison": comparison_told(comparison)})
    else:
        print_evaluation(report, comparison, ())
    if not comparison.passed:
        raise typer.Exit(NOT_SO)
