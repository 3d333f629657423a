"""Corrected: editors' corrections go before the results of the search.

question ─▶ corrections with a similar question, the nearest first ─▶ the first one whose page this visitor may read
              answer, refusal ─▶ its text and page, without a search
              page ────────────▶ its page's chunks are the first hits
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
from pipelines.query.live.corrections import CorrectionSet, SiteCorrections, StoredCorrection, asked_words, page_content
from pipelines.query.retrieve.alike import LEAST, MEANING, AskedQuestion, alike
from pipelines.query.search.ports import Hit, SearchEmbedder
from pipelines.query.search.search import Searcher
from pipelines.runtime.embedder import Matrix32
from pipelines.runtime.errors import PagewireError
from schemas.correction import Correction
from schemas.ingest import Vector32
from schemas.query import Corrected, Rephrased, Source

log = structlog.get_logger(__name__)

LOOKED_INTO = 30  # chunks of a corrected page whose units are ranked, the nearest by meaning
COMPARED = 8  # corrections' questions whose words are compared, the nearest by meaning
TRIED = 3  # corrections whose pages are read
BATCH = 16  # questions embedded at a time
PATIENCE = 1.0  # seconds that a question waits for vectors of new corrections; finished vectors are cached
KEPT_VECTORS = 10_000  # cached vectors of corrections' questions; 15 MB with the bundled embedder
SURE = 0.999  # score of a chunk of a corrected page
FLOOR = min(
    (least - 1 + MEANING) / MEANING for least in LEAST.values()
)  # below this cosine, equal words do not suffice

Questions = Sequence[tuple[AskedQuestion, StoredCorrection]]


@dataclass(frozen=True)
class MatchedCorrection:
    """A correction for a question, and the chunks of its page that the visitor may read."""

    stored: StoredCorrection
    hits: Sequence[Hit] = ()

    @property
    def needs_no_search(self) -> bool:
        return self.stored.correction.kind != "page"

    @property
    def sources(self) -> tuple[Source, ...]:
        """The page of a fixed answer as its only source."""
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

    def in_place_of(self, look: Look) -> Look:
        """A search result with this page's chunks as the only hits."""
        found, vector = look.found, look.found.vector
        near = self.hits
        if vector is not None:
            near = sorted(near, key=lambda hit: -max((float(unit.vector @ vector) for unit in hit.units), default=-1.0))
        hits = [replace(hit, score=SURE) for hit in near]
        asked = look.asked.model_copy(update={"mode": "semantic"})  # the page need not contain the question's words
        return replace(look, asked=asked, found=replace(found, hits=hits[:LOOKED_INTO], near=[]), followed=None)


class Corrector:
    """Finds corrections for questions. One per process."""

    def __init__(self, corrections: SiteCorrections) -> None:
        self._corrections = corrections
        self._vectors: LRUCache[tuple[str, str], Vector32] = LRUCache(KEPT_VECTORS)  # model, text -> its vector
        self._compared: dict[str, tuple[CorrectionSet, str, Questions, Matrix32]] = {}  # site -> its matrix

    def understood(self, site: str, question: str) -> tuple[str, ...]:
        """Ids of the synonyms whose word is in the question."""
        return self._corrections.of(site).understood(question)

    async def of(self, asked: Rephrased, searcher: Searcher) -> MatchedCorrection | None:
        """The correction for a question. Raises: Retryable. Permanent: of the embedder."""
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
    ) -> list[tuple[float, StoredCorrection]]:
        """(likeness, correction) of all that answer a question, the nearest first, then the newest."""
        questions, matrix = await self._matrix(site, known, model)
        cosines = matrix @ centred(vector[None], model)[0]
        same = [each for each in known.in_words.get(question.words, ()) if speaks(each.correction, question.lang)]
        best = {each.id: (1.0, each) for each in same}
        for place in np.argsort(-cosines, kind="stable")[:COMPARED]:
            (own, each), cosine = questions[place], float(cosines[place])
            if cosine < FLOOR:
                break
            if not speaks(each.correction, question.lang):
                continue
            like = alike(question, own, cosine, each.correction.reach)
            if like >= LEAST[each.correction.reach] and like > best.get(each.id, (0.0,))[0]:
                best[each.id] = (like, each)
        return sorted(best.values(), key=lambda one: (-one[0], -one[1].at.timestamp()))

    async def _matrix(self, site: str, known: CorrectionSet, model: SearchEmbedder) -> tuple[Questions, Matrix32]:
        """The corrections' questions that have a vector, and a matrix with a row for each.

        Questions whose vectors are not ready in time are left out.
        """
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
        questions = [(AskedQuestion(text, each.correction.lang), each) for (text, each), _ in rows]
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


def _in_the_same_words(known: CorrectionSet, asked: Rephrased) -> Sequence[StoredCorrection]:
    """Corrections with exactly this question, for visitors of this language, the newest first.

    The visitor's own words count as well as a model's rewriting, if they need no conversation.
    """
    request, words = asked.request, [asked_words(asked.question)]
    if not request.history or stands_alone(request.question, signs(request.question)):
        words.append(asked_words(request.question))
    found = (one for each in dict.fromkeys(words) for one in known.in_words.get(each, ()))
    return [one for one in found if speaks(one.correction, request.lang)]


async def _first(
    corrections: Sequence[StoredCorrection], asked: Rephrased, searcher: Searcher
) -> MatchedCorrection | None:
    """The first correction whose page this visitor may read. Raises: Retryable."""
    request = asked.request
    for stored in corrections[:TRIED]:
        if stored.correction.page is None:
            return MatchedCorrection(stored)
        hits = await searcher.page(request.site, stored.correction.page.page_id, groups=request.groups)
        if own := _usable(stored.correction, hits, request.lang):
            return MatchedCorrection(stored, own)
    return None


def centred(vectors: Matrix32, model: SearchEmbedder) -> Matrix32:
    """The rows without the direction that all vectors of the model share, if the model's profile has it."""
    return apart(vectors, model.profile.common) if model.profile.common else vectors


def speaks(correction: Correction, lang: str) -> bool:
    """Whether the correction applies to visitors of this language."""
    everybody = correction.kind == "page" or correction.all_languages
    return everybody or correction.lang.partition("-")[0] == lang.partition("-")[0]


def _usable(correction: Correction, hits: Sequence[Hit], lang: str) -> list[Hit]:
    """The chunks of the correction's page, in the visitor's language if it has one, else in the correction's.

    A fixed answer needs its page in the correction's language, and unchanged: otherwise there are none.
    """
    page = correction.page
    assert page is not None
    spoken = {hit.lang: [each for each in hits if each.lang == hit.lang] for hit in hits}
    if correction.kind == "answer":
        own = spoken.get(page.lang, [])
        same = page_content(hit.text for hit in own if hit.field == "content") == page.content
        return [hit for hit in own if hit.field == "content"] or own if same else []
    like = (each for each in spoken if each.partition("-")[0] == lang.partition("-")[0])
    return spoken.get(next(like, page.lang), [])


def corrected(found: MatchedCorrection | None, understood: Sequence[str]) -> Corrected | None:
    """The correction and the synonyms as a part of the stage's message."""
    ids = (*((found.stored.id,) if found else ()), *understood)
    if not ids:
        return None
    if found is None:
        return Corrected(ids=ids)
    kind = found.stored.correction.kind
    assert kind != "synonym"
    return Corrected(ids=ids, kind=kind, text=found.stored.correction.text)
