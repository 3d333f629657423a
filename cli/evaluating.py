"""`pagewire eval`: what tells how good the answers are, gathered in one place.

All but `compare` are commands that have a name of their own as well; they are the same functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import typer

from cli.compare import compare_runs
from cli.evaluate import evaluate_site
from cli.experiment import run as run_experiment
from cli.gaps import gaps
from cli.judge_agreement import judge_agreement

app = typer.Typer(
    no_args_is_help=True,
    help="Whether the answers are right: ask a dataset, compare runs, try settings, hold the judge against people, see "
    "what is not answered.",
)


def _also(name: str, known_as: str, command: Callable[..., None]) -> None:
    """The command under another name, with its examples in that name."""
    told = inspect.cleandoc(command.__doc__ or "").replace(f"pagewire {known_as} ", f"pagewire eval {name} ")
    about, examples = told.split("\n\nExample: ", 1)
    same = f"The same as `pagewire {known_as}`."
    app.command(name, help=f"{about}\n\n{same}\n\nExample: {examples}")(command)


_also("run", "evaluate", evaluate_site)
app.command("compare")(compare_runs)
_also("sweep", "experiment run", run_experiment)
_also("calibrate", "judge-agreement", judge_agreement)
_also("gaps", "gaps", gaps)
