"""Assessment: searches for a question and ranks the results, without a model. The retrieve stage calls it.

look_up    ─▶ hits of the question, or of the question with the one before it (follow_ups)
assess     ─▶ units of the hits and of the chunks near them, best first (ranking), for each part (parts)
answerable ─▶ whether they contain an answer (confidence)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pipelines.query.extractive.confidence import (
    FINE,
    NOT_SAID,
    NOTHING,
    GateInput,
    graded,
    in_another_language,
    judge,
    least_for_card,
    outside,
    sureness,
)
from pipelines.query.extractive.days import with_feasts_dates
from pipelines.query.extractive.follow_ups import FollowUpResult, go_on, joined, stands_alone
from pipelines.query.extractive.parts import AskedPart, by_part, parts
from pipelines.query.extractive.ranking import Findings, weigh
from pipelines.query.extractive.wording import (
    is_known,
    other_names,
    spelled,
    with_spelling,
    with_whole_verb,
    without_particles,
)
from pipelines.query.flow import Flow
from pipelines.query.live.glossary import Glossary, widened
from pipelines.query.search.ports import Hit, Reranker, SearchIndex
from pipelines.query.search.search import Retrieval
from schemas.query import Gate, Grade, Rephrased, Sure
from text.compounds import with_umlauts
from text.words import words

Find = Callable[[str], Awaitable[Retrieval]]


@dataclass(frozen=True)
class Look:
    """The result of a search, for the question alone or (`followed`) with the one before it."""

    asked: Rephrased
    named: str  # the search text: the question with the site's own terms
    found: Retrieval
    followed: FollowUpResult | None = None

    @property
    def keyword(self) -> bool:
        return self.asked.mode == "keyword"


@dataclass(frozen=True)
class Assessment:
    """The ranked result: chunks, best first; chunks near them; their units; and the units of each part."""

    hits: list[Hit]
    near: list[Hit]
    findings: Findings
    parts: list[AskedPart]
    ranked: Sequence[Hit] = ()  # all chunks, best first

    def ordered(self, size: int) -> Assessment:
        """With the best `size` chunks by their units, including the chunk with the best unit of each part."""
        needed = [part.findings.units[0].hit for part in self.parts]
        ranked = self.findings.ordered(self.hits, len(self.hits))
        return replace(self, ranked=ranked, hits=self.findings.ordered(self.hits, size, needed))

    async def reread(self, question: str, reranker: Reranker, size: int) -> Assessment:
        """With the best `size` chunks, and the best units, in a reranker's order. Raises: Permanent."""
        ranked = await rerank(question, self.hits, reranker, len(self.hits))
        findings = await self.findings.reread(question, reranker)
        return replace(self, ranked=ranked, hits=ranked[:size], findings=findings)


async def look_up(asked: Rephrased, find: Find, glossary: Glossary, chunks: SearchIndex) -> Look:
    """Search for the question. A possible follow-up is also searched with the question before it. Raises: Retryable."""
    today, lang = asked.request.asked_at.date(), asked.request.lang

    def named(question: str) -> str:
        plain = with_umlauts(with_whole_verb(without_particles(question, lang)), lang)
        return with_feasts_dates(widened(glossary, lang, plain), today, lang)

    if asked.earlier is None or stands_alone(asked.question, asked.earlier.signs):
        return Look(asked, *await _by_other_names(named(asked.question), find))
    (alone, found), both = await asyncio.gather(
        _by_other_names(named(asked.question), find), find(named(joined(asked.earlier.question, asked.question)))
    )
    followed = await go_on(asked.question, asked.earlier, found, both, chunks)
    if followed is None:
        return Look(asked, alone, found)
    asked = asked.model_copy(update={"question": followed.question, "mode": "semantic"})
    return Look(asked, named(followed.question), followed.found, followed)


async def _by_other_names(question: str, find: Find) -> tuple[str, Retrieval]:
    """The search text with other names of words that no page has, as far as some page has them; and its hits."""
    question, found = await _by_spelling(question, find)
    langs = {hit.lang for hit in found.hits}
    names = other_names(question, langs, _known(found))
    if not names:
        return question, found
    widest = await find(f"{question} {' '.join(names)}")
    there = [name for name in names if is_known(name, langs, _known(widest))]
    if not there:
        return question, found
    question = f"{question} {' '.join(there)}"
    return question, widest if there == names else await find(question)


async def _by_spelling(question: str, find: Find) -> tuple[str, Retrieval]:
    """The search text with misspelled words as the pages spell them; and its hits."""
    found = await find(question)
    langs = {hit.lang for hit in found.hits}
    spelling = spelled(question, langs, _known(found), found.candidates.similar)
    if not spelling:
        return question, found
    again = await find(with_spelling(question, spelling))
    # Similar words may stand on pages alone that this visitor may not see.
    read = frozenset(word for hit in again.hits for word in words(f"{hit.title} {hit.text}"))
    there = {word: other for word, other in spelling.items() if other in read}
    if not there:
        return question, found
    question = with_spelling(question, there)
    return question, again if there == spelling else await find(question)


def _known(found: Retrieval) -> frozenset[str]:
    return frozenset(stem for stem, chunks in found.candidates.terms if chunks)


async def assess(look: Look, chunks: SearchIndex, flow: Flow, *, in_parts: bool) -> Assessment:
    """Rank the units of the result.

    Args:
        in_parts: whether to rank separately for each part of a question that asks two things.

    Raises:
        Retryable.
    """
    found, hits = look.found, look.found.hits
    if look.keyword and any(hit.bm25 is not None for hit in hits):
        hits = [hit for hit in hits if hit.bm25 is not None]  # only hits with the very words, if there are some
    near = same_revision(found.near, hits)
    if look.keyword:
        # All chunks of the fields that matched.
        fields = dict.fromkeys((hit.index, hit.page_key, hit.field) for hit in hits[: flow.hits])
        near += same_revision([chunk for place in fields for chunk in await chunks.field(*place)], hits)
    if found.vector is None:
        return Assessment(hits, near, Findings(()), [])
    if look.followed is None:
        seen = found.candidates
        findings = weigh(look.named, found.vector, hits, near, seen.terms, seen.total, found.common)
    else:
        findings, near = look.followed.findings, look.followed.near
    # Only the visitor's own question is split: a rewritten one has words of earlier questions.
    request, own = look.asked.request, look.asked.question
    split = in_parts and not look.keyword and own in request.question
    return Assessment(hits, near, findings, await by_part(parts(own, request.lang) if split else (), found, hits, near))


async def answerable(
    look: Look, weighed: Assessment, flow: Flow, *, writes: bool
) -> tuple[Grade, Gate | None, Sure | None]:
    """Whether the result contains an answer: grade, the gate's figures, and the chances of unit and page.

    The thresholds were fitted to the search's own order, so `weighed` is the assessment before a reranker.

    Args:
        writes: a model writes the answer.
    """
    grade: Grade = FINE if weighed.hits else NOTHING
    model, gate, far = look.found.model, None, False
    if model is None:
        return grade, None, None
    profile, least = model.profile.sureness, look.asked.request.under.sure_threshold
    if profile is not None and least is not None:
        profile = replace(profile, least_unit=least, least_page=least)
    seen, hits, units = look.found.candidates, look.found.hits[: flow.hits], weighed.findings.nearest
    read = GateInput(look.named, seen.dense, hits, seen.terms, seen.total, seen.by_language, units)
    if look.followed is None:
        best = weighed.findings.units[:1]
        abroad = any(in_another_language(look.named, unit.hit.lang, read.known) for unit in best)
        sure = sureness(weighed.findings, profile, foreign=abroad)
    else:
        sure = look.followed.sure(profile)
    if flow.gate and not look.keyword:
        grade, gate = await judge(read, model.profile.gate, model, flow.gate_threshold)
        far = sure is not None and look.followed is None and outside(read, gate, sure.signals["shared"])
    if flow.gate and sure is not None and weighed.hits:
        if far and not writes:
            return max(grade, NOT_SAID), gate, sure.model_copy(update={"of": "nothing"})
        grade = graded(grade, sure, writes, least_for_card(gate) if least is None else least)
        if any(part.answered for part in weighed.parts):
            grade = FINE  # what is missing of the rest is named
    return grade, gate, sure


async def rerank(question: str, hits: Sequence[Hit], reranker: Reranker, kept: int) -> list[Hit]:
    """The `kept` best hits, with the scores of a cross-encoder."""
    scores = await reranker.scores(question, [f"{hit.title}\n{hit.text}" for hit in hits])
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: (-hit.score, hit.place))[:kept]


def same_revision(chunks: Iterable[Hit], hits: Iterable[Hit]) -> list[Hit]:
    """The chunks that have the same revision as their page's hit: a save between two reads must not mix revisions."""
    revisions = {hit.page_key: hit.revision for hit in hits}
    return [chunk for chunk in chunks if chunk.revision == revisions.get(chunk.page_key)]
