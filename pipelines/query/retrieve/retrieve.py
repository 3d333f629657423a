"""Retrieve: the sources an answer may read, and whether there is an answer in them.

query.rephrased ─▶ hits in five fields + keywords ─▶ evidence ─▶ (reranker) ─▶ gate ─▶ neighbours ─▶ query.retrieved
               └ may it lean on the question before? both are searched for, and what is found tells (leaning)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from pipelines.query.extractive.evidence import UNCLEAR, Findings, graded, sureness, weigh
from pipelines.query.extractive.gate import Evidence, Spoken, judge
from pipelines.query.extractive.leaning import Followed, go_on, joined
from pipelines.query.extractive.parts import AskedPart, by_part, parts
from pipelines.query.extractive.tables import whole_tables
from pipelines.query.live.glossary import Glossary, widened
from pipelines.query.search.ports import Chunks, Hit, Reranker, SearchEmbedder
from pipelines.query.search.search import Retrieval, Searcher
from pipelines.query.search.widen import passages, wanted
from pipelines.query.settings import QuerySettings
from schemas.http import SearchKind
from schemas.ingest import Vector32
from schemas.query import (
    RANKING,
    FoundPage,
    Gate,
    Grade,
    Question,
    QuestionVector,
    Rephrased,
    Retrieved,
    Source,
    Sure,
    Table,
)
from schemas.query import Evidence as UnitEvidence

NOTHING_FOUND: Grade = 5
FINE: Grade = 0


RERANKED, KEPT = 20, 5  # hits read by the reranker, and left of them
LOOKED_INTO = 30  # hits whose units are measured


@dataclass(frozen=True)
class _Look:
    """What a search found for a question, alone or (`followed`) with the one before it."""

    asked: Rephrased
    named: str  # the question, in the site's words too
    found: Retrieval
    followed: Followed | None = None

    @property
    def keyword(self) -> bool:
        return self.asked.mode == "keyword"


@dataclass(frozen=True)
class _Weighed:
    """What a look is worth: chunks, what was read around them, their units, and what each part has for itself."""

    hits: list[Hit]
    near: list[Hit]
    findings: Findings
    parts: list[AskedPart]


class _Laps:
    """Milliseconds of the steps, one after the other."""

    def __init__(self, before: Mapping[str, float]) -> None:
        self.ms = dict(before)
        self._began = perf_counter()

    def lap(self, step: str) -> None:
        now = perf_counter()
        self.ms[step], self._began = (now - self._began) * 1000, now


async def retrieve(
    asked: Rephrased,
    searcher: Searcher,
    chunks: Chunks,
    settings: QuerySettings,
    reranker: Reranker | None = None,
    *,
    writes: bool = False,
    glossary: Glossary | None = None,
) -> Retrieved:
    """Search, judge and widen; of a courtesy nothing is searched.

    Args:
        writes: whether a model writes the answer: it may find in the sources what no unit says by itself.
        glossary: by which a question is searched; default: as the site's setting has it.

    Raises:
        UnknownSite, Retryable. Permanent: of the reranker.
    """
    if asked.courtesy is not None:
        laps = _Laps(asked.timings_ms)
        return Retrieved(
            request=asked.request,
            question=asked.question,
            mode=asked.mode,
            courtesy=asked.courtesy,
            grade=FINE,
            sources=(),
            found=await _ranked(asked, searcher, laps),
            usage=asked.usage,
            timings_ms=laps.ms,
        )
    trial, tuned = asked.request.trial, asked.request.under
    settings = settings.under(tuned)
    laps = _Laps(asked.timings_ms)
    if glossary is None:
        glossary = settings.site(asked.request.site).glossary
    look = await _look(asked, searcher, chunks, settings, glossary, least=RERANKED if reranker else 0)
    laps.lap("search")
    weighed = await _weighed(look, chunks, settings, in_parts=reranker is None and not writes)
    hits, findings = weighed.hits, weighed.findings
    ranked = findings.ordered(hits, len(hits)) if trial is not None else []
    if reranker is None or look.keyword:
        hits = findings.ordered(hits, settings.content_hits, [part.findings.units[0].hit for part in weighed.parts])
        laps.lap("evidence")
    else:
        laps.lap("evidence")
        read = await reranked(look.asked.question, hits, reranker, len(hits))
        ranked = read if trial is not None else []
        hits = read[: tuned.hits or KEPT]
        findings = await findings.reread(look.asked.question, reranker)
        laps.lap("rerank")
    grade, gate, sure = await _graded(look, weighed, settings, writes=writes)
    laps.lap("gate")
    room = settings.readable(asked.request.site)
    if look.keyword:
        sources = passages(hits, weighed.near, room, whole_fields=True)
    else:
        sources = await widen(hits[: settings.content_hits], weighed.near, chunks, settings, room)
    tables: tuple[Table, ...] = ()
    if grade < UNCLEAR and not writes:
        all_findings = [findings, *(part.findings for part in weighed.parts)]
        tables = await whole_tables(all_findings, weighed.near, sources, chunks)
    laps.lap("widen")
    alone = look.found.vector if look.named == look.asked.question and look.followed is None else None
    ranking = await _ranked(look.asked, searcher, laps, alone)
    told = findings.cited(sources)
    return Retrieved(
        request=_spoken_to(asked.request, sources, told),
        question=look.asked.question,
        mode=look.asked.mode,
        grade=grade,
        sources=sources,
        gate=gate,
        evidence=told,
        sure=sure,
        parts=tuple(part.cited(sources) for part in weighed.parts),
        tables=tables,
        vector=_vector(look),
        found=_pages(ranked) if trial is not None else ranking,
        usage=asked.usage,
        timings_ms=laps.ms,
    )


async def _ranked(
    asked: Rephrased, searcher: Searcher, laps: _Laps, vector: Vector32 | None = None
) -> tuple[FoundPage, ...]:
    """The pages that the search alone finds, where whoever asks wants them: without what makes an answer of it.

    Args:
        vector: of the question as it is searched, where it is known: embedding it is what a search spends most on.
    """
    request = asked.request
    if not request.ranked or request.trial is not None:
        return ()
    kind: SearchKind = "keyword" if asked.mode == "keyword" else "hybrid"
    size, groups = request.ranked, request.groups
    pages = await searcher.pages(request.site, asked.question, kind=kind, size=size, groups=groups, vector=vector)
    laps.lap(RANKING)
    return tuple(FoundPage(page_id=page.page_id, lang=page.lang) for page in pages)


async def _look(
    asked: Rephrased, searcher: Searcher, chunks: Chunks, settings: QuerySettings, glossary: Glossary, *, least: int
) -> _Look:
    """Search for the question; for one that may lean on the one before it, with that one as well.

    Args:
        least: hits.
    """
    request = asked.request
    named = partial(widened, glossary, request.lang)
    find = partial(
        searcher.find,
        request.site,
        kind="hybrid",
        size=max(LOOKED_INTO, least, settings.content_hits),
        groups=request.groups,
        around=settings.neighbours,
        lang=request.lang,
        by_words=asked.mode == "keyword",
    )
    alone = named(asked.question)
    if asked.earlier is None:
        return _Look(asked, alone, await find(alone))
    found, both = await asyncio.gather(find(alone), find(named(joined(asked.earlier.question, asked.question))))
    followed = await go_on(asked.question, asked.earlier, found, both, chunks)
    if followed is None:
        return _Look(asked, alone, found)
    asked = asked.model_copy(update={"question": followed.question, "mode": "semantic"})
    return _Look(asked, named(followed.question), followed.found, followed)


def _spoken_to(request: Question, sources: Sequence[Source], told: Sequence[UnitEvidence]) -> Question:
    """Where nobody can tell the question's language, our own words are in that of what would be quoted."""
    best = {source.n: source.lang for source in sources}.get(told[0].n if told else 1)
    return request.model_copy(update={"lang": best}) if request.guessed and best else request


def _vector(look: _Look) -> QuestionVector | None:
    """What the question was searched by, for the question log: made once, it groups questions by meaning later."""
    found = look.found
    if look.asked.request.logged_as is None or found.vector is None or found.model is None:
        return None
    return QuestionVector.of(found.model.fingerprint, found.vector)


async def _weighed(look: _Look, chunks: Chunks, settings: QuerySettings, *, in_parts: bool) -> _Weighed:
    """Measure what was found.

    Args:
        in_parts: whether a question that asks two things is weighed part by part.
    """
    found, followed, hits = look.found, look.followed, look.found.hits
    if look.keyword and any(hit.bm25 is not None for hit in hits):
        hits = [hit for hit in hits if hit.bm25 is not None]  # by its words as they stand, where the index has them
    near = _same_revision(found.near, hits)
    if look.keyword:
        # The whole text of the fields that matched, as it stands.
        fields = dict.fromkeys((hit.index, hit.page_key, hit.field) for hit in hits[: settings.content_hits])
        near += _same_revision([chunk for place in fields for chunk in await chunks.field(*place)], hits)
    if found.vector is None:
        return _Weighed(hits, near, Findings(()), [])
    seen = found.candidates
    if followed is None:
        findings = weigh(look.named, found.vector, hits, near, seen.terms, seen.total, found.common)
    else:
        findings, near = followed.findings, followed.near
    told = await by_part(_pieces(look.asked), found, hits, near) if in_parts and not look.keyword else []
    return _Weighed(hits, near, findings, told)


async def _graded(
    look: _Look, weighed: _Weighed, settings: QuerySettings, *, writes: bool
) -> tuple[Grade, Gate | None, Sure | None]:
    """Whether there is an answer in it: by the gate's figures, by how sure the units are, by the parts.

    All were fitted to the search's own order, which a reranker does not change.
    """
    grade: Grade = FINE if weighed.hits else NOTHING_FOUND
    model, gate = look.found.model, None
    if model is None:
        return grade, None, None
    profile, least = model.profile.sureness, look.asked.request.under.sure_threshold
    if profile is not None and least is not None:
        profile = replace(profile, least_unit=least, least_page=least)
    sure = sureness(weighed.findings, profile) if look.followed is None else look.followed.sure(profile)
    if settings.gate and not look.keyword:
        grade, gate = await _judged(look.named, look.found, model, settings, weighed.findings.nearest)
    if settings.gate and sure is not None and weighed.hits:
        grade = graded(grade, sure, writes)
        if any(part.answered for part in weighed.parts):
            grade = FINE  # what is missing of the rest is named
    return grade, gate, sure


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


def _pages(hits: Iterable[Hit]) -> tuple[FoundPage, ...]:
    """The pages of the hits, each at its best one's place."""
    pages = dict.fromkeys((hit.page_id, hit.lang) for hit in hits)
    return tuple(FoundPage(page_id=page, lang=lang) for page, lang in pages)


def _pieces(asked: Rephrased) -> tuple[str, ...]:
    """The parts of the visitor's own question: one that was put together with those before it is one question."""
    request = asked.request
    return parts(asked.question, request.lang) if asked.question in request.question else ()


def _same_revision(chunks: Iterable[Hit], hits: Iterable[Hit]) -> list[Hit]:
    """A page may be saved between two looks at it: its revisions are never mixed."""
    revisions = {hit.page_key: hit.revision for hit in hits}
    return [chunk for chunk in chunks if chunk.revision == revisions.get(chunk.page_key)]


async def reranked(question: str, hits: Sequence[Hit], reranker: Reranker, kept: int = KEPT) -> list[Hit]:
    """The hits that answer best, by a model that reads them together with the question."""
    scores = await reranker.scores(question, [f"{hit.title}\n{hit.text}" for hit in hits])
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: (-hit.score, hit.place))[:kept]


async def _judged(
    question: str, found: Retrieval, model: SearchEmbedder, settings: QuerySettings, units: Sequence[Spoken]
) -> tuple[Grade, Gate]:
    seen, hits = found.candidates, found.hits[: settings.content_hits]
    evidence = Evidence(question, seen.dense, hits, seen.terms, seen.total, seen.by_language, units)
    return await judge(evidence, model.profile.gate, model, settings.gate_threshold)
