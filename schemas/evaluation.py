"""Published runs of `pagewire eval run`: what a dataset said of a site, and a part of each case, for people.

A case of an evaluation, made from an answer that an operator has reviewed.

Evaluations that a gateway runs: what is ordered, what it may cost, and how far it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from schemas.base import GivenLang, PageId, Wire, form
from schemas.query import MAX_QUESTION

MAX_RESULTS = 2_000  # cases of a published run
MAX_SHOWN = 2_000  # characters of an answer, and of a reference answer
MAX_GROUPS = 500
MAX_FIGURES = 100

RunId = Annotated[str, form(r"^[0-9a-f]{16}$", "16 digits of 0-9 and a-f, as the list of runs shows it")]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Shown = Annotated[str, StringConstraints(max_length=MAX_SHOWN)]
Share = Annotated[float, Field(ge=0, le=1)]


class JudgeNumbers(Wire):
    """The numbers that the measures `claims` and `rubrics` make of what a judge says."""

    f: Share = Field(default=0.0, description="`claims`: worth of a claim that neither follows nor is contradicted.")
    rounded_from: Share = Field(
        default=0.4, description="`claims`: a figure from here on counts as 1 where figures are shown rounded."
    )
    equivalent: Share = Field(default=1.0, description="`rubrics`: answer and reference say the same.")
    superset: Share = Field(default=1.0, description="`rubrics`: the answer says all of the reference, and more.")
    subset: Share = Field(default=0.5, description="`rubrics`: the answer says a part of the reference.")
    contradiction: Share = Field(default=0.0, description="`rubrics`: the two cannot both be true.")
    independent: Share = Field(default=0.0, description="`rubrics`: none of these.")

    def label(self, *names: str) -> str:
        """Those of these names that are not the usual ones, as "+f=0.5"; empty where all are."""
        usual = type(self)()
        given = {name: getattr(self, name) for name in names}
        return "".join(f"+{name}={value:g}" for name, value in given.items() if value != getattr(usual, name))


class RunFigure(Wire):
    """A mean over cases, with its 95 % interval."""

    cases: int = Field(ge=0)
    mean: Share
    low: Share
    high: Share


class JudgedRunFigure(RunFigure):
    """A judge's figure: a mean over the answers that it has judged. No decision depends on it."""

    judged: int = Field(ge=0, description="Answers that it has judged.")
    of: int = Field(ge=0, description="Answers that it was asked about.")
    at_worst: Share = Field(description="The mean if every answer that was not judged were worth 0.")
    at_best: Share = Field(description="The mean if each of them were worth 1.")
    rounded: Share | None = Field(
        default=None,
        description="The mean if each answer's figure from `rounded_from` on counts as 1; null: none does.",
    )


class CaseResult(Wire):
    """The result of a case."""

    case: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    question: Annotated[str, StringConstraints(max_length=MAX_QUESTION)]
    lang: GivenLang | None = None
    tags: tuple[Name, ...] = Field(default=(), max_length=50)
    expect: Annotated[str, StringConstraints(max_length=20)] | None = Field(
        default=None, description="`answer`, `refuse` or `courtesy`; null: not given."
    )
    pages: tuple[PageId, ...] = Field(default=(), max_length=50, description="Those that are right.")
    reference: Shown = Field(default="", description="A reference answer.")
    answer: Shown = ""
    cited: tuple[PageId, ...] = Field(default=(), max_length=50)
    failed: Annotated[str, StringConstraints(max_length=100)] | None = Field(default=None, description="The code.")
    figures: dict[Name, Share] = Field(default_factory=dict, max_length=MAX_FIGURES, description="By measure.")


class RunSummary(Wire):
    """The dataset, the gateway, and the figures."""

    dataset: Name
    version: Annotated[str, StringConstraints(max_length=100)] = ""
    fingerprint: Annotated[str, form(r"^[0-9a-f]{12}$", "12 digits of 0-9 and a-f")] = Field(
        description="Of what the cases say: runs with the same one are of the same dataset."
    )
    url: Annotated[str, StringConstraints(max_length=500)] = Field(description="Of the gateway that was asked.")
    begun: AwareDatetime
    cases: int = Field(ge=0, description="Of the dataset, for this site.")
    asked: int = Field(ge=1)
    groups: dict[Name, dict[Name, RunFigure]] = Field(
        max_length=MAX_GROUPS, description="By group (`all`, `lang de`, `tag prices`) and measure."
    )
    judge: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="", description="The model that has judged the answers; empty: no judge was asked."
    )
    judged: dict[Name, dict[Name, JudgedRunFigure]] = Field(
        default_factory=dict, max_length=MAX_GROUPS, description="Its figures, as `groups`. Advisory."
    )
    failed: dict[Name, int] = Field(default_factory=dict, max_length=MAX_FIGURES, description="By code.")
    latency_ms: dict[Name, float] = Field(default_factory=dict, max_length=10, description="p50, p95, most.")
    tokens: dict[Name, int] = Field(default_factory=dict, max_length=10)
    note: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = Field(
        default="", description="For people: what was tried out."
    )


class NewRun(RunSummary):
    """A run to be published."""

    results: tuple[CaseResult, ...] = Field(min_length=1, max_length=MAX_RESULTS)


class ListedRun(RunSummary):
    """A published run, without its cases."""

    id: RunId
    site: str
    published_by: str = Field(description="Name of the key; for who may not read the audit log it is left out.")
    published_at: AwareDatetime


class PublishedRun(ListedRun):
    """A published run."""

    results: tuple[CaseResult, ...]


class RunList(Wire):
    """Published runs, the newest first."""

    runs: tuple[ListedRun, ...]


MAX_PAGES = 40  # of a case
MAX_TAGS = 20
MAX_ANSWER = 8_000  # characters
MAX_NOTE = 2_000  # characters
MAX_BEFORE = 10  # questions

CaseFormat = Literal["ndjson", "yaml"]
Asked = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION)]
Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]


class NewCase(Wire):
    """A question, with the criteria of a right answer."""

    question: Asked
    lang: GivenLang | None = Field(default=None, description="Of the question, and of the answer.")
    history: tuple[Asked, ...] = Field(
        default=(), max_length=MAX_BEFORE, description="What was asked before, the oldest first."
    )
    pages: tuple[PageId, ...] = Field(default=(), max_length=MAX_PAGES, description="Where the answer stands.")
    answer: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_ANSWER)] = Field(
        default="", description="A right one, to compare with."
    )
    expect: Literal["answer", "refuse", "courtesy"] | None = Field(
        default=None, description="Default: `answer`, where there are pages or an answer."
    )
    tags: tuple[Tag, ...] = Field(default=(), max_length=MAX_TAGS)
    note: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_NOTE)] = Field(
        default="", description="For people."
    )
    id: Annotated[str, form(r"^[\w.:-]{1,100}$", "letters, digits, `_`, `.`, `:` and `-`, 100 at most")] | None = Field(
        default=None, description="Default: made from the question, its language and its history."
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.expect in ("refuse", "courtesy") and (self.pages or self.answer):
            raise ValueError(f"pages and answer are of what is answered, not of expect {self.expect}")
        return self


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
