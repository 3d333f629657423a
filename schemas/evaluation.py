"""Published runs of `pagewire eval run`: what a dataset said of a site, and a part of each case, for people."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from schemas.base import GivenLang, PageId, Wire, form

MAX_RESULTS = 2_000  # cases of a published run
MAX_QUESTION = 4_000  # characters
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
