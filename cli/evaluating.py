"""`pagewire eval`: what tells how good the answers are, gathered in one place."""

from __future__ import annotations

import typer

from cli import datasets
from cli.check import check
from cli.evaluate import compare_runs, evaluate_site
from cli.experiment import report_again
from cli.experiment import run as run_experiment
from cli.gaps import gaps
from cli.judge_agreement import judge_agreement
from cli.retired import GroupWithRetired

app = typer.Typer(
    cls=GroupWithRetired,
    no_args_is_help=True,
    help="Whether the answers are right: ask a dataset, compare runs, try settings, hold the judge against people, see "
    "what is not answered.",
)
app.command("run")(evaluate_site)
app.command("compare")(compare_runs)
app.command("sweep")(run_experiment)
app.command("report")(report_again)
app.command("calibrate")(judge_agreement)
app.command("gaps")(gaps)
app.command("check")(check)
app.add_typer(datasets.app, name="datasets")
