"""Leaning: what goes on with the question before it, and what then is quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipelines.query.extractive.follow_ups import (
    LEANS,
    LEAST,
    NOWHERE,
    FollowUpResult,
    apart,
    continued,
    follow,
    joined,
    leans,
    names_another,
    shown,
    signals,
    signs,
    stands_alone,
    sure_alone,
)
from pipelines.query.search.ports import (
    Calibration,
    Candidate,
    Candidates,
    EmbedderProfile,
    Hit,
    HitUnit,
    SurenessProfile,
)
from pipelines.query.search.search import Retrieval
from schemas.ingest import Vector32
from schemas.query import MAX_QUESTION, Turn
from tests.fakes.embedder import FakeEmbedder

EMBEDDER = FakeEmbedder(dims=512)
DOGS, POOL = "town:en:dogs", "town:en:pool"


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("When is the pool open?", True),
        ("Was kostet ein Reisepass?", True),
        ("winter discount", True),
        ("I want to borrow a book, where is it on the shelf of the library?", True),  # "it", but it names enough
        ("opening hours?", False),
        ("what does it cost", False),
        ("And on Sundays?", False),
        ("und für Kinder?", False),
        ("do I have to book it", False),
        ("what documents do I need", False),
        ("Welche Unterlagen brauche ich?", False),
        ("Which documents do I need for a passport?", True),
    ],
)
def test_a_question_stands_alone_that_names_what_it_is_about(question: str, alone: bool) -> None:
    assert stands_alone(question, signs(question)) is alone


def embedded(text: str) -> Vector32:
    return EMBEDDER._vector(text)


def page(key: str, title: str, *texts: str) -> list[Hit]:
    """A chunk for each text, which is its unit."""
    return [
        Hit(
            page_key=key,
            page_id=key.rpartition(":")[2],
            lang="en",
            title=title,
            url=key,
            field="content",
            ord=n,
            text=text,
            revision=1,
            score=0.5,
            units=(HitUnit(start=n, text=text, kind="item", vector=embedded(f"{title}. {text}")),),
        )
        for n, text in enumerate(texts)
    ]


DOG_TAX = page(DOGS, "Dog tax", "First dog 84 a year", "Second dog 132 a year", "Pay by February", "Tag worn visibly")
SWIMMING = page(POOL, "Swimming pool", "Open daily from 9", "Second child free", "Lockers need a coin", "Bring a towel")


def search(question: str, hits: Sequence[Hit], near: Sequence[Hit] = ()) -> Retrieval:
    terms = [(word.lower(), 1) for word in question.strip("?").split()]
    return Retrieval(list(hits), Candidates(list(hits), [], terms, 20), None, list(near), embedded(question))


@pytest.mark.parametrize(
    ("question", "elsewhere", "leans"),
    [
        ("And for children?", 1.0, True),
        ("ok and on sundays?", 1.0, True),
        ("how much is it?", 1.0, True),
        ("how much?", 1.0, True),
        ("where?", 1.0, True),
        ("what wood may I use", 0.0, True),
        ("phone?", 0.5, True),
        ("When is the town hall open on Mondays?", 2.0, False),
        ("library opening hours on saturday", 1.0, False),
        ("Und für Kinder?", 1.0, True),
        ("bis wann?", 1.0, True),
        ("wieviel leute passen da rein", 0.0, True),
        ("Wo kann ich mein Auto anmelden?", 2.0, False),
        ("E per i bambini?", 1.0, True),
        ("quanto costa?", 1.0, True),
        ("Dove posso registrare la macchina nuova?", 2.0, False),
        ("¿y los domingos?", 1.0, True),
        ("et le samedi ?", 1.0, True),
        ("Où puis-je inscrire mon enfant à la crèche ?", 2.0, False),
        ("a w niedzielę?", 1.0, True),
        ("És a gyerekeknek?", 1.0, True),
        ("Și pentru copii?", 1.0, True),
        ("а дітям?", 0.0, True),
        ("Де можна зареєструвати новий автомобіль у місті?", 2.0, False),
    ],
)
def test_words_and_what_is_found_tell_whether_a_question_leans(
    question: str, elsewhere: float, leans: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`elsewhere`: how much nearer other pages are to it than the one that was shown, in standard deviations."""
    monkeypatch.setattr("pipelines.query.extractive.follow_ups.apart", lambda *_: elsewhere)
    assert (LEANS.score(signals(signs(question), embedded(question), [], [DOGS])) >= LEAST) is leans


def test_the_nearer_the_page_that_was_shown_the_likelier_a_question_leans_on_it() -> None:
    read = [*DOG_TAX, *SWIMMING]
    by_page = {key: apart(embedded("Which tag worn visibly"), read, [key]) for key in (DOGS, POOL)}
    assert by_page[DOGS] < 0 < by_page[POOL]
    assert by_page[DOGS] == pytest.approx(-by_page[POOL])
    words, vector = signs("Which tag worn visibly"), embedded("Which tag worn visibly")
    of_dogs, of_pool = (LEANS.score(signals(words, vector, read, [key])) for key in (DOGS, POOL))
    assert of_dogs > of_pool


def test_a_page_that_is_not_read_is_far_away_and_the_only_one_is_near() -> None:
    vector = embedded("Which tag?")
    assert apart(vector, SWIMMING, [DOGS]) == NOWHERE
    assert apart(vector, DOG_TAX, [DOGS]) == -NOWHERE
    assert apart(vector, [], [DOGS]) == NOWHERE


def test_of_the_pages_that_were_shown_those_count_that_a_search_finds_now() -> None:
    """What a visitor may not read any more, no search finds."""
    dense, keyword = (Candidate(page_key=key, field="content", ord=0) for key in (POOL, DOGS))
    found = Retrieval([], Candidates([dense], [keyword], [], 9), None, [])
    assert shown([found], [DOGS, "town:en:secret", POOL]) == [DOGS, POOL]


@pytest.mark.parametrize(
    ("question", "shown", "another"),
    [
        ("museum", [DOGS], True),
        ("And the museum?", [DOGS], True),
        ("museum opening hours", [DOGS], True),
        ("museum towel", [POOL], False),  # more than the title says
        ("opening hours?", [POOL], False),  # of what was spoken of: it has some, too
        ("museum", ["town:en:museum"], False),  # it is the page that was shown
        ("and the?", [DOGS], False),
    ],
)
def test_a_question_that_names_another_page_stands_alone(question: str, shown: list[str], another: bool) -> None:
    museum = page("town:en:museum", "Museum: opening hours and tickets", "Closed on Mondays")
    pool = page(POOL, "Swimming pool", "Opening hours: from 9 daily", "Bring a towel")
    assert names_another(question, museum, [*DOG_TAX, *pool, *museum], shown) is another


def test_a_question_never_grows_past_the_longest() -> None:
    assert joined("How much is the tax?", "And now?") == "How much is the tax? And now?"
    assert joined("a" * MAX_QUESTION, "And now?") == "And now?"
    assert continued("And for children?", said("a" * MAX_QUESTION)) == "And for children?"


def followed(question: str, before: str = "How much is the dog tax?") -> FollowUpResult:
    both = f"{before} {question}"
    made = follow(
        question,
        before,
        search(question, SWIMMING[:2]),
        search(both, [*DOG_TAX[:1], *SWIMMING[:2]], SWIMMING[2:]),
        DOG_TAX[1:],
        [DOGS],
    )
    assert made is not None
    assert made.question == both
    return made


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("And the second?", "Second dog 132 a year"),
        ("When to pay?", "Pay by February"),
        ("A tag?", "Tag worn visibly"),
    ],
)
def test_the_topic_chooses_the_page_and_the_questions_own_words_the_unit(question: str, answer: str) -> None:
    best = followed(question).findings.units[0]
    assert (best.hit.page_key, best.unit.text) == (DOGS, answer)
    assert followed(question).own.units[0].unit is best.unit


def test_without_a_vector_nothing_tells() -> None:
    blind = replace(search("And?", DOG_TAX), vector=None)
    assert follow("And?", "Dog tax?", blind, search("Dog tax? And?", DOG_TAX), [], [DOGS]) is None
    assert sure_alone("And?", blind)


def only(signal: str, least: float) -> SurenessProfile:
    """Sure of unit and page where that signal is high."""
    chance = Calibration(bias=-40 * least, weights={signal: 40.0})
    return SurenessProfile(chance, chance, least_unit=0.5, least_page=0.5)


def test_it_is_sure_of_a_unit_only_by_the_questions_own_words() -> None:
    covered, uncovered = followed("And the second?"), followed("And for hamsters?")
    profile = only("shared", 0.3)
    of_covered, of_uncovered = covered.sure(profile), uncovered.sure(profile)
    assert of_covered is not None
    assert of_uncovered is not None
    assert (of_covered.of, of_uncovered.of) == ("unit", "page")
    assert of_uncovered.unit is not None
    assert of_uncovered.unit < 0.5
    assert of_uncovered.page is not None
    assert of_uncovered.page >= 0.5


def test_where_neither_tells_it_is_sure_of_nothing_and_uncalibrated_of_the_unit() -> None:
    of = [followed("And for hamsters?").sure(profile) for profile in (only("shared", 2.0), None)]
    assert [each.of for each in of if each] == ["nothing", "unit"]


def test_a_question_alone_is_sure_where_its_best_unit_is() -> None:
    class Calibrated(FakeEmbedder):
        profile = EmbedderProfile(short_floor=0.3, content_floor=0.1, sureness=only("shared", 0.3))

    model = Calibrated()
    assert sure_alone("Second dog?", replace(search("Second dog?", DOG_TAX), model=model))
    assert not sure_alone("And hamsters?", replace(search("And hamsters?", DOG_TAX), model=model))


def test_cosines_of_one_unit_are_no_spread() -> None:
    assert np.isfinite(apart(embedded("x"), [DOG_TAX[0], SWIMMING[0]], [DOGS]))


CARD = "What does a library card cost for adults?"


def said(*questions: str) -> list[Turn]:
    return [Turn(question=question, answer="The site says so.") for question in questions]


@pytest.mark.parametrize(
    "question",
    [
        "And for children?",
        "And what does it cost?",
        "What does it cost?",
        "What about children?",
        "Is it open on Sunday?",
        "When are they open?",
        "Und für den zweiten?",
        "Was kostet das?",
        "Und was kostet das für Kinder?",
        "Wie komme ich dort hin?",
        "És a gyerekeknek mennyi?",
        "A dla dzieci ile?",
        "E per i bambini?",
        "¿Y para los niños?",
        "Et pour les enfants ?",
        "Și pentru copii cât?",
    ],
)
def test_what_cannot_stand_alone_is_asked_with_the_question_before(question: str) -> None:
    assert continued(question, said(CARD)) == f"{CARD} {question}"
    assert continued(question, []) == question


@pytest.mark.parametrize(
    "question",
    [
        "Where is the museum?",
        "Is there a swimming pool?",
        "Is it allowed to swim in the lake?",
        "When does the town hall open on Mondays?",
        "And where do I register my car, my trailer and my boat?",
        "Wo ist das Museum?",
        "Gibt es ein Schwimmbad?",
        "Wo kann ich das Auto anmelden?",
        "Was kostet die Hundesteuer?",
        "¿Dónde está el museo?",
        "Où est le musée ?",
        "Gdzie jest muzeum?",
        "犬の税金はいくらですか？",
        "?",
    ],
)
def test_a_new_topic_stands_alone(question: str) -> None:
    assert not leans(question)
    assert continued(question, said(CARD)) == question


def test_a_chain_of_follow_ups_goes_back_to_what_they_are_about() -> None:
    history = said("Where is the museum?", CARD, "And for children?")
    assert continued("And for students?", history) == f"{CARD} And for children? And for students?"
    assert continued("And now?", said(*["And then?"] * 9)).count("And then?") == 3
