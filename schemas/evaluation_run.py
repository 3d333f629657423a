"""Evaluations that a gateway runs: what is ordered, what it may cost, and how far it is."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from schemas.base import Wire
from schemas.evaluation import JudgeNumbers, RunId, Share

MAX_DATASET = 4 * 2**20  # characters
MAX_VARIED = 20  # settings of an order, and values of one
MAX_ARMS = 24

Measure = Annotated[str, StringConstraints(max_length=50)]
Values = Annotated[tuple[Any, ...], Field(min_length=1, max_length=MAX_VARIED)]


class EvaluationOrder(Wire):
    """A dataset to ask, the settings to ask it under, and who judges the answers."""

    dataset: str = Field(
        default="", max_length=200, description="A file of the site's folder of datasets, as the list names it."
    )
    content: str = Field(
        default="", max_length=MAX_DATASET, description="The text of a dataset instead, as YAML or NDJSON."
    )
    corrections: bool = Field(
        default=True, description="Also ask the questions of the corrections in force; alone where there is no dataset."
    )
    base: dict[str, Any] = Field(
        default_factory=dict,
        max_length=MAX_VARIED,
        description="Settings of all arms, as in a grid of `pagewire eval sweep`; the rest is as for visitors.",
    )
    vary: dict[str, Values] = Field(
        default_factory=dict,
        max_length=MAX_VARIED,
        description=f"Values of settings, each with each other, {MAX_ARMS} arms at most; empty: only the base.",
    )
    measures: tuple[Measure, ...] = Field(
        default=("right",), min_length=1, max_length=10, description="Those by which arms are compared with the base."
    )
    judge: tuple[Measure, ...] = Field(
        default=(), max_length=10, description="Judged measures; `all`: all of them; empty: no judge is asked."
    )
    judge_model: str = Field(default="", max_length=200, description="Default: the model that is set to judge.")
    numbers: JudgeNumbers = JudgeNumbers()
    calls: int = Field(default=2_000, ge=0, description="Calls of the model that the answers may cost; then it ends.")
    judge_calls: int = Field(default=2_000, ge=0, description="Calls of the judge, of all arms together.")
    at_once: int = Field(default=2, ge=1, le=16, description="Cases asked, or answers judged, side by side.")
    note: str = Field(default="", max_length=300, description="For people: what is tried out.")


class EvaluationPlan(Wire):
    """What an order would ask, and what it may cost."""

    dataset: str
    cases: int = Field(description="Of this site, that can be asked at any time.")
    arms: tuple[str, ...]
    questions: int = Field(description="All cases under all arms, with the questions before them.")
    calls: int = Field(description="Calls of the model that the answers may cost, if none fails.")
    judge: str = Field(description="The model that judges; empty: none is asked.")
    judge_calls: int = Field(description="Calls of the judge, about: a short answer has some four claims.")


class ArmProgress(Wire):
    """An arm of an evaluation."""

    name: str
    asked: int = 0
    run: RunId | None = Field(default=None, description="Its published run; null: it is not finished.")
    figures: dict[str, Share] = Field(default_factory=dict, description="Means over all cases, by measure.")
    verdict: str = Field(default="", description="`better` or `worse` than the base in a measure, where that is shown.")


class DatasetChoice(Wire):
    """A dataset that can be ordered by its name."""

    name: str
    cases: int


class DatasetList(Wire):
    """The datasets of a site's folder, and the questions of its corrections."""

    datasets: tuple[DatasetChoice, ...]
    corrections: int = Field(description="Questions of corrections in force.")
