"""`answer.events`: one discriminated union, from the answer stage to the visitor's screen."""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from schemas.base import Message, SiteId, Wire, optional
from schemas.query import Became, FoundPage, Gate, Grade, RequestId, SearchMode, Source, Sure
from schemas.query import PendingCall as PendingCall
from schemas.query import PromptMessage as PromptMessage
from schemas.query import Usage as Usage


class Accepted(Wire):
    type: Literal["accepted"] = "accepted"
    request_id: RequestId
    conversation_id: RequestId


class QuestionRephrased(Wire):
    type: Literal["rephrased"] = "rephrased"
    question: str
    mode: SearchMode


class SourcesFound(Wire):
    type: Literal["sources"] = "sources"
    grade: Grade
    sources: tuple[Source, ...]


class Token(Wire):
    """A piece of the answer's text; the pieces of an attempt, end to end, are the answer."""

    type: Literal["token"] = "token"
    text: str


# How sure an answer is that no model wrote:
#   said   a row, a sentence or a short list that answers by itself
#   place  the page that is most likely to answer, and what stands there
#   pages  at most titles of pages
#   courtesy  nothing was asked: a greeting, thanks, whether somebody is there
Certainty = Literal["said", "place", "pages", "courtesy"]
# Who has put an answer's words together:
#   model      a language model, from the sources
#   quotation  the page itself: its words are quoted
#   site       people: the site's fixed words, and answers that its editors have corrected
GeneratedBy = Literal["model", "quotation", "site"]


class Citation(Wire):
    """Source `n` supports `text[start:end]` of the answer (Unicode characters)."""

    type: Literal["citation"] = "citation"
    n: int = Field(ge=1)
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    quote: str | None = Field(default=None, description="The source's own sentence, when known: for deep links.")


# What of a sentence the passages that it cites do not say:
#   figure      they have no such figure
#   belongs     they say it of something else
#   name        they name another, or none
#   negation    they say the opposite
#   entailment  a judge says that they do not say it
DoubtKind = Literal["figure", "belongs", "name", "negation", "entailment"]


class Doubted(Wire):
    """`text[start:end]` of the answer is a sentence that its sources do not bear out; a note behind it says so."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    kind: DoubtKind
    said: str = Field(description="What of it they do not say.")


class WholeTable(Wire):
    """The whole table, from the page, of which the answer quotes rows."""

    n: int = Field(ge=1, description="Of the source.")
    start: int = Field(ge=0, description="Where its quoted rows begin in the answer, their header included.")
    text: str = Field(description="Markdown.")


StepKind = Literal["model", "search", "lookup", "tool", "quote", "error"]


STEP_CHARS = 500  # of each text of a step; the last one is … where it is cut


class Step(Wire):
    """One step of making an answer, for display. Texts are cut."""

    kind: StepKind
    asked: str = ""
    said: str = ""
    ms: float = 0.0


class QuestionMeaning(Wire):
    """One of several meanings of a question that many pages match."""

    label: str = Field(description="To be shown: a page's title, or a heading on it.")
    question: str = Field(description="To be asked when it is chosen.")


class TrialFindings(Wire):
    """Details of a trial's answer, for operators."""

    became: Became = Field(description="What a visitor would have got.")
    gate: Gate | None = Field(default=None, description="How the gate came to its grade.")
    sure: Sure | None = Field(default=None, description="How sure the search was of its best evidence.")
    prompt: tuple[PromptMessage, ...] = Field(
        default=(), description="From which the model wrote the answer, with the sources as it saw them."
    )
    corrections: tuple[str, ...] = Field(default=(), description="Ids of the editors' corrections that were used.")
    index: str | None = Field(
        default=None, description="The index that was searched, where one was named; null: the live one."
    )
    found: tuple[FoundPage, ...] = Field(default=(), description="The pages found, the best first, cited or not.")


class AnswerMarks(Wire):
    """What a reader should know of an answer besides its text."""

    certainty: Certainty | None = Field(
        default=None,
        description="Where no model wrote it: an answer is `said`, a `place` on a page is shown, or `pages` are named; "
        "`courtesy`: nothing was asked; null of a model's answer, and where it was written before answers said so.",
    )
    generated_by: GeneratedBy | None = Field(
        default=None,
        description="`model`, `quotation` of a page, or `site`: fixed words, or what an editor has corrected; null: "
        "written before answers said so.",
    )
    handover: bool = Field(
        default=False,
        description="Whether to offer the form by which a visitor leaves a message for a person (`POST "
        "/v1/sites/{site}/handovers`): somebody was asked for, or no page answers. Never where the site has not set it "
        "up.",
    )
    doubted: tuple[Doubted, ...] = Field(
        default=(),
        description="Sentences that the sources do not bear out either, in the text with a note behind each.",
    )
    narrower: tuple[QuestionMeaning, ...] = Field(
        default=(), description="Where many pages speak of it: what may be meant, the nearest first; never one alone."
    )
    tables: tuple[WholeTable, ...] = Field(
        default=(), description="Whole tables of which only some rows are quoted; none that is very long."
    )


class Answered(AnswerMarks):
    """The whole answer, so that a reader may skip all other events."""

    type: Literal["answer"] = "answer"
    text: str
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...] = Field(description="All sources, `cited` true on those the answer uses.")
    extractive: bool = Field(description="True when no model wrote it: the text quotes the pages.")
    stopped: bool = Field(default=False, description="True when the visitor stopped it: the text is what came before.")
    cut: bool = Field(
        default=False,
        description="True when the limit of what its model may write ended it: the last whole sentence, and …",
    )
    left_out: int = Field(
        default=0,
        description="Sentences that the model wrote and the sources it cites do not bear out: not in the text.",
    )
    pending: PendingCall | None = optional(
        description="Where the answer asks for what a tool still needs: the call. Absent elsewhere."
    )
    strategy: str = Field(default="", description="What was asked to answer: a strategy's name, or `quote`.")
    trace: tuple[Step, ...] = Field(default=(), description="The steps, in order; of very many only the first.")
    usage: Usage = Usage()
    timings_ms: dict[str, float] = Field(default_factory=dict)
    found: tuple[FoundPage, ...] = Field(
        default=(), description="With `ranked`: the pages that the search alone finds; no stream of a visitor has it."
    )
    trial: TrialFindings | None = Field(default=None, description="Of a trial; no stream of a visitor has it.")


class Done(Wire):
    type: Literal["done"] = "done"


class Failed(Wire):
    """Plain words for the visitor, in their language; never internals."""

    type: Literal["error"] = "error"
    code: str
    message: str


class Restart(Wire):
    """Forget the tokens so far: the answer starts again."""

    type: Literal["restart"] = "restart"
    attempt: int = Field(ge=2)


Event = Annotated[
    Accepted | QuestionRephrased | SourcesFound | Token | Citation | Answered | Done | Failed | Restart,
    Field(discriminator="type"),
]


class AnswerEvent(Message):
    """One event of one request. Within an attempt `seq` counts from 0 without gaps; later attempts win."""

    request_id: RequestId
    site: SiteId | None = Field(default=None, description="Whose answer it is; null: written before events said so.")
    attempt: int = Field(default=1, ge=1)
    seq: int = Field(ge=0)
    event: Event

    @property
    def final(self) -> bool:
        """Whether it is the last event."""
        return isinstance(self.event, Done)


class WrittenToken(NamedTuple):
    """A token's event as our own writer encodes it, parsed only as far as passing it on requires: a fifth of the work.
    Otherwise like an `AnswerEvent`.
    """

    site: str | None
    attempt: int
    seq: int
    data: str  # the token without its type, as JSON

    @property
    def event(self) -> Token:
        return Token(**json.loads(self.data))

    @property
    def final(self) -> bool:
        return False


# Exactly as `AnswerEvent.encode` writes it. No control characters, because a frame is one line.
_TOKEN = re.compile(
    rb'\{"v":1,"request_id":"[\w-]+","site":(?:null|"([a-z0-9-]+)"),"attempt":(\d+),"seq":(\d+),'
    rb'"event":\{"type":"token",("text":"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00[01][0-9a-f])[^"\\\x00-\x1f]*)*")\}\}'
)


def read_event(value: bytes | None) -> AnswerEvent | WrittenToken:
    """Parse an event of the log. Raises: WireError."""
    if value and (token := _TOKEN.fullmatch(value)):
        site, attempt, seq, data = token.groups()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            pass
        else:
            return WrittenToken(None if site is None else site.decode(), int(attempt), int(seq), f"{{{text}}}")
    return AnswerEvent.decode(value)
