"""Messages of the query stages: the question, its rewriting, the sources found."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from schemas.base import Lang, Message, PageId, Revision, SiteId, Wire, form, optional
from schemas.compact import compact, expand
from schemas.flow import MAX_HITS as MAX_HITS
from schemas.flow import FlowParts
from schemas.ingest import CompactVectors, Vector32
from schemas.labels import Labels
from schemas.page import FieldName, PageStamp

MAX_QUESTION = 4_000  # characters; longer is refused at the edge with a clear answer
MAX_HISTORY = 3_000 * 4  # characters of what was said before: 3,000 tokens, at about four characters a token
HISTORY_MESSAGES = 15  # of a conversation that are kept in mind
MAX_PROMPT = 20_000  # characters of a prompt that is tried out: five times ours, and little beside a message's sources
MAX_RANKED = 100  # passages of the search alone
RANKING = "ranking"  # of the steps that are timed: what no answer waits for but one that is asked with `ranked`

RequestId = Annotated[str, form(r"^[A-Za-z0-9_-]{8,64}$", "8 to 64 letters, digits, `_` and `-`")]
SearchMode = Literal["semantic", "keyword", "courtesy"]  # courtesy: nothing is searched
# Messages that need no search; about: on the chat itself, conversation: on the conversation.
CourtesyKind = Literal["greeting", "thanks", "goodbye", "insult", "gibberish", "about", "conversation"]
# The gate's grade of a question:
#   0 fine: the pages answer it
#   1 they answer it, but the hits are spread over many pages: narrowing it down would help
#   2 unclear: too few of its words say what it is about
#   3 several things may be meant
#   4 there are pages near it, but none has the answer
#   5 no page is near it
Grade = Annotated[int, Field(ge=0, le=5, description="0 fine ... 5 nothing to answer from.")]


SureOf = Literal["unit", "page", "nothing"]
# What a visitor got:
#   answered  an answer that cites pages
#   page      no answer, but the page that most likely has it
#   refused   neither: the gate found no source, or the answer cites none
#   courtesy  a polite sentence: the message was no question about the website
#   failed    an apology: a service was away, or the deadline passed
Became = Literal["answered", "page", "refused", "courtesy", "failed"]


class PendingCall(Wire):
    """A call of a tool that waits for what only the visitor knows."""

    tool: str
    arguments: str = Field(description="Those that are known, a JSON object.")
    missing: tuple[str, ...] = Field(description="Names of the arguments that the visitor was asked for.")


class Turn(Wire):
    """An earlier question of the conversation and its answer."""

    question: str
    answer: str
    lang: Lang | None = Field(default=None, description="It was answered in; null: who asks has not said so.")
    pages: tuple[str, ...] = Field(default=(), description="Keys of the pages that the answer cites, in its order.")
    pending: PendingCall | None = optional(description="The call of a tool for which the answer asks.")


class Tuned(FlowParts, Wire):
    """Settings of answering that replace those of pagewire.yaml; null: as in pagewire.yaml."""

    strategy: str | None = Field(default=None, description="A strategy's name; `quote`: no model writes the answer.")
    model: str | None = Field(
        default=None, description="A model that `pagewire.yaml` names; asked by the steps of the answer."
    )
    temperature: float | None = Field(default=None, description="Of the same steps.")
    examples: int | None = Field(default=None, ge=0, description="Worked answers in the prompt, at most.")
    think: bool | None = Field(
        default=None,
        description="Whether the model thinks over the sources, step by step, before it writes; default: as the "
        "strategy does, of which `chain-of-thought` does and all others do not.",
    )
    rerank: bool | None = Field(
        default=None, description="Whether the configured reranker reads the hits again; default: where there is one."
    )
    sure_threshold: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Least chance that the best sentence, or its page, answers, for it to be shown where no model "
        "writes; higher refuses more.",
    )

    def over(self, other: Tuned) -> Tuned:
        """These settings; the other's for null fields. One that names a flow leaves nothing of the other's."""
        said = {name: value for name in Tuned.model_fields if (value := getattr(self, name)) is not None}
        replaced = dict.fromkeys(FlowParts.model_fields) if self.flow else {}
        return other.model_copy(update=replaced | said)


ShotChoice = Literal["dynamic", "fixed"]


class Trial(Tuned):
    """The site's settings that a trial changes; null: as for a visitor."""

    index: str | None = Field(
        default=None, description="Name of the site's index that is searched; null: the live one."
    )
    prompt: str | None = Field(
        default=None, max_length=MAX_PROMPT, description="Takes the place of what a prompt of the site says."
    )
    prompt_name: str = Field(default="answer", description="Which prompt that is.")
    order: int | None = Field(
        default=None, ge=0, description="Seed of the order of the worked answers; null: the nearest last."
    )
    shot_choice: ShotChoice | None = Field(
        default=None, description="How worked answers are chosen: `dynamic` by likeness, `fixed` in their file's order."
    )
    short: bool | None = Field(default=None, description="Whether a model answers in a few words, by a prompt for it.")


class FoundPage(Wire):
    """A page that a search found."""

    page_id: PageId
    lang: Lang


class LogPlace(Wire):
    """A place in a topic."""

    partition: int = Field(ge=0)
    offset: int = Field(ge=0)


class Question(Message):
    """`query.requests`: a visitor's question, as accepted at the edge."""

    request_id: RequestId
    conversation_id: RequestId
    site: SiteId
    lang: Lang = Field(description="Language to answer in.")
    guessed: bool = Field(
        default=False,
        description="The language was neither given nor shown by the words: the sources may decide on another one.",
    )
    question: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION)]
    history: tuple[Turn, ...] = ()
    replaced: str = Field(default="", description="The answer that was not wanted, when the question is asked again.")
    groups: tuple[str, ...] = Field(default=(), description="The visitor's access groups.")
    labels: Labels = optional({}, description="The answer comes from pages that have, of each key, one of the values.")
    logged_as: str | None = Field(
        default=None,
        description="A hash of the conversation's id, under which its outcome is logged; null: not at all.",
    )
    asker: str = optional(
        "",
        description="A hash of the visitor and of this question's words: it says whether one visitor has asked the "
        "same twice, and nothing else. Empty: the site shows no visitor what others have asked.",
    )
    trial: Trial | None = Field(
        default=None, description="Who runs the site tries something out; null: somebody wants to know it."
    )
    tuned: Tuned | None = Field(
        default=None,
        description="What was made live of its site's settings; null: the first stage has not looked yet, or nothing "
        "was.",
    )
    ranked: int = Field(
        default=0,
        ge=0,
        le=MAX_RANKED,
        description="Passages of the search alone whose pages are listed with the answer; 0: none.",
    )
    begins: LogPlace | None = Field(
        default=None, description="No event of its answer stands before it in `answer.events`; null: not known."
    )
    importing: bool = Field(default=False, description="Many pages of the site are being read in while it is asked.")
    via: str = optional("", description="`mcp`, `nlweb`; empty: by a chat or a program.")
    client: str = optional("", description="How the program calls itself that asks by `via`.")
    asked_at: AwareDatetime
    deadline: AwareDatetime = Field(description="After this the visitor gets an error; stages stop working on it.")

    @property
    def under(self) -> Tuned:
        """The trial's settings, then the live ones; the rest is as in pagewire.yaml."""
        live = self.tuned or Tuned()
        return live if self.trial is None else self.trial.over(live)


class Stop(Message):
    """`answer.stops`: the visitor has stopped an answer."""

    request_id: RequestId
    site: SiteId | None = Field(default=None, description="Where it was said; null: written before stops said so.")


class Signs(Wire):
    """Signs in a question's words that it depends on the one before it."""

    leans: bool = Field(description="It can hardly be understood alone.")
    opens: bool = Field(description='It begins as a follow-up does, perhaps after a word like "ok".')
    refers: bool = Field(description='It says "it", "there" or the like.')
    named: int = Field(ge=0, description="Words that may say what it is about.")


class Earlier(Wire):
    """The earlier question on which a question may depend, if no model has rewritten it."""

    question: str = Field(description="The one before, with those that it leans on itself.")
    pages: tuple[str, ...] = Field(default=(), description="Keys of the pages that its answer cites.")
    signs: Signs


class Usage(Wire):
    """Tokens that the models have read and written for a question, all calls together, rephrasing and judging too.

    As counted by their servers, else estimated at four bytes per token. Without calls that failed or were stopped, and
    without translations of our own sentences, which are cached for all visitors.
    """

    model: str | None = Field(default=None, description="Which wrote the answer; null: none did.")
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def and_for(self, step: Usage) -> Usage:
        """The sum with an earlier step, whose model does not write the answer."""
        return self.model_copy(
            update={
                "prompt_tokens": self.prompt_tokens + step.prompt_tokens,
                "completion_tokens": self.completion_tokens + step.completion_tokens,
            }
        )


class PromptMessage(Wire):
    """A message in the model's prompt."""

    role: str
    text: str


class ModelCall(Wire):
    """A call of a model for a question: the messages as sent, and the reply."""

    step: str = Field(description="As in the setting `steps`: `rephrase`, `think`, `answer`, `judge` ...")
    model: str | None = Field(default=None, description="As its server names it; null: it did not reply.")
    messages: tuple[PromptMessage, ...] = Field(description="As sent, the sources in them as the model read them.")
    reply: str = Field(default="", description="As the model wrote it, its calls of tools last.")
    failed: str | None = Field(default=None, description="Code of the error that ended it.")
    not_kept: int = Field(default=0, ge=0, description="Characters of messages and reply that are left out here.")


class _Understood(Message):
    request: Question
    question: str
    mode: SearchMode
    courtesy: CourtesyKind | None = Field(default=None, description="Of a courtesy; null: something is asked.")
    person: bool = Field(default=False, description="Somebody to talk to is asked for; `courtesy` is `about` then.")
    calls: tuple[ModelCall, ...] = optional((), description="Of models, so far; only of a site with `log_prompts`.")
    usage: Usage = Field(default=Usage(), description="So far.")
    timings_ms: dict[str, float] = Field(default_factory=dict)


class Rephrased(_Understood):
    """`query.rephrased`: the question that is searched and answered."""

    earlier: Earlier | None = Field(default=None, description="Null: the question stands alone.")


SourceKind = Literal["page", "tool"]


class Source(PageStamp):
    """A passage of a page, numbered as the answer cites it: hits and neighbours merged, no overlap. Or what a tool of
    the site has worked out.
    """

    n: int = Field(ge=1)
    page_id: PageId
    lang: Lang
    title: str
    url: str
    field: FieldName
    ord: int = Field(ge=0, description="Chunk of the best hit in the passage.")
    heading: str = Field(
        default="", description="Short fields of the page that were found too, a line each: `Description: ...`."
    )
    text: str
    score: float = Field(description="Fused score of the best hit in the passage.")
    cosine: float | None = Field(default=None, description="Cosine of the best hit; null if found by keywords alone.")
    revision: Revision
    cited: bool = False
    kind: SourceKind = optional(
        "page", description="`tool`: what a tool of the site has worked out; `title` names it, `page_id` is no page's."
    )


class Gate(Wire):
    """How the question gate came to its grade."""

    distance: float = Field(description="D: mean cosine distance of the vectors' hits.")
    entropy: float = Field(ge=0, le=1, description="E: of the hits over pages.")
    subject: float = Field(ge=0, le=1, description="SQ: share of the question's words that are no stop words.")
    by_figures: Grade = Field(description="What these three alone would say.")
    score: float | None = Field(default=None, description="Chance that it can be answered; null: not calibrated.")
    threshold: float | None = Field(default=None, description="Least score of an answerable question.")
    signals: dict[str, float] = Field(default_factory=dict, description="What the score was computed from.")


class Evidence(Wire):
    """A unit of a source (text.units) that can be quoted, and its score for the question."""

    n: int = Field(ge=1, description="Of the source.")
    start: int = Field(ge=0, description="In the page's content: tells the order of units.")
    text: str = Field(description="Markdown, as on the page.")
    kind: Literal["prose", "item", "row", "code"]
    headings: tuple[str, ...] = Field(default=(), description="Above it, the outermost first.")
    intro: str = Field(default="", description="What introduces its list or table; Markdown.")
    header: str = Field(default="", description="Of a row its table's header row, of a definition its term; Markdown.")
    block: int = Field(ge=0, description="Where its list or table begins; its own start where it is in none.")
    of: int = Field(default=1, ge=1, description="Units of its list or table.")
    score: float = Field(description="Comparable within one question.")


class Sure(Wire):
    """How sure the search is that the best evidence is right."""

    of: SureOf = Field(description="What is sure enough to be shown where no model writes.")
    unit: float | None = Field(default=None, description="Chance that the best unit answers; null: not calibrated.")
    page: float | None = Field(default=None, description="Chance that its page does.")
    signals: dict[str, float] = Field(default_factory=dict, description="What the chances were computed from.")


class SourceTable(Wire):
    """A table of a page, whole."""

    sources: tuple[int, ...] = Field(description="Numbers of the page's sources.")
    block: int = Field(ge=0, description="Where it begins in the page's content: the `block` of its rows.")
    text: str = Field(description="Markdown.")


class Part(Wire):
    """One part of a question with several parts, with its evidence."""

    question: str = Field(description="In the visitor's words.")
    evidence: tuple[Evidence, ...] = Field(description="Best first.")
    sure: Sure | None = None


class QuestionVector(Wire):
    """The vector of the searched question, by the index's model."""

    model: str = Field(description="Fingerprint: only vectors of one model can be compared.")
    data: CompactVectors = Field(description="One vector of length 1, a signed byte per component.")

    @classmethod
    def of(cls, model: str, vector: Vector32) -> QuestionVector:
        return cls(model=model, data=compact([vector])[0])

    @property
    def vector(self) -> Vector32:
        """Of length 1."""
        unit: Vector32 = expand(self.data, 1)[0]
        return unit


CorrectedBy = Literal["page", "answer", "refusal"]  # a page that comes first, a fixed answer, a refusal


class Corrected(Wire):
    """What an editor has put right about a question's answer (schemas.correction)."""

    ids: tuple[str, ...] = Field(description="Of the corrections that were used.")
    kind: CorrectedBy | None = Field(
        default=None, description="Of the one that decides the answer; null: only words were understood by them."
    )
    text: str = Field(default="", description="What visitors read; empty: the answer comes from the page.")


class Retrieved(_Understood):
    """`query.retrieved`: the sources an answer may use."""

    grade: Grade
    sources: tuple[Source, ...]
    gate: Gate | None = None
    evidence: tuple[Evidence, ...] = Field(default=(), description="Best first; none of an index made without units.")
    sure: Sure | None = Field(default=None, description="Null where there is no evidence.")
    parts: tuple[Part, ...] = Field(default=(), description="Of a question that asks two things, each by itself.")
    tables: tuple[SourceTable, ...] = Field(default=(), description="Those whose rows may be quoted, if not too long.")
    vector: QuestionVector | None = Field(default=None, description="Null where its outcome is not logged.")
    corrected: Corrected | None = Field(default=None, description="Null: no editor has corrected it.")
    index: str | None = Field(
        default=None, description="Name of the index that was searched because a trial wants it; null: the live one."
    )
    found: tuple[FoundPage, ...] = Field(
        default=(), description="Of a trial, or with `ranked`: the pages found, the best first."
    )
