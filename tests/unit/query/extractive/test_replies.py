"""What may be meant, where many pages speak of what was asked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipelines.query.extractive.replies import TOPICS, bare, narrower, reply
from prompts.phrases import Phrases
from schemas.query import Evidence, Grade, Retrieved, Source, Sure, Turn
from tests.asking import question, retrieved, source

PAGES = [source(n, "It costs.", title) for n, title in enumerate(["Pool", "Library", "Museum"], start=1)]


def broad(
    *sources: Source, text: str = "What does it cost to get in?", grade: Grade = 1, evidence: Sequence[Evidence] = ()
) -> Retrieved:
    asked = question(text)
    return retrieved(*sources, text=text).model_copy(
        update={"request": asked, "grade": grade, "evidence": tuple(evidence)}
    )


def unit(n: int, heading: str) -> Evidence:
    return Evidence(n=n, start=n, text="It costs.", kind="prose", headings=("Fees", heading), block=n, score=1.0)


def labels(found: Retrieved) -> list[str]:
    return [topic.label for topic in narrower(found)]


def test_a_title_shares_a_part_of_one_of_its_words() -> None:
    bus = source(1, "The number 4 runs until 11 pm.", "Stadtbus – Linien und Fahrscheine", "de")
    assert "Stadtbus" in reply(broad(bus, text="Wann fährt der letzte Bus?", grade=4), Phrases.load())


def test_titles_are_named_that_share_something_and_none_are_promised_where_none_does() -> None:
    phrases = Phrases.load()
    some = reply(broad(*PAGES, text="Was kostet die Musemsführung, and the museum?", grade=4), phrases)
    assert ("[Museum]" in some, "[Pool]" in some) == (True, False)
    assert "no page on this website that answers" in some
    none = reply(broad(*PAGES, text="Who won the football game?", grade=4), phrases)
    assert none == phrases.say("nothing-found", "en")


@pytest.mark.parametrize(
    ("text", "page", "named"),
    [
        ("Combien coûte une entrée pour un enfant ?", 0.3, True),
        ("Combien coûte une entrée pour un enfant ?", 0.2, False),
        ("Who won the football game?", 0.3, False),
        ("хто виграв", 0.3, True),  # no stop word, and the index knows none of its words
    ],
)
def test_a_question_in_another_language_shares_no_word_with_the_pages_that_are_named(
    text: str, page: float, named: bool
) -> None:
    asked = broad(*PAGES, text=text, grade=4)
    sure = Sure(of="nothing", unit=0.1, page=page, signals={"known": 0.0})
    assert ("[Pool]" in reply(asked.model_copy(update={"sure": sure}), Phrases.load())) is named


@pytest.mark.parametrize("grade", [1, 3])
def test_a_question_that_many_pages_speak_of_can_be_narrowed(grade: Grade) -> None:
    topics = narrower(broad(*PAGES, grade=grade))
    assert [topic.label for topic in topics] == ["Pool", "Library", "Museum"]
    assert topics[0].question == "What does it cost to get in? – Pool"


@pytest.mark.parametrize("grade", [0, 2, 4, 5])
def test_one_that_is_narrow_or_has_no_answer_cannot(grade: Grade) -> None:
    assert labels(broad(*PAGES, text="What does a swim cost for a child?", grade=grade)) == []


def test_one_that_names_a_single_thing_may_be_about_many() -> None:
    assert labels(broad(*PAGES, text="How do I register?", grade=0)) == ["Pool", "Library", "Museum"]


@pytest.mark.parametrize(
    ("sure", "narrowed"),
    [
        (Sure(of="unit", unit=0.7, page=0.9), False),
        (Sure(of="unit", unit=0.5, page=0.9), True),
        (Sure(of="page", unit=0.4, page=0.7), True),
        (Sure(of="unit"), True),  # an embedder that nobody calibrated
    ],
)
def test_whoever_got_a_sure_answer_is_not_asked_what_was_meant(sure: Sure, narrowed: bool) -> None:
    asked = broad(*PAGES, text="What does a swim cost for a child?")
    assert bool(narrower(asked.model_copy(update={"sure": sure}))) is narrowed


def test_a_word_alone_can_be_narrowed_whatever_the_gate_says() -> None:
    pages = [source(n, "Park.", title) for n, title in enumerate(["Residents' parking", "Trade fair"], start=1)]
    topics = narrower(broad(*pages, text="parking", grade=0))
    assert [topic.question for topic in topics] == ["Residents' parking", "parking – Trade fair"]
    assert labels(broad(*pages, text="parking", grade=5)) == []


def test_a_page_that_is_called_as_the_question_is_narrowed_by_its_headings() -> None:
    page = source(1, "Park.", "Parking")
    evidence = [unit(1, "For residents"), unit(1, "**For visitors**"), unit(1, "For residents")]
    assert labels(broad(page, text="parking", grade=0, evidence=evidence)) == ["For residents", "For visitors"]


def test_one_topic_alone_is_no_choice() -> None:
    assert labels(broad(PAGES[0])) == []
    same = [page.model_copy(update={"title": "Pool"}) for page in PAGES]
    assert labels(broad(*same)) == []


def test_pages_that_are_much_farther_are_left_out() -> None:
    far = PAGES[2].model_copy(update={"score": 0.1})
    assert labels(broad(*PAGES[:2], far)) == ["Pool", "Library"]


def test_there_are_never_many() -> None:
    many = [source(n, "It costs.", f"Place {n}") for n in range(1, 10)]
    assert len(narrower(broad(*many))) == TOPICS


def test_titles_lose_the_name_of_the_site() -> None:
    assert bare(["Pool | Town", "Library | Town"]) == ["Pool", "Library"]
    assert bare(["Pool – Sports | Town", "Hall – Sports | Town"]) == ["Pool", "Hall"]
    assert bare(["Pool", "School"]) == ["Pool", "School"]
    assert bare(["Pool | Town"]) == ["Pool | Town"]


def test_a_follow_up_is_narrowed_as_it_was_understood() -> None:
    found = broad(*PAGES, text="And what does it cost?")
    asked = found.request.model_copy(update={"history": (Turn(question="Is it open?", answer="Yes."),)})
    topics = narrower(found.model_copy(update={"request": asked, "question": "What does a ticket cost?"}))
    assert topics[0].question == "What does a ticket cost? – Pool"


def test_a_courtesy_is_not_narrowed() -> None:
    assert labels(broad(*PAGES, text="Hi", grade=1).model_copy(update={"courtesy": "greeting"})) == []
