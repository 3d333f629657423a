"""Assessment: what a search found is worth, without a model. The retrieve stage's door.

looked   ─▶ hits of the question, or of it and the one before it (follow_ups)
assessed ─▶ units of the hits and of what is near them, best first (ranking), part by part (parts)
graded   ─▶ is there an answer in it (confidence)
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
    foreign,
    graded,
    judge,
    outside,
    sureness,
)
from pipelines.query.extractive.days import with_feasts_dates
from pipelines.query.extractive.follow_ups import FollowUpResult, go_on, joined, stands_alone
from pipelines.query.extractive.parts import AskedPart, by_part, parts
from pipelines.query.extractive.ranking import Findings, weigh
from pipelines.query.extractive.wording import is_known, other_names, without_particles
from pipelines.query.flow import Flow
from pipelines.query.live.glossary import Glossary, widened
from pipelines.query.search.ports import Hit, Reranker, SearchIndex
from pipelines.query.search.search import Retrieval
from schemas.query import Gate, Grade, Rephrased, Sure
from text.compounds import with_umlauts

Find = Callable[[str], Awaitable[Retrieval]]


@dataclass(frozen=True)
class Look:
    """What a search found for a question, alone or (`followed`) with the one before it."""

    asked: Rephrased
    named: str  # the question, in the site's words too
    found: Retrieval
    followed: FollowUpResult | None = None

    @property
    def keyword(self) -> bool:
        return self.asked.mode == "keyword"


@dataclass(frozen=True)
class Assessment:
    """What a look is worth: chunks, best first, what was read around them, their units, and what each part has."""

    hits: list[Hit]
    near: list[Hit]
    findings: Findings
    parts: list[AskedPart]
    ranked: Sequence[Hit] = ()  # all chunks, best first

    def ordered(self, size: int) -> Assessment:
        """With the best `size` chunks, by the units in them; among them those with the best unit of a part."""
        needed = [part.findings.units[0].hit for part in self.parts]
        ranked = self.findings.ordered(self.hits, len(self.hits))
        return replace(self, ranked=ranked, hits=self.findings.ordered(self.hits, size, needed))

    async def reread(self, question: str, reranker: Reranker, size: int) -> Assessment:
        """With the best `size` chunks, and the best units, in a reranker's order. Raises: Permanent."""
        ranked = await reranked(question, self.hits, reranker, len(self.hits))
        findings = await self.findings.reread(question, reranker)
        return replace(self, ranked=ranked, hits=ranked[:size], findings=findings)


async def looked(asked: Rephrased, find: Find, glossary: Glossary, chunks: SearchIndex) -> Look:
    """Search for the question; for one that may lean on the one before it, with that one as well. Raises: Retryable."""
    today, lang = asked.request.asked_at.date(), asked.request.lang

    def named(question: str) -> str:
        plain = with_umlauts(without_particles(question, lang), lang)
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
    """What is found, once more with other names of what no page has; the question with those that some page has."""
    found = await find(question)
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


def _known(found: Retrieval) -> frozenset[str]:
    return frozenset(stem for stem, chunks in found.candidates.terms if chunks)


async def assessed(look: Look, chunks: SearchIndex, flow: Flow, *, in_parts: bool) -> Assessment:
    """Measure what was found.

    Args:
        in_parts: whether a question that asks two things is weighed part by part.

    Raises:
        Retryable.
    """
    found, hits = look.found, look.found.hits
    if look.keyword and any(hit.bm25 is not None for hit in hits):
        hits = [hit for hit in hits if hit.bm25 is not None]  # by its words as they stand, where the index has them
    near = same_revision(found.near, hits)
    if look.keyword:
        # The whole text of the fields that matched, as it stands.
        fields = dict.fromkeys((hit.index, hit.page_key, hit.field) for hit in hits[: flow.hits])
        near += same_revision([chunk for place in fields for chunk in await chunks.field(*place)], hits)
    if found.vector is None:
        return Assessment(hits, near, Findings(()), [])
    if look.followed is None:
        seen = found.candidates
        findings = weigh(look.named, found.vector, hits, near, seen.terms, seen.total, found.common)
    else:
        findings, near = look.followed.findings, look.followed.near
    # Of the visitor's own question: one that was put together with those before it is one question.
    request, own = look.asked.request, look.asked.question
    split = in_parts and not look.keyword and own in request.question
    return Assessment(hits, near, findings, await by_part(parts(own, request.lang) if split else (), found, hits, near))


async def answerable(
    look: Look, weighed: Assessment, flow: Flow, *, writes: bool
) -> tuple[Grade, Gate | None, Sure | None]:
    """Whether there is an answer in it: by the gate's figures, by how sure the units are, by the parts.

    All were fitted to the search's own order, which a reranker does not change.

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
        sure = sureness(weighed.findings, profile, foreign=foreign(read))
    else:
        sure = look.followed.sure(profile)
    if flow.gate and not look.keyword:
        grade, gate = await judge(read, model.profile.gate, model, flow.gate_threshold)
        far = sure is not None and look.followed is None and outside(read, gate, sure.signals["shared"])
    if flow.gate and sure is not None and weighed.hits:
        if far and not writes:
            return max(grade, NOT_SAID), gate, sure.model_copy(update={"of": "nothing"})
        grade = graded(grade, sure, writes, least)
        if any(part.answered for part in weighed.parts):
            grade = FINE  # what is missing of the rest is named
    return grade, gate, sure


async def reranked(question: str, hits: Sequence[Hit], reranker: Reranker, kept: int) -> list[Hit]:
    """The hits that answer best, by a model that reads them together with the question."""
    scores = await reranker.scores(question, [f"{hit.title}\n{hit.text}" for hit in hits])
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: (-hit.score, hit.place))[:kept]


def same_revision(chunks: Iterable[Hit], hits: Iterable[Hit]) -> list[Hit]:
    """A page may be saved between two looks at it: its revisions are never mixed."""
    revisions = {hit.page_key: hit.revision for hit in hits}
    return [chunk for chunk in chunks if chunk.revision == revisions.get(chunk.page_key)]
