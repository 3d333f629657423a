"""The question gate: figures, grades, scores, and when sentences are looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from adapters.embedders.lite import LiteEmbedder
from pipelines.query.extractive import confidence
from pipelines.query.extractive.confidence import GateInput, grade_by_figures, judge, outside
from pipelines.query.extractive.ranking import NearUnit
from pipelines.query.search.ports import Calibration, GateProfile, Hit, Scores, Thresholds
from schemas.query import Gate
from text.language import stopwords

SPEC = Thresholds()


@pytest.mark.parametrize(
    ("question", "score", "shared", "far"),
    [
        ("Who is the mayor of Paris?", 0.05, 0.4, True),
        ("Wer ist der Bürgermeister von Paris?", 0.3, 0.4, True),
        ("Who is the mayor of Paris?", 0.6, 0.4, False),  # the gate sees an answer
        ("Who is the mayor of London?", 0.05, 0.4, False),  # the site speaks of it
        ("Who is the mayor?", 0.05, 0.4, False),
        ("What is the weather like?", 0.05, 0.0, True),  # known words, none of them where it fits best
        ("What is the weather like?", 0.05, 0.3, False),
        ("What is the weather like?", None, 0.0, False),
    ],
)
def test_what_no_page_is_about_is_outside(question: str, score: float | None, shared: float, far: bool) -> None:
    terms = [("mayor", 2), ("london", 1), ("weather", 1), ("burgermeist", 1), ("like", 1)]
    found = GateInput(question, [], [hit("The mayor.")], terms, 10, by_language=True)
    gate = Gate(distance=0.2, entropy=0, subject=1, by_figures=0, score=score)
    assert outside(found, gate, shared) is far


def hit(
    text: str, page: str = "pool", cosine: float | None = 0.8, ord: int = 0, lang: str = "en", bm25: float | None = None
) -> Hit:
    return Hit(
        page_key=f"town:{lang}:{page}",
        page_id=page,
        lang=lang,
        title=page.title(),
        url=f"/{page}",
        field="content",
        ord=ord,
        text=text,
        revision=1,
        cosine=cosine,
        bm25=bm25,
    )


def evidence(question: str, *hits: Hit, terms: Sequence[tuple[str, int]] = (), total: int = 100) -> GateInput:
    return GateInput(question, hits, hits, terms, total)


class Embedder:
    """Every sentence is as near as it is told; remembers what it embedded."""

    def __init__(self, cosine: float = 1.0) -> None:
        self._cosine = cosine
        self.embedded: list[str] = []

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        return np.full((len(texts), 1), self._cosine, np.float32)

    async def query(self, text: str) -> NDArray[np.float32]:
        return np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("distance", "entropy", "subject", "hits", "grade"),
    [
        (0.1, 0.1, 1.0, 0, 5),  # no hits
        (0.76, 0.81, 1.0, 5, 5),
        (0.76, 0.1, 0.39, 5, 5),
        (0.76, 0.8, 0.4, 5, 4),
        (0.75, 0.1, 0.39, 5, 2),
        (0.66, 0.56, 0.4, 5, 3),
        (0.66, 0.55, 0.4, 5, 1),
        (0.65, 0.81, 0.4, 5, 3),
        (0.65, 0.81, 0.39, 5, 2),
        (0.65, 0.8, 0.39, 5, 1),
        (0.65, 0.55, 0.1, 5, 0),
    ],
)
def test_the_original_grades_at_their_thresholds(
    distance: float, entropy: float, subject: float, hits: int, grade: int
) -> None:
    assert grade_by_figures(distance, entropy, subject, hits=hits, at=SPEC) == grade


@given(st.floats(0, 2), st.floats(0, 1), st.floats(0, 1), st.integers(0, 10))
def test_further_away_is_never_better_without_a_reason(d: float, e: float, sq: float, hits: int) -> None:
    near = grade_by_figures(0.0, e, sq, hits=hits, at=SPEC)
    assert grade_by_figures(d, e, sq, hits=hits, at=SPEC) in range(6)
    assert (near == 5) == (hits == 0)
    assert grade_by_figures(2.0, e, sq, hits=hits, at=SPEC) >= 4


def test_entropy_is_0_for_one_page_and_1_when_every_hit_is_of_another() -> None:
    assert (
        confidence.entropy([])
        == confidence.entropy([hit("a")])
        == confidence.entropy([hit("a", ord=n) for n in range(9)])
        == 0
    )
    assert confidence.entropy([hit("a", page=f"p{n}") for n in range(9)]) == pytest.approx(1.0)
    two = [hit("a"), hit("a", ord=1), hit("a", page="lake"), hit("a", page="lake", ord=1)]
    assert confidence.entropy(two) == pytest.approx(math.log(2) / math.log(4))


@given(st.lists(st.sampled_from("abcd"), max_size=12))
def test_entropy_stays_between_0_and_1(pages: list[str]) -> None:
    assert 0 <= confidence.entropy([hit("x", page=page, ord=n) for n, page in enumerate(pages)]) <= 1


def test_the_subject_is_what_is_left_without_stop_words() -> None:
    assert confidence.subject("Where is the swimming pool?", stopwords()["en"]) == 2 / 5
    assert confidence.subject("And what about this?", stopwords()["en"]) == 0
    assert confidence.subject("Otterbad", stopwords()["de"]) == 1
    assert confidence.subject("?!", stopwords()["de"]) == 0


def test_a_question_in_another_language_than_the_pages_is_foreign() -> None:
    english, german = "When does the pool open?", "Wann macht das Bad auf?"
    assert not confidence.foreign(evidence(english, hit("a")))
    assert confidence.foreign(evidence(german, hit("a")))
    assert not confidence.foreign(evidence(german, hit("a", lang="de-AT")))


def test_without_a_stop_word_it_is_foreign_when_the_index_does_not_know_its_words() -> None:
    assert confidence.foreign(evidence("Otterbad Eintritt", hit("a"), terms=[("otter", 0), ("eintr", 0)]))
    assert not confidence.foreign(evidence("Otterbad Eintritt", hit("a"), terms=[("otter", 1), ("eintr", 2)]))


def test_signals_are_shares_of_the_question() -> None:
    found = evidence(
        "pool tickets for dogs",
        hit("The pool sells tickets.", cosine=0.9, bm25=3.0),
        hit("Dogs stay outside.", page="lake", cosine=0.8),
        terms=[("pool", 20), ("ticke", 5), ("dogs", 1), ("for", 90)],
    )
    seen = confidence.signals(found)
    assert [seen["top"], seen["mean"], seen["known"]] == pytest.approx([0.9, 0.85, 1.0])
    assert 0 < seen["hit"] < seen["together"] < 1  # nobody has "for"
    assert 0 < seen["letters"] < 1
    assert seen["rare"] > 0  # "dogs" and "ticke" are rare, a hit has one of them
    assert all(0 <= value <= 1 for value in confidence.signals(evidence("")).values())


def test_the_sentences_looked_at_are_few_and_share_most_with_the_question() -> None:
    text = " ".join(f"Sentence {n} says a thing." for n in range(20)) + " A ticket costs 4 euros."
    found = evidence("What does a ticket cost?", hit(text), terms=[("ticke", 1), ("cost", 2), ("what", 5)])
    picked = confidence.sentences(found)
    assert len(picked) == confidence.SENTENCES
    assert picked[0][0] == "A ticket costs 4 euros."


STEEP = {"top": 100.0}  # score 0.5 at cosine 0.8
CLOSE = Calibration(-80.0, {"sentence": 100.0})
PROFILE = GateProfile(
    Thresholds(0.15, 0.25), Scores(Calibration(-80.0, STEEP), no=0.1, yes=0.9, full=CLOSE, threshold=0.5)
)
ASKED = "When does the pool open?"


async def graded(cosine: float, near: float = 1.0, profile: GateProfile = PROFILE) -> tuple[int, list[str]]:
    model = Embedder(near)
    grade, _ = await judge(evidence(ASKED, hit("The pool opens at 9.", cosine=cosine)), profile, model)
    return grade, model.embedded


async def test_a_sure_score_embeds_nothing() -> None:
    assert await graded(0.9) == (0, [])
    assert await graded(0.7) == (4, [])


async def test_an_unsure_score_is_settled_by_the_sentences() -> None:
    assert await graded(0.8, near=0.9) == (0, ["The pool opens at 9."])
    assert await graded(0.8, near=0.7) == (4, ["The pool opens at 9."])


async def test_where_units_are_known_no_sentence_is_embedded() -> None:
    found = evidence(ASKED, hit("The pool opens at 9.", cosine=0.8))
    for cosine, grade in ((0.9, 0), (0.7, 4)):
        model = Embedder(0.8)
        known = replace(found, units=[NearUnit("Pool The pool opens at 9.", "en", cosine)])
        assert (await judge(known, PROFILE, model))[0] == grade
        assert model.embedded == []


async def test_an_operator_may_refuse_more_or_less_of_the_unsure() -> None:
    found = evidence(ASKED, hit("The pool opens at 9.", cosine=0.8))
    for threshold, grade in ((0.4, 0), (0.6, 4)):
        given, trace = await judge(found, PROFILE, Embedder(0.8), threshold)
        assert (given, trace.threshold) == (grade, threshold)


async def test_many_pages_with_an_answer_suggest_to_narrow_down() -> None:
    hits = [hit(f"The pool {n} opens at 9.", page=f"p{n}", cosine=0.9) for n in range(5)]
    assert (await judge(evidence(ASKED, *hits), PROFILE, Embedder()))[0] == 1


async def test_the_figures_say_why_there_is_no_answer() -> None:
    many = [hit("Something.", page=f"p{n}", cosine=0.7) for n in range(5)]
    assert (await judge(evidence(ASKED, *many), PROFILE, Embedder()))[0] == 5  # far, scattered
    near = [replace(each, cosine=0.78) for each in many]
    assert (await judge(evidence(ASKED, *near), PROFILE, Embedder(0.7)))[0] == 3
    vague = "What about this and that?"
    assert (await judge(evidence(vague, *near), PROFILE, Embedder(0.7)))[0] == 2


async def test_no_hits_is_nothing_to_answer_from() -> None:
    for profile in (PROFILE, GateProfile()):
        grade, trace = await judge(evidence(ASKED), profile, Embedder())
        assert (grade, trace.by_figures, trace.score) == (5, 5, None)


async def test_an_uncalibrated_model_is_judged_by_figures_if_it_has_thresholds_and_else_not_at_all() -> None:
    far = evidence(ASKED, hit("Something.", cosine=0.1))
    assert (await judge(far, GateProfile(SPEC), Embedder()))[0] == 4
    assert (await judge(far, GateProfile(), Embedder()))[0] == 0


async def test_a_foreign_question_has_its_own_weights() -> None:
    lenient = replace(PROFILE.native, no=0.05, yes=0.1) if PROFILE.native else None
    profile = replace(PROFILE, foreign=lenient)
    german = evidence("Wann macht das Bad auf?", hit("The pool opens at 9.", cosine=0.79))
    assert (await judge(german, profile, Embedder(0.7)))[0] == 0


async def test_the_trace_says_all() -> None:
    _, trace = await judge(evidence(ASKED, hit("The pool opens at 9.")), PROFILE, Embedder(0.9))
    assert trace.score == pytest.approx(1 / (1 + math.exp(-10)), rel=1e-3)
    assert (trace.threshold, trace.entropy, trace.by_figures) == (0.5, 0.0, 1)
    assert {"top", "mean", "known", "sentence", "both"} <= set(trace.signals)


def test_the_bundled_model_is_calibrated() -> None:
    profile = LiteEmbedder().profile.gate
    assert profile.thresholds
    for scores in (profile.native, profile.foreign):
        assert scores
        assert 0 < scores.no < scores.yes < 1
