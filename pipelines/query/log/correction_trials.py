"""Correction trials: which questions of the log a correction would answer, before it is kept.

logged questions ─▶ wordings ─▶ their vectors ─▶ those that are alike ─▶ so many, such as these ─▶ too many: refused
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from pipelines.query.extractive.certainty import names_nothing
from pipelines.query.extractive.courtesy import recognized
from pipelines.query.live.corrections import CorrectionSet, SiteCorrections, is_understood, synonym_circle, telling
from pipelines.query.live.glossary import Glossary
from pipelines.query.log.gap_reports import vectors_of
from pipelines.query.log.gaps import Wording, wordings
from pipelines.query.log.ports import QuestionReader
from pipelines.query.retrieve.alike import LEAST, AskedQuestion, alike
from pipelines.query.retrieve.corrected import FLOOR, Corrector, centred, speaks
from pipelines.query.search.ports import SearchEmbedder, SearchEmbedders
from pipelines.runtime.embedder import Matrix32
from schemas.correction import Correction, CorrectionTrial, Reach, RefusedFor, Rival, TriedQuestion

LOOKED_AT = timedelta(days=90)
MOST = 5_000  # questions, the newest
MOST_WORDINGS = 2_000
SHOWN, BEYOND = 50, 5  # questions that it would answer, and that it would not
ALL, FEWEST = 0.25, 8  # a greater share of the log's questions than this, and more of them, are nearly all
RIVALS = 10


@dataclass(frozen=True)
class _Logged:
    wording: Wording
    vector: Matrix32

    @property
    def question(self) -> AskedQuestion:
        return AskedQuestion(self.wording.text, self.wording.lang)


class CorrectionTrials:
    """One per process. `now`: the time that questions are logged by."""

    def __init__(self, questions: QuestionReader, models: SearchEmbedders, now: Callable[[], datetime]) -> None:
        self._questions = questions
        self._models = models
        self._now = now
        self._corrector = Corrector(SiteCorrections())  # keeps the vectors of corrections

    async def tried(
        self, site: str, id: str, correction: Correction, others: CorrectionSet, glossary: Glossary
    ) -> CorrectionTrial:
        """Raises: Retryable. Permanent: of the embedder."""
        asked = await self._wordings(site)
        if correction.kind == "synonym":
            return _understood(id, correction, asked, others, glossary)
        model = await self._models.for_site(site)
        vectors, _ = await vectors_of(model, asked)
        logged = [_Logged(wording, row) for wording, row in zip(asked, vectors, strict=True)]
        own = centred(np.stack([await model.query(text) for text in correction.questions]), model)
        likenesses = _likenesses(correction, own, logged, model)
        like = likenesses[correction.reach]
        order = sorted(range(len(logged)), key=lambda n: -like[n])
        answered = [n for n in order if like[n] >= LEAST[correction.reach]]
        beyond = [n for n in order if LEAST[correction.reach] > like[n] > 0][:BEYOND]
        return CorrectionTrial(
            id=id,
            correction=correction,
            logged=len(logged),
            answered=len(answered),
            questions=tuple(_shown(asked[n], like[n]) for n in answered[:SHOWN]),
            beyond=tuple(_shown(asked[n], like[n]) for n in beyond),
            by_reach={reach: sum(one >= LEAST[reach] for one in found) for reach, found in likenesses.items()},
            rivals=await self._rivals(site, correction, others, [(logged[n], like[n]) for n in answered], model),
            refused=_refused(correction, len(answered), len(logged)),
        )

    async def _wordings(self, site: str) -> list[Wording]:
        now = self._now()
        asked = await self._questions.asked(site, now - LOOKED_AT, now + timedelta(days=1), MOST)
        return wordings(asked)[:MOST_WORDINGS]

    async def _rivals(
        self,
        site: str,
        correction: Correction,
        others: CorrectionSet,
        answered: Sequence[tuple[_Logged, float]],
        model: SearchEmbedder,
    ) -> tuple[Rival, ...]:
        """Others that answer the correction's own questions, or those of the log that it would answer."""
        if not others.asked:
            return ()
        own = [(AskedQuestion(text, correction.lang), await model.query(text), 1.0) for text in correction.questions]
        every = own + [(one.question, one.vector, like) for one, like in answered[:SHOWN]]
        found: dict[tuple[str, bool], Rival] = {}
        for question, vector, like in every:
            for theirs, other in (await self._corrector.alike(site, others, question, vector, model))[:1]:
                wins = theirs > like  # of equally near ones the newer one is used, which is this
                rival = Rival(
                    id=other.id,
                    kind=other.correction.kind,
                    names=other.correction.names,
                    question=question.text,
                    wins=wins,
                )
                found.setdefault((other.id, wins), rival)
        return tuple(found.values())[:RIVALS]


def _likenesses(
    correction: Correction, own: Matrix32, logged: Sequence[_Logged], model: SearchEmbedder
) -> dict[Reach, list[float]]:
    """Of each logged question, by each reach, how like the nearest of the correction's own it is."""
    reaches: tuple[Reach, ...] = ("same", "alike", "wide")
    if not logged:
        return {reach: [] for reach in reaches}
    cosines = centred(np.stack([one.vector for one in logged]), model) @ own.T
    asked = [AskedQuestion(text, correction.lang) for text in correction.questions]
    found: dict[Reach, list[float]] = {reach: [0.0] * len(logged) for reach in reaches}
    for n, one in enumerate(logged):
        question, reads = one.question, speaks(correction, one.wording.lang)
        for mine, cosine in zip(asked, cosines[n].tolist(), strict=True):
            same = mine.words == question.words
            if not same and (cosine < FLOOR or not reads):
                continue
            for reach in reaches:
                like = float(same) if reach == "same" else alike(question, mine, cosine, reach)
                found[reach][n] = max(found[reach][n], like)
    return found


def _understood(
    id: str, correction: Correction, asked: Sequence[Wording], others: CorrectionSet, glossary: Glossary
) -> CorrectionTrial:
    """Of a synonym: the questions that it would be understood in."""
    answered = [one for one in asked if is_understood(correction, one.text)]
    circle = synonym_circle((correction, *(one.correction for one in others.synonyms)), glossary)
    return CorrectionTrial(
        id=id,
        correction=correction,
        logged=len(asked),
        answered=len(answered),
        questions=tuple(_shown(one, 1.0) for one in answered[:SHOWN]),
        refused="circle" if circle else _refused(correction, len(answered), len(asked)),
        circle=tuple(circle),
    )


def _shown(wording: Wording, likeness: float) -> TriedQuestion:
    newest = wording.questions[0]
    return TriedQuestion(
        request_id=newest.request_id,
        question=" ".join(wording.text.split()),
        lang=wording.lang,
        asked=len(wording.questions),
        became=newest.became,
        likeness=round(min(likeness, 1.0), 2),
    )


def _refused(correction: Correction, answered: int, logged: int) -> RefusedFor | None:
    asked, langs = correction.questions or (correction.word,), (correction.lang.partition("-")[0],)
    # What needs no search is answered before any correction is looked at.
    if not all(telling(text, langs) and recognized(text, correction.lang).kind is None for text in asked):
        return "says-nothing"
    if correction.questions and correction.reach != "same" and any(names_nothing(text, langs) for text in asked):
        return "says-nothing"
    if answered > FEWEST and answered > ALL * logged:
        return "catches-all"
    return None
