"""Labels: people's ratings of answers in the question log, and the agreement of two raters."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from schemas.base import Lang, PageId, Wire
from schemas.case import MAX_ANSWER
from schemas.outcome import Became
from schemas.query import RequestId

MAX_WHY = 2_000  # characters
MAX_PAGES = 20  # of a label

Mark = Literal["right", "partly", "wrong", "unanswerable"]
# one: the second rater's label is missing; disagreed: the marks differ, and there is no decision yet.
LabelState = Literal["one", "agreed", "disagreed", "settled"]


class NewLabel(Wire):
    """A rater's label of an answer."""

    mark: Mark = Field(
        description="`unanswerable`: the site's pages do not tell, and a right answer says so. A refusal that is right "
        "is `right` or `unanswerable`."
    )
    why: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_WHY)] = ""
    better: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_ANSWER)] = Field(
        default="", description="A better answer."
    )
    pages: tuple[PageId, ...] = Field(default=(), max_length=MAX_PAGES, description="Where the answer stands.")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.mark == "unanswerable" and (self.better or self.pages):
            raise ValueError("better and pages are of what can be answered, not of the mark unanswerable")
        return self


class AnswerLabel(NewLabel):
    """A stored label, with its rater."""

    rater: str = Field(
        description="Name of the key, or of the proxy's user; for who may not read the audit log a pseudonym, but for "
        "their own."
    )
    at: AwareDatetime


class LabelledQuestion(Wire):
    """A question of the log with its labels. A rater sees another's label after giving their own."""

    request_id: RequestId
    asked_at: AwareDatetime
    lang: Lang = Field(description="Asked in.")
    earlier: tuple[str, ...] = Field(
        default=(), description="What was asked before it in its conversation, the oldest first; not in lists."
    )
    question: str | None
    answer: str | None
    became: Became
    cited: tuple[PageId, ...] = Field(default=(), description="Pages that the answer cites.")
    state: LabelState | None = Field(description="Null: it has no label.")
    labels: tuple[AnswerLabel, ...] = Field(default=(), description="The earliest first.")
    hidden: int = Field(default=0, ge=0, description="Labels of others that are not shown before yours is given.")
    settled: AnswerLabel | None = Field(default=None, description="What counts where two differed, and who says so.")


class LabelList(Wire):
    """Labelled questions, the newest first."""

    questions: tuple[LabelledQuestion, ...]


class LabelQueue(Wire):
    """A rater's questions to label. Two raters get the same ones."""

    sample: int = Field(ge=0, description="Questions that are to be labelled, by two raters each.")
    yours: int = Field(ge=0, description="Of these, labelled by you.")
    both: int = Field(ge=0, description="Of these, labelled by two.")
    next: tuple[RequestId, ...] = Field(description="Left for you, in the order to label them in.")


class Estimate(Wire):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


class RaterAgreement(Wire):
    """Two raters' agreement on right answers, over the questions that both have labelled."""

    one: str
    other: str
    group: str = Field(description="`all`, or a language: `lang de`.")
    questions: int = Field(ge=0)
    same: Estimate | None = Field(description="Share with the same mark; null: no questions.")
    one_right: Estimate | None = Field(description="Share that the one calls right.")
    other_right: Estimate | None
    kappa: Estimate | None = Field(
        description="Cohen's, of right or not; null where base rates leave nothing to agree on."
    )


class LabelAgreement(Wire):
    """The agreement of each pair of raters, overall and by language."""

    pairs: tuple[RaterAgreement, ...]


JudgeFigure = Literal["faithfulness", "context relevancy"]
# As pipelines.evaluate.judged.agreement has it.
JudgeTrust = Literal["too few labels", "not to be trusted", "corrected by labels", "as it stands"]


class JudgeGroup(Wire):
    """Judge and people over the answers of a group."""

    group: str = Field(description="`all`, or a language: `lang de`.")
    questions: int = Field(ge=0, description="Answers that have a verdict and a label that counts.")
    people_right: Estimate | None = Field(description="Of these, the share that people call right: the base rate.")
    judge_right: Estimate | None = Field(description="Of the same, the share that the judge does.")
    kappa: Estimate | None = Field(description="Cohen's; null where base rates leave nothing to agree on.")
    true_positives: Estimate | None = Field(description="Of what people call right, the share that the judge does.")
    true_negatives: Estimate | None = Field(description="Of what people call wrong, the share that the judge does.")
    judged: int = Field(ge=0, description="Answers with a verdict, labelled or not.")
    judged_right: Estimate | None = Field(description="Of all that are judged, the share that the judge calls right.")
    right: Estimate | None = Field(
        description="The share of right answers by labels and judge together, which is right with any judge."
    )
    trust: JudgeTrust = Field(description="How far the judge's figures may be trusted.")


class JudgeAgreement(Wire):
    """The agreement of the judge of a site's answers with its raters."""

    judge: str | None = Field(
        description="The model of the newest verdict; null: nothing is judged, there is no judge."
    )
    figure: JudgeFigure
    bar: float = Field(description="The judge says right from here on.")
    judged: int = Field(ge=0, description="Answers of the last 90 days that it has judged, by the prompts of now.")
    other_judges: int = Field(ge=0, description="Verdicts of other models or prompts: they do not count.")
    undecided: int = Field(ge=0, description="Verdicts without this figure: they do not count.")
    constancy: float | None = Field(
        default=None,
        description="How often it says the same of the same answer; null: no answer was judged twice "
        "(`judging.again` of the site).",
    )
    repeated: int = Field(default=0, ge=0, description="Answers that were judged twice.")
    groups: tuple[JudgeGroup, ...] = Field(description="`all` first, then the languages.")
