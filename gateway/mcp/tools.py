"""What the tools take and give, without the protocol: models for their schemas, and Markdown for the assistant.

search ─▶ the search of GET /search      ask ─▶ the question of POST /chat      get_page ─▶ the page's Markdown
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from gateway.agents.twin import link
from schemas.answer import Citation
from schemas.base import GivenLang, Lang, PageId, Wire
from schemas.http import ChatResponse, SearchHit
from schemas.labels import LabelFilter
from schemas.query import MAX_QUESTION, SourceKind
from text.markdown import escaped

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION)]
LABELS = 'Only pages that have, of each key, one of the values, such as `{"kind": ["form"]}`; default: all pages.'


class SearchArguments(Wire):
    """Find the passages of this website that fit best, each with its page's title and address."""

    query: Words = Field(description="Words or a question.")
    limit: int = Field(default=8, ge=1, le=50, description="Passages, at most.")
    labels: LabelFilter = Field(default_factory=dict, description=LABELS)


class AskArguments(Wire):
    """Answer a question from the pages of this website alone, with citations; without an answer, say so."""

    question: Words = Field(description="One question that needs no conversation to be understood.")
    lang: GivenLang | None = Field(default=None, description="Language to answer in; default: the question's.")
    labels: LabelFilter = Field(default_factory=dict, description=LABELS)


class PageArguments(Wire):
    """Read a whole page of this website as Markdown: by the `id` or the `url` of a search's or an answer's source."""

    id: PageId | None = None
    url: Annotated[str, StringConstraints(min_length=1, max_length=4_000)] | None = None
    lang: GivenLang | None = Field(default=None, description="Default: the first of the site's that it is in.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.id is None) == (self.url is None):
            raise ValueError("exactly one of id and url")
        return self


class ToolPassage(Wire):
    """A passage of a page."""

    id: PageId = Field(description="Of the page, for `get_page`.")
    lang: Lang
    title: str
    url: str
    text: str


class PassagesFound(Wire):
    """What a search found, the best first."""

    passages: tuple[ToolPassage, ...]


class CitedPassage(ToolPassage):
    """A passage that the answer cites as `[n]`."""

    n: int
    kind: SourceKind = Field(default="page", description="`tool`: a tool's result; `id` is no page's.")


class ToolAnswer(Wire):
    """An answer from the website's pages."""

    answer: str = Field(description="Markdown; `[1]` cites the source 1.")
    answered: bool = Field(description="False: no page has an answer, or none is sure enough.")
    sources: tuple[CitedPassage, ...]


def found_in(hits: Sequence[SearchHit]) -> PassagesFound:
    return PassagesFound(
        passages=tuple(
            ToolPassage(id=hit.page_id, lang=hit.lang, title=hit.title, url=hit.url, text=hit.text) for hit in hits
        )
    )


def answer_of(told: ChatResponse) -> ToolAnswer:
    cited = [source for source in told.sources if source.cited]
    return ToolAnswer(
        answer=_marked(told.answer, told.citations),
        answered=bool(cited),
        sources=tuple(
            CitedPassage(n=s.n, id=s.page_id, lang=s.lang, title=s.title, url=s.url, text=s.text, kind=s.kind)
            for s in cited
        ),
    )


def markdown_of_found(found: PassagesFound) -> str:
    """For an assistant that reads no structured content."""
    if not found.passages:
        return "Nothing was found."
    return "\n\n".join(f"{n}. {_named(one)}\n\n{one.text.strip()}" for n, one in enumerate(found.passages, 1))


def markdown_of_answer(answer: ToolAnswer) -> str:
    """For an assistant that reads no structured content."""
    sources = "\n".join(f"[{source.n}]: {_named(source)}" for source in answer.sources)
    return f"{answer.answer}\n\nSources:\n\n{sources}" if sources else answer.answer


def _named(passage: ToolPassage) -> str:
    if isinstance(passage, CitedPassage) and passage.kind == "tool":
        return escaped(passage.title)
    return f"{link(passage.title or passage.id, passage.url)} (id: {passage.id}, lang: {passage.lang})"


def _marked(text: str, citations: Sequence[Citation]) -> str:
    """The text with the numbers of its sources behind what they support."""
    for citation in sorted(citations, key=lambda each: (each.end, each.n), reverse=True):
        said = text[: citation.end]
        at = len(said.removesuffix("|").rstrip())  # of a table's row in its last cell: another one would be dropped
        text = f"{text[:at]} [{citation.n}]{text[at:]}"
    return text
