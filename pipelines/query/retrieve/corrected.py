"""Corrected: what an editor has said about a question comes before what the search finds.

question ─▶ corrections that are alike, the nearest first ─▶ the first one whose page is there for this visitor
              answer, refusal ─▶ the text, with its page: nothing is searched
              page ────────────▶ its chunks come first, and what is shown is on it
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog
from cachetools import LRUCache

from pipelines.query.extractive.assessment import Look
from pipelines.query.extractive.follow_ups import signs, stands_alone
from pipelines.query.extractive.ranking import apart
from pipelines.query.live.corrections import CorrectionSet, Kept, SiteCorrections, asked_words, page_content
from pipelines.query.retrieve.alike import LEAST, MEANING, AskedQuestion, alike
from pipelines.query.search.ports import Hit, SearchEmbedder
from pipelines.query.search.search import Searcher
from pipelines.runtime.embedder import Matrix32
from pipelines.runtime.errors import PagewireError
from schemas.correction import Correction
from schemas.ingest import Vector32
from schemas.query import Corrected, Rephrased, Source

log = structlog.get_logger(__name__)

LOOKED_INTO = 30  # chunks of a page whose units are measured, the nearest by meaning
COMPARED = 8  # questions of corrections, the nearest by meaning, whose words are compared
TRIED = 3  # corrections whose pages are looked at
BATCH = 16  # questions embedded at a time
PATIENCE = 1.0  # seconds that a question waits for the vectors of new corrections; what is made by then is kept
KEPT_VECTORS = 10_000  # of corrections' questions; 15 MB with the bundled embedder
SURE = 0.999  # score of a chunk of a page that an editor has named
FLOOR = min((least - 1 + MEANING) / MEANING for least in LEAST.values())  # of a cosine that words can make up for

Questions = Sequence[tuple[AskedQuestion, Kept]]


@dataclass(frozen=True)
class Found:
    """A correction, and its page as the visitor may read it."""

    said: Kept
    hits: Sequence[Hit] = ()

    @property
    def decides(self) -> bool:
        """Whether nothing need be searched."""
        return self.said.said.kind != "page"

    @property
    def sources(self) -> tuple[Source, ...]:
        """The page of a fixed answer."""
        return tuple(
            Source(
                n=1,
                page_id=hit.page_id,
                lang=hit.lang,
                title=hit.title,
                url=hit.url,
                field=hit.field,
                ord=hit.ord,
                text=hit.text,
                score=SURE,
                revision=hit.revision,
                **dict(hit.stamp),
            )
            for hit in self.hits[:1]
        )

    def first(self, look: Look) -> Look:
        """A look at the page alone, in place of what was found."""
        found, vector = look.found, look.found.vector
        near = self.hits
        if vector is not None:
            near = sorted(near, key=lambda hit: -max((float(unit.vector @ vector) for unit in hit.units), default=-1.0))
        hits = [replace(hit, score=SURE) for hit in near]
        asked = look.asked.model_copy(update={"mode": "semantic"})  # its words need not stand on the page
        return replace(look, asked=asked, found=replace(found, hits=hits[:LOOKED_INTO], near=[]), followed=None)


class Corrector:
    """Finds what editors have said about a question. One per process."""

    def __init__(self, corrections: SiteCorrections) -> None:
        self._corrections = corrections
        self._vectors: LRUCache[tuple[str, str], Vector32] = LRUCache(KEPT_VECTORS)  # model, text -> its vector
        self._compared: dict[str, tuple[CorrectionSet, str, Questions, Matrix32]] = {}  # by site

    def understood(self, site: str, question: str) -> tuple[str, ...]:
        """Ids of the synonyms that the question is understood by."""
        return self._corrections.of(site).understood(question)

    async def of(self, asked: Rephrased, searcher: Searcher) -> Found | None:
        """Raises: Retryable. Permanent: of the embedder."""
        known = self._corrections.of(asked.request.site)
        if not known.asked or (asked.earlier is not None and not stands_alone(asked.question, asked.earlier.signs)):
            return None
        found = await _first(_in_the_same_words(known, asked), asked, searcher)
        if found is not None or not known.compared:
            return found
        question = AskedQuestion(asked.question, asked.request.lang)
        model, vector = await searcher.embedded(asked.request.site, asked.question)
        near = await self.alike(asked.request.site, known, question, vector, model)
        return await _first([each for _, each in near], asked, searcher)

    async def alike(
        self, site: str, known: CorrectionSet, question: AskedQuestion, vector: Vector32, model: SearchEmbedder
    ) -> list[tuple[float, Kept]]:
        """The corrections that answer a question, each with how like it they are: the nearest first, of equally near
        ones the newest."""
        questions, matrix = await self._matrix(site, known, model)
        cosines = matrix @ centred(vector[None], model)[0]
        best = {same.id: (1.0, same) for same in known.in_words.get(question.words, ())}
        for place in np.argsort(-cosines, kind="stable")[:COMPARED]:
            (own, each), cosine = questions[place], float(cosines[place])
            if cosine < FLOOR:
                break
            if not speaks(each.said, question.lang):
                continue
            like = alike(question, own, cosine, each.said.reach)
            if like >= LEAST[each.said.reach] and like > best.get(each.id, (0.0,))[0]:
                best[each.id] = (like, each)
        return sorted(best.values(), key=lambda one: (-one[0], -one[1].at.timestamp()))

    async def _matrix(self, site: str, known: CorrectionSet, model: SearchEmbedder) -> tuple[Questions, Matrix32]:
        """The questions that have a vector, with a row each. All of them, where there is time to make the new ones."""
        kept = self._compared.get(site)
        if kept is not None and kept[0] is known and kept[1] == model.fingerprint:
            return kept[2:]
        try:
            async with asyncio.timeout(PATIENCE):
                await self._embed([text for text, _ in known.asked], model)
        except (PagewireError, TimeoutError) as err:
            log.warning("some corrections are compared by their words alone", site=site, error=repr(err))
        vectors = [self._vectors.get((model.fingerprint, text)) for text, _ in known.asked]
        rows = [(each, vector) for each, vector in zip(known.asked, vectors, strict=True) if vector is not None]
        questions = [(AskedQuestion(text, each.said.lang), each) for (text, each), _ in rows]
        if not rows:
            return questions, np.empty((0, model.dims), dtype=np.float32)
        matrix = centred(np.stack([vector for _, vector in rows]), model)
        if len(rows) == len(known.asked):
            self._compared[site] = known, model.fingerprint, questions, matrix
        return questions, matrix

    async def _embed(self, texts: Sequence[str], model: SearchEmbedder) -> None:
        missing = [text for text in dict.fromkeys(texts) if (model.fingerprint, text) not in self._vectors]
        for some in (missing[i : i + BATCH] for i in range(0, len(missing), BATCH)):
            made = await asyncio.gather(*map(model.query, some))
            self._vectors.update({(model.fingerprint, text): row for text, row in zip(some, made, strict=True)})


def _in_the_same_words(known: CorrectionSet, asked: Rephrased) -> Sequence[Kept]:
    """The newest first. A model may have put the visitor's words into others: those that need no conversation count."""
    request, words = asked.request, [asked_words(asked.question)]
    if not request.history or stands_alone(request.question, signs(request.question)):
        words.append(asked_words(request.question))
    return [one for each in dict.fromkeys(words) for one in known.in_words.get(each, ())]


async def _first(corrections: Sequence[Kept], asked: Rephrased, searcher: Searcher) -> Found | None:
    """The first whose page is there for this visitor. Raises: Retryable."""
    request = asked.request
    for said in corrections[:TRIED]:
        if said.said.page is None:
            return Found(said)
        hits = await searcher.page(request.site, said.said.page.page_id, groups=request.groups)
        if own := _usable(said, hits, request.lang):
            return Found(said, own)
    return None


def centred(vectors: Matrix32, model: SearchEmbedder) -> Matrix32:
    """Rows without what all vectors of the model have in common, where that is known."""
    return apart(vectors, model.profile.common) if model.profile.common else vectors


def speaks(correction: Correction, lang: str) -> bool:
    """Whether a visitor of this language reads what it says. A page may be there in any."""
    everybody = correction.kind == "page" or correction.all_languages
    return everybody or correction.lang.partition("-")[0] == lang.partition("-")[0]


def _usable(said: Kept, hits: Sequence[Hit], lang: str) -> list[Hit]:
    """The chunks of the correction's page: in the visitor's language if it is there, else in the correction's; of a
    fixed answer in the correction's, and none where the page says something else by now."""
    page = said.said.page
    assert page is not None
    spoken = {hit.lang: [each for each in hits if each.lang == hit.lang] for hit in hits}
    if said.said.kind == "answer":
        own = spoken.get(page.lang, [])
        same = page_content(hit.text for hit in own if hit.field == "content") == page.content
        return [hit for hit in own if hit.field == "content"] or own if same else []
    like = (each for each in spoken if each.partition("-")[0] == lang.partition("-")[0])
    return spoken.get(next(like, page.lang), [])


def corrected(found: Found | None, understood: Sequence[str]) -> Corrected | None:
    """As it is handed on."""
    ids = (*((found.said.id,) if found else ()), *understood)
    if not ids:
        return None
    if found is None:
        return Corrected(ids=ids)
    kind = found.said.said.kind
    assert kind != "synonym"
    return Corrected(ids=ids, kind=kind, text=found.said.said.text)
