"""Bodies of HTTP requests and answers, without pages, receipts and answer events."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from schemas.answer import AnswerMarks, Citation, Step, Usage
from schemas.base import GivenLang, Lang, PageId, Revision, Wire, optional
from schemas.labels import LabelFilter, Labels
from schemas.page import FieldName, Group, PageDocument, PageStamp
from schemas.query import MAX_QUESTION, MAX_RANKED, FoundPage, Grade, RequestId, SearchMode, Source

SearchKind = Literal["hybrid", "vector", "keyword"]


class VisitorTokenOrder(Wire):
    """The request of a website's own server for a visitor token."""

    groups: tuple[Group, ...] = Field(
        default=(), max_length=1_000, description="Access groups whose pages the visitor may read; of those of the key."
    )
    before: str = Field(
        default="", max_length=8_000, description="An earlier token of the visitor, who keeps their conversations."
    )


class AcceptedChange(Wire):
    """A change is durable in the log and will be processed."""

    page_key: str
    revision: Revision
    detail: str | None = Field(default=None, description="Why it is not more, for who waited for it.")


class BulkLine(Wire):
    """One line of `pages:bulk`. A delete needs only `page.id` (and `lang`, `revision` when known)."""

    op: Literal["upsert", "delete"] = "upsert"
    page: PageDocument


class BulkError(Wire):
    line: int = Field(ge=1)
    code: str
    message: str


class BulkResult(Wire):
    """Valid lines are accepted, also if others are rejected."""

    accepted: int
    rejected: int
    superseded: int = Field(description="Older than what the index holds: nothing to do.")
    errors: tuple[BulkError, ...]


class SnippetPart(Wire):
    """A piece of a snippet."""

    text: str
    match: bool = Field(default=False, description="Whether it is a searched word.")


class Snippet(Wire):
    """What a list of results shows of a hit: the sentence that fits best, and what follows it."""

    parts: tuple[SnippetPart, ...] = Field(default=(), description="Plain text; laid end to end they are the snippet.")
    fragment: str = Field(
        default="", description="Put behind the `#` of the address, it jumps to the sentence; empty: there is none."
    )
    heading: str = Field(default="", description="That it stands under on the page; empty: none.")


class SearchHit(PageStamp):
    """A chunk that matched."""

    page_id: PageId
    lang: Lang
    title: str
    url: str
    field: FieldName
    ord: int
    text: str
    score: float
    cosine: float | None = None
    revision: Revision
    snippet: Snippet = Snippet()
    labels: Labels = optional({}, description="Of its page.")


class SearchResult(Wire):
    hits: tuple[SearchHit, ...]


class SuggestedPage(Wire):
    """A page whose title has the typed words."""

    title: str
    url: str
    lang: Lang


class SuggestedHeading(Wire):
    """A heading that has the typed words."""

    heading: str
    title: str = Field(description="Of its page.")
    url: str = Field(description="Of its page.")
    fragment: str = Field(description="Put behind the `#` of the address, it jumps to the heading.")
    lang: Lang


class SuggestResult(Wire):
    """What a search field offers while one types."""

    titles: tuple[SuggestedPage, ...]
    headings: tuple[SuggestedHeading, ...]
    questions: tuple[str, ...] = Field(
        description="That many visitors have asked and got an answer to; none where the site does not show them."
    )


class NextQuestions(Wire):
    """What others have asked about the pages that an answer cites."""

    questions: tuple[str, ...]


class IndexedChunk(Wire):
    """A chunk in the live index."""

    field: FieldName
    ord: int = Field(ge=0)
    text: str
    title: str
    url: str


class IndexedPage(Wire):
    """The searchable chunks of a page."""

    chunks: tuple[IndexedChunk, ...] = Field(description="In order, of very many only the first.")
    total: int = Field(ge=0, description="All of them, shown or not.")
    hidden: int = Field(default=0, ge=0, description="Not shown: for access groups that who asks does not have.")


class LiveSection(Wire):
    """Text of a page that stands at one place: its own content, or an attachment's."""

    title: str = Field(description="Of the attachment; empty: the page's own.")
    url: str = Field(description="Where the attachment opens; empty: the page's own.")
    text: str = Field(description="Markdown.")


class LivePage(Wire):
    """A whole page as it is indexed."""

    page_id: PageId
    lang: Lang
    title: str = Field(description="As hits show it.")
    url: str
    revision: Revision
    changed_at: AwareDatetime = Field(description="When its newest change was accepted, ...")
    indexed_at: AwareDatetime = Field(description="... and when the index showed it.")
    fields: dict[FieldName, str] = Field(description="The short fields that have text.")
    sections: tuple[LiveSection, ...] = Field(description="The content, in order.")
    labels: Labels = Field(default_factory=dict)
    published_at: AwareDatetime | None = optional(description="As the page says.")


class ListedPage(Wire):
    """A searchable page, by the id of its changes."""

    page_id: PageId
    lang: Lang
    title: str
    url: str
    revision: Revision
    description: str = optional("", description="What the page says of itself.")
    labels: Labels = optional({})


class PageList(Wire):
    """One part of a list of pages, ordered by id."""

    pages: tuple[ListedPage, ...]
    next: str | None = Field(description="`after` of the pages behind these; null: there are none.")


class LabelCount(Wire):
    """A label, and how many pages have it."""

    key: str
    value: str
    pages: int = Field(ge=0, description="A language is a page of its own; above 3,000 it is an estimate.")


class LabelList(Wire):
    """By key; the values of a key by how many pages have them."""

    labels: tuple[LabelCount, ...]
    more: bool = Field(description="There are others, which fewer pages have.")


class ChatRequest(Wire):
    """A question."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION)]
    conversation_id: RequestId | None = Field(
        default=None, description="The conversation it continues, as an earlier answer named it; default: a new one."
    )
    lang: GivenLang | None = Field(
        default=None,
        description="Language to answer in; default: the question's, where its words tell it, else the site's first.",
    )
    keep: bool = Field(
        default=True,
        description="False: it is asked to try the site out, as evaluations do. No conversation keeps it, and it is "
        "neither logged nor counted as a visitor's. For programs with a key alone.",
    )
    labels: LabelFilter = Field(
        default_factory=dict,
        description='Answer from pages alone that have, of each key, one of the values: `{"kind": ["form"]}`. In a '
        "conversation each question names its own.",
    )
    ranked: int = Field(
        default=0,
        ge=0,
        le=MAX_RANKED,
        description="Tell in `found`, besides, the pages of so many passages that the search alone finds for what was "
        "searched. For programs with a key alone.",
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.conversation_id is not None and not self.keep:
            raise ValueError("what is not kept continues no conversation")
        return self


class Welcome(Wire):
    """What a chat shows before the first question."""

    title: str = Field(description="The site's name.")
    examples: tuple[str, ...] = Field(description="Questions to begin with, in the language asked for; perhaps none.")
    model: bool = Field(description="Whether a language model writes answers; else they quote the pages.")
    handover: bool = Field(description="Whether visitors can leave a message for a person.")
    frequent: bool = Field(
        default=False, description="Whether visitors see what many others have asked (`chat.frequent_questions`)."
    )


class ChatResponse(AnswerMarks):
    """The whole answer, for clients that do not stream."""

    request_id: RequestId
    conversation_id: RequestId
    question: str
    rephrased: str
    mode: SearchMode | None = Field(description="How `rephrased` was searched; null: it was not.")
    grade: Grade
    answer: str
    sources: tuple[Source, ...]
    citations: tuple[Citation, ...]
    extractive: bool
    stopped: bool = Field(description="The visitor stopped it: the answer is what came before.")
    cut: bool = Field(description="The limit of what its model may write ended it: the last whole sentence, and …")
    left_out: int = Field(
        default=0,
        description="Sentences that the model wrote and the sources it cites do not bear out: not in the answer.",
    )
    found: tuple[FoundPage, ...] = Field(
        default=(), description="With `ranked`: the pages of what the search alone finds, the best first."
    )
    strategy: str = Field(description="What was asked to answer: a strategy's name, or `quote`.")
    trace: tuple[Step, ...] = Field(
        default=(), description="The steps, in order; of very many only the first. Visitors do not get it."
    )
    usage: Usage
    timings_ms: dict[str, float]


class StageStatus(Wire):
    """One stage of the pipeline; one of ingest in one of its lanes."""

    stage: str
    lane: Literal["save", "bulk"] | None = Field(
        default=None, description="Saves overtake bulk work such as imports; null for stages with one lane for all."
    )
    topic: str
    lag: int = Field(ge=0, description="Messages not yet worked on.")
    rate: float = Field(ge=0, description="Messages per second over the last minute, as seen from here.")
    members: int = Field(ge=0, description="Processes at work on it.")
    dead_letters: int = Field(ge=0, description="Those of both lanes are counted with `save`.")
    parked: int = Field(default=0, ge=0, description="Messages of sites in trouble, which come back by themselves.")


class SiteStatus(Wire):
    """A site's size and freshness."""

    site: str
    pages: int
    chunks: int
    freshness_p50_ms: float | None = Field(description="Accepted to searchable, changes of the last 24 hours.")
    freshness_p95_ms: float | None
    embedder: str | None = Field(description="Fingerprint of the model in the live index.")
    outdated: int = Field(
        default=0, ge=0, description="Pages that another version of Pagewire has read; a rebuild reads them anew."
    )
    parked: int = Field(default=0, ge=0, description="Messages put aside until the site's trouble is over.")
    problem: str | None = Field(default=None, description="Why its index cannot be read, in plain words.")


class SystemStatus(Wire):
    at: AwareDatetime
    kafka: bool
    elasticsearch: bool
    stages: tuple[StageStatus, ...]
    sites: tuple[SiteStatus, ...]
    problems: tuple[str, ...] = Field(default=(), description="What is wrong beside these, in plain words.")
