"""Retrieve: finds the sources of an answer, and decides whether they contain one.

query.rephrased ─┬─▶ look up ─▶ assess ─▶ (rerank) ─▶ grade ─▶ widen ───────────────────┬─▶ query.retrieved
                 │   hits       units                 gate     neighbours, whole tables │
                 ├─▶ corrected: an editor's answer, or an editor's page as first hit ───┤
                 └─▶ the original retriever (original.py), or none ─────────────────────┘
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from pipelines.query.extractive.assessment import Assessment, Find, Look, answerable, assess, look_up, same_revision
from pipelines.query.extractive.confidence import FINE, NOT_SAID, UNCLEAR
from pipelines.query.extractive.tables import whole_tables
from pipelines.query.extractive.wanted import lacks_price
from pipelines.query.flow import Flow
from pipelines.query.live.glossary import Glossary
from pipelines.query.retrieve.corrected import Corrector, MatchedCorrection, corrected
from pipelines.query.retrieve.original import original
from pipelines.query.search.ports import Hit, LabelledIndex, Reranker, SearchIndex
from pipelines.query.search.search import Retrieval, Searcher
from pipelines.query.search.widen import passages, wanted
from pipelines.query.settings import QuerySettings
from schemas.flow import Retriever
from schemas.http import SearchKind
from schemas.ingest import Vector32
from schemas.query import (
    RANKING,
    Evidence,
    FoundPage,
    Question,
    QuestionVector,
    Rephrased,
    Retrieved,
    Source,
    SourceTable,
)

RERANKED, KEPT = 20, 5  # hits that the reranker reads, and hits that it keeps
LOOKED_INTO = 30  # hits whose units are ranked
KINDS: Mapping[Retriever, SearchKind] = {"vectors": "vector", "keywords": "keyword"}  # else hybrid

T = TypeVar("T")


class _Timings:
    """Milliseconds of each step."""

    def __init__(self, before: Mapping[str, float]) -> None:
        self.ms = dict(before)

    async def of(self, step: str, work: Awaitable[T]) -> T:
        began = perf_counter()
        done = await work
        self.ms[step] = self.ms.get(step, 0.0) + (perf_counter() - began) * 1000
        return done


async def retrieve(
    asked: Rephrased,
    searcher: Searcher,
    chunks: SearchIndex,
    settings: QuerySettings,
    reranker: Reranker | None = None,
    *,
    writes: bool = False,
    glossary: Glossary | None = None,
    corrector: Corrector | None = None,
) -> Retrieved:
    """Search, assess and widen. A courtesy, and a question with an editor's answer, need no search.

    Args:
        writes: whether a model writes the answer: it may combine sources, where no single unit answers.
        glossary: for the search text; default: the site's setting.
        corrector: finds editors' corrections; default: none.

    Raises:
        UnknownSite, Retryable. Permanent: of the reranker.
    """
    timings, request = _Timings(asked.timings_ms), asked.request
    if request.labels:
        searcher, chunks = searcher.within(request.labels), LabelledIndex(chunks, request.labels)
    if asked.courtesy is not None:
        pages = await _pages_alone(asked, searcher, timings)
        return _retrieved(asked, timings, courtesy=asked.courtesy, grade=FINE, sources=(), found=pages)
    correction: MatchedCorrection | None = None
    understood: tuple[str, ...] = ()
    if corrector is not None:
        correction = await timings.of("corrections", corrector.of(asked, searcher))
        understood = corrector.understood(request.site, asked.question)
        if correction is not None and correction.needs_no_search:
            pages = await _pages_alone(asked, searcher, timings)
            right = corrected(correction, ())
            return _retrieved(asked, timings, grade=FINE, sources=correction.sources, corrected=right, found=pages)
    flow = settings.flow_of(request.site, request.under)
    if flow.retriever == "none":
        return _retrieved(asked, timings, grade=FINE, sources=())
    if flow.retriever == "original":
        return await _by_original(asked, searcher, chunks, flow, timings)
    words = settings.site(request.site).glossary if glossary is None else glossary
    look = await timings.of("search", look_up(asked, _find(asked, searcher, flow, reranker), words, chunks))
    others = look.found.hits
    look = correction.in_place_of(look) if correction is not None else look
    found = await timings.of("evidence", assess(look, chunks, flow, in_parts=reranker is None and not writes))
    best = await timings.of("rerank" if reranker else "evidence", _ordered(look, found, flow, reranker))
    grade, gate, sure = await timings.of("gate", answerable(look, found, flow, writes=writes))
    if correction is not None:
        grade, gate, best = FINE, None, _with_others(best, others, correction, flow.hits)
    whole = grade < UNCLEAR and not writes
    sources, tables = await timings.of("widen", _read(best, look, chunks, flow, settings.chunker.size, whole=whole))
    evidence = best.findings.cited(sources)
    if whole and correction is None and lacks_price(evidence, sources, request.question, request.lang):
        grade = NOT_SAID
    alone = look.found.vector if look.named == look.asked.question and look.followed is None else None
    return _retrieved(
        look.asked.model_copy(update={"request": _spoken_to(request, sources, evidence)}),
        timings,
        grade=grade,
        sources=sources,
        gate=gate,
        evidence=evidence,
        sure=sure,
        parts=tuple(part.cited(sources) for part in found.parts),
        tables=tables,
        corrected=corrected(correction, understood),
        vector=_vector(request, look.found),
        found=_pages(best.ranked) if request.trial else await _pages_alone(look.asked, searcher, timings, alone),
    )


async def _by_original(
    asked: Rephrased, searcher: Searcher, chunks: SearchIndex, flow: Flow, timings: _Timings
) -> Retrieved:
    made = await timings.of("search", original(asked, searcher, chunks, flow))
    request = _spoken_to(asked.request, made.sources, ())
    return _retrieved(
        asked.model_copy(update={"request": request}),
        timings,
        grade=made.grade,
        sources=made.sources,
        gate=made.gate,
        vector=_vector(request, made.found),
        found=_pages(made.found.hits) if request.trial else await _pages_alone(asked, searcher, timings),
    )


def _retrieved(asked: Rephrased, timings: _Timings, **what: Any) -> Retrieved:
    return Retrieved(
        request=asked.request,
        question=asked.question,
        mode=asked.mode,
        person=asked.person,
        calls=asked.calls,
        usage=asked.usage,
        timings_ms=timings.ms,
        **what,
    )


def _find(asked: Rephrased, searcher: Searcher, flow: Flow, reranker: Reranker | None) -> Find:
    return partial(
        searcher.find,
        asked.request.site,
        kind=KINDS.get(flow.retriever, "hybrid"),
        size=max(LOOKED_INTO, RERANKED if reranker else 0, flow.hits),
        groups=asked.request.groups,
        flow=flow,
        lang=asked.request.lang,
        guessed=asked.request.guessed,
        by_words=asked.mode == "keyword",
    )


async def _ordered(look: Look, found: Assessment, flow: Flow, reranker: Reranker | None) -> Assessment:
    """Raises: Permanent: of the reranker."""
    if reranker is None or look.keyword:
        return found.ordered(flow.hits)
    return await found.reread(look.asked.question, reranker, look.asked.request.under.hits or KEPT)


def _with_others(best: Assessment, others: Sequence[Hit], correction: MatchedCorrection, size: int) -> Assessment:
    """The hits of the corrected page, followed by hits of the search, half of `size` each."""
    own = best.hits[: size - size // 2]
    behind = [hit for hit in others if hit.page_id != correction.hits[0].page_id]
    hits = [*own, *behind][:size]
    return replace(best, hits=hits, ranked=[*own, *behind], near=[hit for hit in correction.hits if hit not in own])


async def _read(
    best: Assessment, look: Look, chunks: SearchIndex, flow: Flow, size: int, *, whole: bool
) -> tuple[tuple[Source, ...], tuple[SourceTable, ...]]:
    """Sources of the best hits and the chunks near them. If there is room, further neighbours are read.

    Args:
        size: characters of a chunk, at most.
        whole: whether to read the whole tables of rows that may be quoted.
    """
    hits, room = best.hits[: flow.hits], flow.context_chars
    near = same_revision(best.near, hits)
    if look.keyword:
        sources = passages(best.hits, best.near, room, whole_fields=True)
    else:
        sources = passages(hits, near, room)
        if hits and room - sum(len(source.text) for source in sources) >= size:
            seen = {hit.place for hit in near} | look.found.absent
            rest = [place for place in wanted(hits, flow.neighbours) if place not in seen]
            around = [*near, *await chunks.chunks(hits[0].index, rest)]
            sources = passages(hits, same_revision(around, hits), room)
    if not whole:
        return sources, ()
    found = [best.findings, *(part.findings for part in best.parts)]
    return sources, await whole_tables(found, best.near, sources, chunks)


async def _pages_alone(
    asked: Rephrased, searcher: Searcher, timings: _Timings, vector: Vector32 | None = None
) -> tuple[FoundPage, ...]:
    """The pages that a plain search finds, for requests that ask for them (`ranked`).

    Args:
        vector: of the search text, if it is already embedded: embedding takes most of a search's time.
    """
    request = asked.request
    if not request.ranked or request.trial is not None:
        return ()
    kind: SearchKind = "keyword" if asked.mode == "keyword" else "hybrid"
    size, groups = request.ranked, request.groups
    found = searcher.pages(request.site, asked.question, kind=kind, size=size, groups=groups, vector=vector)
    return tuple(FoundPage(page_id=page.page_id, lang=page.lang) for page in await timings.of(RANKING, found))


def _pages(hits: Iterable[Hit]) -> tuple[FoundPage, ...]:
    """The pages of the hits, in the order of each page's best hit."""
    pages = dict.fromkeys((hit.page_id, hit.lang) for hit in hits)
    return tuple(FoundPage(page_id=page, lang=lang) for page, lang in pages)


def _spoken_to(request: Question, sources: Sequence[Source], evidence: Sequence[Evidence]) -> Question:
    """The request, with the language of the best evidence where the question's language was only guessed."""
    best = {source.n: source.lang for source in sources}.get(evidence[0].n if evidence else 1)
    return request.model_copy(update={"lang": best}) if request.guessed and best else request


def _vector(request: Question, found: Retrieval) -> QuestionVector | None:
    """The question's vector for the question log, which later groups questions by meaning."""
    if request.logged_as is None or found.vector is None or found.model is None:
        return None
    return QuestionVector.of(found.model.fingerprint, found.vector)
