"""Evaluations in the background: one gateway asks and judges, all show it, one per site at a time."""

from __future__ import annotations

from pydantic import Field

from pipelines.operate.site_runs import AlreadyRunning, RunState, SiteRun, SiteRuns
from schemas.base import Wire
from schemas.evaluation_run import ArmProgress, EvaluationPlan


class EvaluationRunning(AlreadyRunning):
    """An evaluation of the site is at work."""

    code = "evaluation-running"


class EvaluationRun(SiteRun):
    """The evaluation that is at work on a site, or the last one."""

    plan: EvaluationPlan
    note: str = ""
    step: str = Field(default="", description="What it is at: `asking` or `judging`, done of total.")
    arm: str = Field(default="", description="The arm that it is at.")
    done: int = 0
    total: int = 0
    calls: int = Field(default=0, description="Calls of the model for the answers so far.")
    judge_calls: int = 0
    arms: tuple[ArmProgress, ...] = ()
    spent: str = Field(default="", description="Which budget was spent before all was asked: `calls`, `judge_calls`.")


class LastEvaluation(Wire):
    """The answer of `GET .../evaluation-run`."""

    state: RunState | None = Field(description="Null: there was none yet. `broken-off`: its gateway died.")
    run: EvaluationRun | None


EvaluationRuns = SiteRuns[EvaluationRun]
