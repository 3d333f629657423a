"""Search without an answer, suggestions while a visitor types, and frequent next questions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import StringConstraints

from gateway.edge.bodies import GivenLabels
from gateway.edge.edge import MaySearch, MaySuggest, TheEdge
from pipelines.query.log.frequent import beginning, following
from pipelines.query.search.typeahead import MAX_TYPED, Typed, suggested_headings, suggested_pages
from schemas.base import PageId
from schemas.http import NextQuestions, SearchKind, SearchResult, SuggestResult
from schemas.query import MAX_QUESTION

router = APIRouter(prefix="/v1/sites/{site}", tags=["search"])

Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION),
    Query(description="Words or a question."),
]
MOST = 10  # suggestions of a kind
NEXT = 3  # questions below an answer
CITED = 20  # pages of an answer
Prefix = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TYPED),
    Query(description="What is typed so far; the last word may be a prefix."),
]
Lang = Annotated[str, Query(max_length=100, description="Language of the page that one types on. Default: any.")]


@router.get("/search")
async def search(
    site: str,
    caller: MaySearch,
    edge: TheEdge,
    q: Words,
    labels: GivenLabels,
    mode: Annotated[SearchKind, Query(description="By meaning, by words, or both.")] = "hybrid",
    size: Annotated[int, Query(ge=1, le=100)] = 10,
    lang: Annotated[str, Query(max_length=100, description="Pages in this language come first. Default: any.")] = "",
) -> SearchResult:
    """The passages that fit best."""
    spoken = edge.settings.site(site).spoken(lang)
    hits = await edge.ports.search.search(
        site, q, kind=mode, size=size, groups=caller.groups, lang=spoken, labels=labels
    )
    return SearchResult(hits=tuple(hits))


@router.get("/suggest")
async def suggest(
    site: str,
    caller: MaySuggest,
    edge: TheEdge,
    q: Prefix,
    lang: Lang = "",
    size: Annotated[int, Query(ge=1, le=MOST, description="Of each kind, at most.")] = 5,
) -> SuggestResult:
    """Titles, headings and questions that begin like this.

    Visitors' questions only if the site shows them (`chat.frequent_questions`), and only those that enough visitors
    asked and got an answer to.
    """
    typed, spoken = Typed.of(q), edge.settings.site(site).spoken(lang)
    if not typed.words:
        return SuggestResult(titles=(), headings=(), questions=())
    titles, headings = await edge.ports.typeahead.titles(site, q, lang=spoken, groups=caller.groups)
    return SuggestResult(
        titles=tuple(suggested_pages(typed, titles, size)),
        headings=tuple(suggested_headings(typed, headings, size)),
        questions=tuple(beginning(edge.ports.frequent.of(site), q, spoken, size)),
    )


@router.get("/next-questions")
async def next_questions(
    site: str,
    caller: MaySuggest,
    edge: TheEdge,
    q: Annotated[str, Query(min_length=1, max_length=MAX_QUESTION, description="The question that was answered.")],
    page: Annotated[list[PageId], Query(max_length=CITED, description="Ids of the pages that its answer cites.")],
    lang: Lang = "",
) -> NextQuestions:
    """Other visitors' questions about the same pages; none if the site does not show them."""
    known, spoken = edge.ports.frequent.of(site), edge.settings.site(site).spoken(lang)
    return NextQuestions(questions=tuple(following(known, q, page, spoken, NEXT)))
