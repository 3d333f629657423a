"""Retrieve: the sources an answer may read, and whether there is an answer in them.

query.rephrased ─▶ hits in five fields + keywords ─▶ evidence ─▶ (reranker) ─▶ gate ─▶ neighbours ─▶ query.retrieved
               └ may it lean on the question before? both are searched for, and what is found tells (leaning)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from pipelines.query.retrieve.evidence import UNCLEAR, Findings, graded, sureness, weigh
from pipelines.query.retrieve.gate import Evidence, Spoken, judge
from pipelines.query.retrieve.leaning import (
    LEANS,
    LEAST,
    LEAST_UNSURE,
    Followed,
    follow,
    joined,
    shown,
    signals,
    sure_alone,
)
from pipelines.query.retrieve.parts import AskedPart, by_part, parts
from pipelines.query.retrieve.ports import ChunkKey, Chunks, Hit, Reranker, SearchEmbedder
from pipelines.query.retrieve.search import Retrieval, Searcher
from pipelines.query.retrieve.tables import whole_tables
from pipelines.query.retrieve.widen import passages, wanted
from pipelines.query.settings import QuerySettings
from pipelines.query.translate import widened
from schemas.query import Earlier, Gate, Grade, Rephrased, Retrieved, Source, Table

NOTHING_FOUND: Grade = 5
FINE: Grade = 0


RERANKED, KEPT = 20, 5  # hits read by the reranker, and left of them
LOOKED_INTO = 30  # hits whose units are measured
READ_ON = 24  # chunks from the beginning of a page that was shown, which a further question is most likely about


async def retrieve(
    asked: Rephrased,
    searcher: Searcher,
    chunks: Chunks,
    settings: QuerySettings,
    reranker: Reranker | None = None,
    *,
    writes: bool = False,
) -> Retrieved:
    """Search, judge and widen; of a courtesy nothing is searched.

    Args:
        writes: whether a model writes the answer: it may find in the sources what no unit says by itself.

    Raises:
        UnknownSite, Retryable. Permanent: of the reranker.
    """
    request = asked.request
    if asked.courtesy is not None:
        return Retrieved(
            request=request,
            question=asked.question,
            mode=asked.mode,
            courtesy=asked.courtesy,
            grade=FINE,
            sources=(),
            timings_ms=asked.timings_ms,
        )
    began = perf_counter()
    named = partial(widened, settings.site(request.site).glossary, request.lang)
    find = partial(
        searcher.find,
        request.site,
        kind="hybrid",
        size=max(LOOKED_INTO, RERANKED if reranker else 0, settings.content_hits),
        groups=request.groups,
        around=settings.neighbours,
        lang=request.lang,
    )
    followed = None
    if asked.earlier is None:
        found = await find(named(asked.question))
    else:
        whole = joined(asked.earlier.question, asked.question)
        found, both = await asyncio.gather(find(named(asked.question)), find(named(whole)))
        followed = await _followed(asked.question, asked.earlier, found, both, chunks)
    if followed is not None:
        asked = asked.model_copy(update={"question": followed.question, "mode": "semantic"})
        found = followed.found
    keyword = asked.mode == "keyword"
    hits = found.hits
    if keyword and any(hit.bm25 is not None for hit in hits):
        hits = [hit for hit in hits if hit.bm25 is not None]  # by its words as they stand, where the index has them
    timings = {"search": (perf_counter() - began) * 1000}
    began = perf_counter()
    near = _same_revision(found.near, hits)
    if keyword:
        # The whole text of the fields that matched, as it stands.
        fields = dict.fromkeys((hit.index, hit.page_key, hit.field) for hit in hits[: settings.content_hits])
        near += _same_revision([chunk for place in fields for chunk in await chunks.field(*place)], hits)
    findings = Findings(())
    asked_parts: list[AskedPart] = []
    if found.vector is not None:
        seen = found.candidates
        if followed is None:
            findings = weigh(named(asked.question), found.vector, hits, near, seen.terms, seen.total, found.common)
        else:
            findings, near = followed.findings, followed.near
        if reranker is None or keyword:
            if not (writes or keyword):
                asked_parts = await by_part(_pieces(asked), found, hits, near)
            hits = findings.ordered(hits, settings.content_hits, [part.findings.units[0].hit for part in asked_parts])
    timings["evidence"] = (perf_counter() - began) * 1000
    measured = findings  # what the sureness is fitted to
    if reranker is not None and not keyword:
        began = perf_counter()
        hits = await reranked(asked.question, hits, reranker)
        findings = await findings.reread(asked.question, reranker)
        timings["rerank"] = (perf_counter() - began) * 1000
    began = perf_counter()
    grade: Grade = FINE if hits else NOTHING_FOUND
    gate = sure = None
    if found.model is not None:
        profile = found.model.profile.sureness
        sure = sureness(measured, profile) if followed is None else followed.sure(profile)
        if settings.gate and not keyword:
            grade, gate = await _judged(named(asked.question), found, found.model, settings, measured.nearest)
        if settings.gate and sure is not None and hits:
            grade = graded(grade, sure, writes)
            if any(part.answered for part in asked_parts):
                grade = FINE  # what is missing of the rest is named
    timings["gate"] = (perf_counter() - began) * 1000
    began = perf_counter()
    if keyword:
        sources = passages(hits, near, settings.readable(request.site), whole_fields=True)
    else:
        sources = await widen(hits[: settings.content_hits], near, chunks, settings, settings.readable(request.site))
    tables: tuple[Table, ...] = ()
    if grade < UNCLEAR and not writes:
        tables = await whole_tables([findings, *(part.findings for part in asked_parts)], near, sources, chunks)
    return Retrieved(
        request=asked.request,
        question=asked.question,
        mode=asked.mode,
        grade=grade,
        sources=sources,
        gate=gate,
        evidence=findings.cited(sources),
        sure=sure,
        parts=tuple(part.cited(sources) for part in asked_parts),
        tables=tables,
        timings_ms=asked.timings_ms | timings | {"widen": (perf_counter() - began) * 1000},
    )


async def _followed(
    question: str, earlier: Earlier, alone: Retrieval, both: Retrieval, chunks: Chunks
) -> Followed | None:
    """What answers the question together with the one before it; None where it stands alone."""
    if alone.vector is None or not both.hits:
        return None
    pages, around = await read_on(earlier, alone, both, chunks)
    read = (*alone.near, *alone.hits, *both.near, *both.hits, *around)
    chance = LEANS.score(signals(earlier.signs, alone.vector, read, pages))
    if chance < LEAST and (chance < LEAST_UNSURE or sure_alone(question, alone)):
        return None
    revisions = {hit.page_key: hit.revision for hit in (*reversed(around), *both.hits)}
    around = [chunk for chunk in around if chunk.revision == revisions[chunk.page_key]]
    return follow(question, earlier.question, alone, both, around, pages)


async def read_on(earlier: Earlier, alone: Retrieval, both: Retrieval, chunks: Chunks) -> tuple[list[str], list[Hit]]:
    """The pages that were shown, and what of them no search has read."""
    if not both.hits:
        return [], []
    pages = shown((alone, both), earlier.pages)
    known = {hit.place for hit in (*both.hits, *both.near)}
    places: list[ChunkKey] = [(page, "content", n) for page in pages for n in range(READ_ON)]
    around = await chunks.chunks(both.hits[0].index, [place for place in places if place not in known])
    # One that was refused, or whose answer nobody has told us of, was about what is found for it.
    return pages or [both.hits[0].page_key], around


async def widen(
    hits: Sequence[Hit], near: Sequence[Hit], chunks: Chunks, settings: QuerySettings, readable: int
) -> tuple[Source, ...]:
    """Sources of the hits and of what is near them; what else stands around them is read if there is room for it.

    Args:
        readable: characters of sources.
    """
    sources = passages(hits, _same_revision(near, hits), readable)
    room = readable - sum(len(source.text) for source in sources)
    if not hits or room < settings.chunker.size:
        return sources
    seen = {hit.place for hit in near}
    rest = [place for place in wanted(hits, settings.neighbours) if place not in seen]
    around = [*near, *await chunks.chunks(hits[0].index, rest)]
    return passages(hits, _same_revision(around, hits), readable)


def _pieces(asked: Rephrased) -> tuple[str, ...]:
    """The parts of the visitor's own question: one that was put together with those before it is one question."""
    request = asked.request
    return parts(asked.question, request.lang) if asked.question in request.question else ()


def _same_revision(chunks: Iterable[Hit], hits: Iterable[Hit]) -> list[Hit]:
    """A page may be saved between two looks at it: its revisions are never mixed."""
    revisions = {hit.page_key: hit.revision for hit in hits}
    return [chunk for chunk in chunks if chunk.revision == revisions.get(chunk.page_key)]


async def reranked(question: str, hits: Sequence[Hit], reranker: Reranker) -> list[Hit]:
    """The hits that answer best, by a model that reads them together with the question."""
    scores = await reranker.scores(question, [f"{hit.title}\n{hit.text}" for hit in hits])
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: (-hit.score, hit.place))[:KEPT]


async def _judged(
    question: str, found: Retrieval, model: SearchEmbedder, settings: QuerySettings, units: Sequence[Spoken]
) -> tuple[Grade, Gate]:
    seen, hits = found.candidates, found.hits[: settings.content_hits]
    evidence = Evidence(question, seen.dense, hits, seen.terms, seen.total, seen.by_language, units)
    return await judge(evidence, model.profile.gate, model, settings.gate_threshold)
