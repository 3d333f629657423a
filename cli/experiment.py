"""`pagewire eval sweep`: a dataset asked of a running system under many settings, and which of them are better."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from cli.admin_client import address, key_for
from cli.evaluation_print import AtOnce, Url
from cli.output import NOT_SO, Bars, Json, err, out, print_json, table
from cli.wired import logged
from pipelines.evaluate.dataset import BadDataset, Dataset, load_dataset
from pipelines.evaluate.evaluator import AT_ONCE
from pipelines.evaluate.experiments.grid import Arm, Grid, arms, can_be_tried, load_grid
from pipelines.evaluate.experiments.page import failures, html, markdown
from pipelines.evaluate.experiments.report import ExperimentReport, report, told
from pipelines.evaluate.experiments.sweep import (
    ExperimentBudget,
    ExperimentBudgetSpent,
    PlannedArm,
    ask_arms,
    left,
    plan,
)
from pipelines.evaluate.run import askable
from pipelines.runtime.errors import WrongUse
from schemas.trial import TrialChoices

if TYPE_CHECKING:
    from adapters.http_site import HttpTrials
    from wiring.settings import Settings

INDEXING, LOOK_AGAIN = 120.0, 1.0  # seconds that pages on their way are waited for, and between two looks

GridFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="YAML file that says what is varied.")]
OutFolder = Annotated[
    Path | None,
    typer.Option("--out", file_okay=False, help="For the report. Default: of its name in PAGEWIRE_HOME/experiments."),
]


class _Asked(BaseModel):
    """What was asked last under a grid's name, so that its answers are found again without the system."""

    model_config = ConfigDict(frozen=True)

    url: str
    system: str


@dataclass(frozen=True)
class Experiment:
    """A grid with all that follows from its file."""

    settings: Settings
    grid: Grid
    dataset: Dataset
    arms: tuple[Arm, ...]

    @classmethod
    def read(cls, file: Path) -> Experiment:
        """Raises: WrongUse: what is wrong with the grid, its dataset or this machine's settings."""
        settings = logged()
        grid = load_grid(file)
        dataset = load_dataset(grid.dataset)
        if not askable(dataset, grid.site):
            raise BadDataset(f"{grid.dataset}: no case for site {grid.site} that can be asked at any time")
        return cls(settings, grid, dataset, arms(grid, file.parent))

    @property
    def answers(self) -> Path:
        """Folder of all experiments' answers: grids that have an arm in common share it."""
        return self.settings.home / "experiments" / "answers"

    def folder(self, given: Path | None) -> Path:
        return given or self.settings.home / "experiments" / self.grid.name

    def planned(self, url: str, system: str) -> list[PlannedArm]:
        return plan(self.arms, self.dataset, self.grid.site, url, system, datetime.now(UTC), self.answers)


def run(
    grid: GridFile,
    url: Url = None,
    key: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="File with a key of the scope edit; default, here: the admin key."
        ),
    ] = None,
    at_once: AtOnce = AT_ONCE,
    most_calls: Annotated[
        int | None, typer.Option(min=0, help="Calls of the model that this command may cost; then it stops.")
    ] = None,
    most_tokens: Annotated[
        int | None, typer.Option(min=0, help="Tokens after which no question is asked that costs more.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask nothing: say what would be asked.")] = False,
    to: OutFolder = None,
    json: Json = False,
) -> None:
    """Ask a dataset under each of a grid's arms, and write a report as Markdown and HTML. Exit code 1 when the budget
    is spent before all is asked.

    Stopped or killed, the same command goes on where it was; answers that are there are never asked again, those of
    other grids among them.

    Example: pagewire eval sweep hits.yaml --dry-run

    Example: pagewire eval sweep prompts.yaml --most-calls 2000
    """  # fmt: skip
    from adapters.http_site import HttpTrials

    experiment = Experiment.read(grid)
    at = address(experiment.settings, url)
    secret = key_for(experiment.settings, at, key)
    stopped = ""

    async def ask() -> list[PlannedArm]:
        nonlocal stopped
        async with HttpTrials(at, experiment.grid.site, secret) as system:
            choices = await system.choices()
            can_be_tried(experiment.arms, choices)
            if choices.ingest_lag and not dry_run:
                choices = await _indexed(system)
            planned = experiment.planned(at, choices.system)
            if dry_run:
                _print_plan(experiment, planned, choices, json)
                return planned
            with _alone(experiment.answers), _bar(experiment, planned) as asked:
                folder = experiment.folder(to)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "asked.json").write_text(_Asked(url=at, system=choices.system).model_dump_json() + "\n")
                allowance = ExperimentBudget(most_calls, most_tokens)
                try:
                    await ask_arms(planned, experiment.dataset, system.under, choices, allowance, asked, at_once)
                except ExperimentBudgetSpent as spent:
                    stopped = str(spent)
            return planned

    planned = asyncio.run(ask())
    if dry_run:
        return
    _tell(experiment, planned, experiment.folder(to), json)
    if stopped:
        err.print(f"stopped: {stopped}", markup=False, soft_wrap=True)
        raise typer.Exit(NOT_SO)


def report_again(grid: GridFile, to: OutFolder = None, json: Json = False) -> None:
    """Write the report of what has been asked so far; asks nothing, and needs no running system.

    Example: pagewire eval report hits.yaml --json
    """
    experiment = Experiment.read(grid)
    folder = experiment.folder(to)
    try:
        asked = _Asked.model_validate_json((folder / "asked.json").read_bytes())
    except (OSError, ValidationError):
        raise WrongUse(f"{folder}: nothing was asked yet; `pagewire eval sweep` does") from None
    _tell(experiment, experiment.planned(asked.url, asked.system), folder, json)


async def _indexed(system: HttpTrials) -> TrialChoices:
    """The choices when the pages that were saved before are searchable, or after `INDEXING` seconds."""
    err.print("waiting for pages that are not indexed yet")
    for _ in range(round(INDEXING / LOOK_AGAIN)):
        await asyncio.sleep(LOOK_AGAIN)
        choices = await system.choices()
        if not choices.ingest_lag:
            return choices
    err.print(f"{choices.ingest_lag:,} messages about pages are not indexed yet; it is asked without them")
    return choices


def _print_plan(experiment: Experiment, planned: list[PlannedArm], choices: TrialChoices, json: bool) -> None:
    cases = askable(experiment.dataset, experiment.grid.site)
    questions, calls = left(planned, cases, choices)
    if json:
        names = [each.arm.name for each in planned]
        print_json({"arms": names, "cases": len(cases), "to_ask": questions, "most_calls": calls})
        return
    lines = [(each.arm.name, len(each.read().observed)) for each in planned]
    out.print(table(("arm", f"asked of {len(cases)}#"), lines))
    out.print(
        f"\n{len(planned)} arms of {len(cases):,} cases: {questions:,} to ask, "
        f"at most about {calls:,} calls of the model"
    )


def _tell(experiment: Experiment, planned: list[PlannedArm], folder: Path, json: bool) -> None:
    found = report(experiment.grid, experiment.dataset, planned)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(markdown(found), encoding="utf-8")
    (folder / "report.html").write_text(html(found), encoding="utf-8")
    if json:
        print_json({"folder": str(folder), "report": told(found)})
        return
    _print(found)
    out.print(f"\nreport in {folder / 'report.md'} and {folder / 'report.html'}", markup=False, soft_wrap=True)


def _print(found: ExperimentReport) -> None:
    shown = found.shown
    lines = [
        (
            arm.name,
            arm.asked,
            *(f"{arm.figures[name].mean:.3f}" if name in arm.figures else "" for name in shown),
            f"{arm.latency_ms['p50']:,.0f}",
            arm.verdict,
        )
        for arm in found.arms
    ]
    out.print(table(("arm", "cases#", *(f"{name}#" for name in shown), "ms#", ""), lines))
    for arm in found.arms:
        if arm.failed:
            out.print(f"failed: {failures(arm)}, of {arm.name}", markup=False, soft_wrap=True)
    if found.missing:
        out.print(f"not asked yet: {'; '.join(found.missing)}", markup=False, soft_wrap=True)
    if found.needed:
        out.print(f"too few cases: about {found.needed:,} show a difference of {found.worth:g} in every arm")


@contextmanager
def _alone(answers: Path) -> Iterator[None]:
    """Two commands at once would ask what they have in common twice. Raises: WrongUse: another one is at work."""
    answers.mkdir(parents=True, exist_ok=True)
    with (answers / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise WrongUse(f"{answers}: another experiment is under way here") from None
        yield


@contextmanager
def _bar(experiment: Experiment, planned: list[PlannedArm]) -> Iterator[Callable[[str, int], None]]:
    """Shows how many answers are there of all arms together."""
    cases = len(askable(experiment.dataset, experiment.grid.site))
    done = {each.arm.name: len(each.read().observed) for each in planned}
    with Bars(transient=True) as bars:

        def asked(name: str, count: int) -> None:
            done[name] = count
            bars.step("asking", sum(done.values()), cases * len(planned), says=f"asking: {name}")

        yield asked
