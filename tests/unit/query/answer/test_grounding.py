"""What a model says of its sources, and what of it they do not bear out."""

from __future__ import annotations

import pytest

from pipelines.query.answer.grounding import Doubt, Grounds
from schemas.query import Source

CARD = "A library card costs 12 euros a year. Pupils pay 6 euros."
HOURS = "| Day | Hours |\n| --- | --- |\n| Monday to Friday | 6:30 - 21:00 |\n| Saturday | 8:00 - 18:00 |"
DOGS = "Dogs are allowed in the castle garden. They are not allowed in the halls. Ask Dr Helen Marsh, form B12."


def source(text: str, n: int = 1, lang: str = "en") -> Source:
    return Source(
        n=n, page_id=f"p{n}", lang=lang, title="Page", url="http://site.example/page", field="content", ord=0,
        text=text, score=1.0, cosine=None, revision=1,
    )  # fmt: skip


def doubt(
    sentence: str, *texts: str, cited: tuple[int, ...] = (1,), question: str = "", lang: str = "en"
) -> Doubt | None:
    sources = [source(text, n) for n, text in enumerate(texts, 1)]
    return Grounds(sources, question, lang, ["Today is Monday, 2026-11-23."]).doubt(sentence, cited)


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("A library card costs €12 a year.", CARD),
        ("Pupils pay six euros.", CARD),
        ("There are two prices:", CARD),
        ("On Saturday it is open from 8 am to 6 pm.", HOURS),
        ("On Tuesdays the pool closes at 21:00.", HOURS),
        ("Dogs are not allowed in the halls.", DOGS),
        ("Helen Marsh knows about form B12.", DOGS),
        ("Today is Monday, 23 November.", DOGS),
        ("| Monday to Friday | 6:30 - 21:00 |", HOURS),
        ("More at http://site.example/page.", DOGS),
        ("It is not open on Sundays.", HOURS),
        ("It isn't open on Sundays.", "It is open on Mon-Fri 9.30-17.00."),
        ("Pupils pay 6 euros instead of 12 euros.", CARD),
        ("Lessons on Tuesdays begin at 3:30 pm or 4:30 pm.", "Lessons begin on Tuesdays at 15:30 and 16:30."),
    ],
)
def test_borne_out(sentence: str, passage: str) -> None:
    assert doubt(sentence, passage) is None


@pytest.mark.parametrize(
    ("sentence", "passage", "expected"),
    [
        ("A card costs 99 euros.", CARD, Doubt("figure", "99 euros")),
        ("A card costs 12 dollars.", CARD, Doubt("figure", "12 dollars")),
        ("On Saturday it is open until 21:00.", HOURS, Doubt("belongs", "21:00")),
        ("Saturday opens at 6:30.", HOURS, Doubt("belongs", "6:30")),
        (
            "Dogs are not allowed in the castle garden.",
            DOGS,
            Doubt("negation", "Dogs are not allowed in the castle garden"),
        ),
        ("Ask Dr Susan Marsh about it.", DOGS, Doubt("name", "Susan Marsh")),
        ("You need form B21.", DOGS, Doubt("name", "B21")),
        ("Write to someone@site.example.", DOGS, Doubt("figure", "someone@site.example")),
        ("| Sunday | 8:00 - 18:00 |", HOURS, Doubt("figure", "Sunday")),
    ],
)
def test_not_borne_out(sentence: str, passage: str, expected: Doubt) -> None:
    assert doubt(sentence, passage) == expected


OPEN = "The citizens office {} is open Mon 9-12 and 14-18."
BUREAU = "Le bureau {} est ouvert le lundi de 9 h à 12 h."


@pytest.mark.parametrize(
    ("page", "said", "lang"),
    [
        (OPEN.format("in AT&T Park"), OPEN.format(""), "en"),
        (OPEN.format("in AT&T Park"), "The office is open.", "en"),
        (OPEN.format("in Market Street No. 5"), OPEN.format("in Market Street 5"), "en"),
        ("The office won the prize of the best office.", "The office has the prize of the best office.", "en"),
        (BUREAU.format("n° 5"), BUREAU.format(""), "fr"),
        (BUREAU.format("du bus N"), BUREAU.format(""), "fr"),
        ("Le billet d'entrée coûte 5 euros par personne.", "Le billet d'entrée coûte 5 euros.", "fr"),
    ],
)
def test_letters_that_stand_alone_and_words_that_deny_only_beside_another_deny_nothing(
    page: str, said: str, lang: str
) -> None:
    passage = source(page, lang=lang)
    assert Grounds([passage], "", lang).doubt(said, [1]) is None


@pytest.mark.parametrize(
    ("denied", "said", "lang"),
    [
        ("Dogs aren’t allowed in the garden.", "Dogs are allowed in the garden.", "en"),
        ("Dogs can't be brought into the garden.", "Dogs can be brought into the garden.", "en"),
        ("The garden won't open on holidays.", "The garden opens on holidays.", "en"),
        ("Le jardin n'est ouvert à personne en hiver.", "Le jardin est ouvert en hiver.", "fr"),
        ("Le jardin n’ouvre jamais en hiver.", "Le jardin ouvre en hiver.", "fr"),
    ],
)
def test_denials_inside_of_words_deny(denied: str, said: str, lang: str) -> None:
    for page, sentence in ((denied, said), (said, denied)):
        doubted = Grounds([source(page, lang=lang)], "", lang).doubt(sentence, [1])
        assert doubted is not None
        assert doubted.kind == "negation"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("No entry before 9:00. You can't leave after 22:00.", "You can't enter before 9:00."),
        ("The sauna admits nobody before 9:00. After 22:00 you won’t find staff.", "It won’t open before 9:00."),
    ],
)
def test_what_is_left_of_a_word_that_denies_is_no_word(page: str, said: str) -> None:
    assert doubt(said, page) is None


def test_a_long_timetable_is_borne_out_by_itself() -> None:
    times = ", ".join(f"{hour}:{minute:02}" for hour in range(5, 24) for minute in range(0, 60, 10))
    assert doubt(f"The bus leaves at {times}.", f"The bus leaves at {times}.") is None


def test_only_what_is_cited_bears_a_sentence_out() -> None:
    assert doubt("A card costs 12 euros.", DOGS, CARD, cited=(1,)) == Doubt("figure", "12 euros")
    assert doubt("A card costs 12 euros.", DOGS, CARD, cited=(2,)) is None
    assert doubt("A card costs 12 euros.", DOGS, CARD, cited=(1, 2)) is None


def test_without_a_citation_any_source_may_bear_it_out() -> None:
    assert doubt("A card costs 12 euros.", DOGS, CARD, cited=()) is None
    assert doubt("A card costs 99 euros.", DOGS, CARD, cited=()) == Doubt("figure", "99 euros")


def test_the_question_may_be_repeated_but_for_its_prices() -> None:
    assert doubt("For a child of 7 the page names no price.", CARD, question="What does my child, 7, pay?") is None
    assert doubt("Yes, it is 99 euros.", CARD, question="Is it 99 euros?") == Doubt("figure", "99 euros")


def test_in_another_language_figures_are_compared_and_words_are_not() -> None:
    assert doubt("Der Ausweis kostet 12 Euro, sagt die Große Bücherei.", CARD, lang="de") is None
    assert doubt("Der Ausweis kostet 21 Euro.", CARD, lang="de") == Doubt("figure", "21 Euro")


def test_where_nouns_are_capitalised_a_name_is_told_by_what_stands_at_its_place() -> None:
    passage = source(
        "Die Musikschule leitet Andrea Kessler, Lindenstraße 8. Im Sekretariat hilft Frau Yildiz.", lang="de"
    )
    grounds = Grounds([passage], "", "de")
    assert grounds.doubt("Neue Schüler begrüßt Frau Kessler am Eingang Lindenstraße 8.", [1]) is None
    assert grounds.doubt("Sabine Kessler leitet die Musikschule.", [1]) == Doubt("name", "Sabine Kessler")
    assert grounds.doubt("Sie steht in der Gartenstraße 8.", [1]) == Doubt("name", "Gartenstraße 8")
