"""`query.outcomes`: the outcome of each question, and its visitor's feedback, for operators.
`query.verdicts`: a judge's verdicts on some of the answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field

from schemas.answer import DoubtKind, GeneratedBy
from schemas.base import Lang, Message, PageId, SiteId, Wire, optional
from schemas.conversation import Feedback
from schemas.page import FieldName
from schemas.query import Became as Became
from schemas.query import CorrectedBy, CourtesyKind, Gate, Grade, ModelCall, QuestionVector, RequestId, SearchMode, Sure


class OutcomeSource(Wire):
    """A source of the answer, without its text, which is in the index."""

    page_id: PageId
    lang: Lang
    title: str = ""
    url: str = ""
    field: FieldName
    ord: int = Field(ge=0, description="Chunk of the best hit in the passage.")
    score: float = Field(description="Fused score.")
    cosine: float | None = Field(default=None, description="Null if found by keywords alone.")
    cited: bool = False


class DoubtedSentence(Wire):
    """A sentence of a model that its sources do not bear out, and why."""

    sentence: str = Field(description="As the model wrote it, without its citations.")
    kind: DoubtKind
    said: str = Field(description="What of it the sources do not say.")
    cited: tuple[int, ...] = Field(default=(), description="Numbers of the sources it cites; none: all were read.")
    marked: bool = Field(default=False, description="The visitor saw it, with a note; else it was left out.")


class ToolRun(Wire):
    """A call of a tool on the way to the answer, as the trace has it: both texts are cut."""

    call: str = Field(description="The tool's name, with its arguments as JSON.")
    said: str = Field(description="Its result, or why there is none.")
    ms: float = Field(default=0.0, ge=0)


class Outcome(Wire):
    """The outcome of a question. Without the visitor's name, number and access groups; texts are masked."""

    type: Literal["outcome"] = "outcome"
    asked_at: AwareDatetime
    asked_in: Lang = Field(description="By the question's stop words; where they say nothing, as `lang`.")
    lang: Lang = Field(description="It was answered in.")
    question: str | None = Field(description="Masked; null: the site logs no text, or it was erased.")
    rephrased: str | None = Field(default=None, description="What was searched, masked; null as `question`.")
    became: Became
    mode: SearchMode | None = Field(default=None, description="Null: it failed before it was searched.")
    courtesy: CourtesyKind | None = None
    grade: Grade | None = Field(default=None, description="Null: it failed before it was searched.")
    gate: Gate | None = Field(default=None, description="How the gate came to its grade.")
    sure: Sure | None = Field(default=None, description="How sure the search was of its best evidence.")
    hits: tuple[OutcomeSource, ...] = ()
    restricted: bool | None = Field(
        default=None,
        description="Whether who asked has access groups, so that pages of `hits` may be for some only; null: an "
        "earlier version logged it, which did not say.",
    )
    via: str = optional("", description="As in the question.")
    client: str = optional("", description="As in the question.")
    asker: str = optional("", description="As in the question.")
    corrections: tuple[str, ...] = Field(default=(), description="Ids of the editors' corrections that were used.")
    corrected: CorrectedBy | None = Field(default=None, description="How one of them has decided the answer.")
    tools: tuple[str, ...] = optional((), description="Tools of the site that the answer cites, by name.")
    tool_runs: tuple[ToolRun, ...] = optional(
        (), description="Calls of tools, also of those that every site has; masked and kept as `answer`."
    )
    strategy: str = Field(default="", description="A strategy's name, or `quote`; empty: it failed before.")
    extractive: bool = Field(default=False, description="True when no model wrote the answer.")
    generated_by: GeneratedBy | None = Field(
        default=None, description="Who made the answer's text; null: nobody, or an earlier version logged it."
    )
    handover: bool = Field(default=False, description="The form for a message to a person was offered.")
    model: str | None = None
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    timings_ms: dict[str, float] = Field(default_factory=dict, description="By stage.")
    first_token_ms: float | None = Field(default=None, description="From the question to the answer's first word.")
    stopped: bool = Field(default=False, description="Its visitor stopped it.")
    cut: bool = Field(default=False, description="The limit of what its model may write ended it.")
    left_out: int = Field(
        default=0, ge=0, description="Sentences that the sources do not bear out, marked for the visitor or left out."
    )
    failed: str | None = Field(default=None, description="The code of the error that its visitor saw.")
    answer: str | None = Field(
        default=None,
        description="What its visitor read, masked but for what the pages say; null as `question`, and where the "
        "visitor may read pages that not everybody may.",
    )
    calls: tuple[ModelCall, ...] = optional(
        (),
        description="Of models, in order, masked as `answer`, and not kept where that is not; only of a site with "
        "`log_prompts`.",
    )
    doubted: tuple[DoubtedSentence, ...] = optional(
        (), description="Sentences of all tries to answer that the sources do not bear out; kept as `calls`."
    )
    vector: QuestionVector | None = Field(
        default=None,
        description="Of `rephrased`. Null where that is null or was masked: a vector tells much of its words.",
    )

    @property
    def wordless(self) -> Outcome:
        """Without anybody's words."""
        nothing = dict.fromkeys(("question", "rephrased", "answer", "vector"))
        nothing |= dict.fromkeys(("calls", "doubted", "tool_runs"), ())
        return self.model_copy(update=nothing | {"asker": ""})


class Rated(Wire):
    """The visitor's feedback on the answer; the newest counts. The comment is masked."""

    type: Literal["rated"] = "rated"
    feedback: Feedback


class Forgotten(Wire):
    """The visitor has deleted the conversation: its texts must be deleted, also those that arrive later."""

    type: Literal["forgotten"] = "forgotten"
    at: AwareDatetime
    requests: tuple[RequestId, ...] = Field(description="Of the questions that it had.")


class OutcomeEvent(Message):
    """An event of a question. All events of one conversation have one key, so they stay in order."""

    site: SiteId
    request_id: RequestId = Field(description="Of the question; of `forgotten` the conversation's last one.")
    conversation: str = Field(description="A hash of the conversation's id with a secret of the gateway.")
    event: Annotated[Outcome | Rated | Forgotten, Field(discriminator="type")]

    @property
    def key(self) -> str:
        return self.conversation


class SecondVerdict(Wire):
    """A second verdict of the same model on the same answer."""

    faithfulness: float | None = Field(default=None, ge=0, le=1, description="As of the first time.")
    context_relevancy: float | None = Field(default=None, ge=0, le=1, description="As of the first time.")


class Verdict(Wire):
    """A model's verdict on an answer that a visitor got. Without texts, which are in the outcome."""

    judged_at: AwareDatetime
    judge: str = Field(description="The model.")
    prompts: str = Field(default="", description="Fingerprints of what it was asked by.")
    faithfulness: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of the answer's claims that its sources bear out; null: it has none.",
    )
    context_relevancy: float | None = Field(
        default=None, ge=0, le=1, description="Share of the sources that the answer needed."
    )
    unjudged: str | None = Field(default=None, description="Why something was not judged, as a code.")
    again: SecondVerdict | None = Field(
        default=None, description="Of a share of the answers; null: it was asked once. It changes no figure."
    )


class VerdictEvent(Message):
    """A verdict on its way to the question log; of a question judged twice the newest counts."""

    site: SiteId
    request_id: RequestId
    conversation: str = Field(description="As of its outcome.")
    asked_at: AwareDatetime = Field(description="The question: the verdict is of that day's budget.")
    verdict: Verdict

    @property
    def key(self) -> str:
        return self.conversation


class QuestionFilter(Wire):
    """Filters of logged questions; all given ones must match."""

    model_config = ConfigDict(validate_by_name=True)

    since: AwareDatetime | None = Field(default=None, alias="from", description="Asked then or later.")
    until: AwareDatetime | None = Field(default=None, alias="to", description="Asked before.")
    lang: Lang | None = Field(default=None, description="Asked in, or answered in.")
    became: Became | None = Field(default=None, alias="outcome", description="What became of it.")
    feedback: Literal["up", "down", "any"] | None = Field(default=None, description="What its visitor thought.")
    page: PageId | None = Field(default=None, description="The answer cites the page of this id.")
    text: str | None = Field(
        default=None,
        max_length=500,
        description="Words of the question or of the comment; the last may be a beginning.",
    )


class QuestionQuery(QuestionFilter):
    """The query of `GET /v1/admin/sites/{site}/questions`."""

    model_config = ConfigDict(extra="ignore")

    limit: int = Field(default=100, ge=1, le=1_000, description="Of JSON; CSV and NDJSON have all that fit.")
    after: str | None = Field(default=None, max_length=500, description="`next` of the list before.")
    format: Literal["json", "csv", "ndjson"] | None = Field(default=None, description="Goes before `Accept`.")


class LoggedQuestion(Wire):
    """A question in the log, with its visitor's feedback."""

    request_id: RequestId
    site: SiteId
    conversation: str = Field(description="The same for all questions of a conversation.")
    outcome: Outcome
    feedback: Feedback | None = None
    verdict: Verdict | None = Field(default=None, description="Null: not judged; the site judges none, or a sample.")
    erased: bool = Field(default=False, description="Its conversation was deleted, and its words with it.")


class QuestionRow(Wire):
    """A line of the list."""

    request_id: RequestId
    conversation: str
    asked_at: AwareDatetime
    asked_in: Lang
    lang: Lang
    question: str | None
    rephrased: str | None = None
    became: Became
    grade: Grade | None = None
    pages: tuple[PageId, ...] = Field(default=(), description="Those that the answer cites, and the reader may read.")
    restricted: bool | None = Field(default=None, description="As of its outcome.")
    strategy: str = ""
    model: str | None = None
    tokens: int = Field(default=0, ge=0, description="Read and written.")
    first_token_ms: float | None = None
    stopped: bool = False
    failed: str | None = None
    feedback: Literal["up", "down"] | None = None
    comment: str | None = None
    faithfulness: float | None = Field(default=None, description="As in its verdict.")
    context_relevancy: float | None = Field(default=None, description="As in its verdict.")
    via: str = Field(default="", description="As in the question.")
    client: str = Field(default="", description="As in the question.")

    @classmethod
    def of(cls, logged: LoggedQuestion) -> QuestionRow:
        outcome, feedback, verdict = logged.outcome, logged.feedback, logged.verdict
        same = {name: getattr(outcome, name) for name in cls.model_fields.keys() & Outcome.model_fields.keys()}
        return cls(
            **same,
            request_id=logged.request_id,
            conversation=logged.conversation,
            pages=cited_pages(outcome),
            tokens=outcome.prompt_tokens + outcome.completion_tokens,
            feedback=feedback.rating if feedback else None,
            comment=feedback.comment if feedback else None,
            faithfulness=verdict.faithfulness if verdict else None,
            context_relevancy=verdict.context_relevancy if verdict else None,
        )


class QuestionCounts(Wire):
    """Counts of the matching questions by outcome."""

    asked: int = Field(ge=0)
    answered: int = Field(default=0, ge=0)
    page: int = Field(default=0, ge=0, description="Shown the page that is most likely to have it.")
    refused: int = Field(default=0, ge=0)
    courtesy: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)
    liked: int = Field(default=0, ge=0)
    disliked: int = Field(default=0, ge=0)


class QuestionList(Wire):
    """The newest matching questions."""

    counts: QuestionCounts = Field(description="Of all that fit, not only of those listed.")
    questions: tuple[QuestionRow, ...]
    next: str | None = Field(default=None, description="Pass it as `after` for those that follow; null: none do.")


def cited_pages(outcome: Outcome) -> tuple[str, ...]:
    """Ids of the pages that the answer cites, each once, in its order."""
    return tuple(dict.fromkeys(hit.page_id for hit in outcome.hits if hit.cited))
