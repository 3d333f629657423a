"""A question for a price is shown the price of what it names, on the page that was found."""

from __future__ import annotations

import pytest

from pipelines.query.extractive.wanted import lacks_price, priced
from schemas.query import Evidence
from tests.asking import source

PAGE = source(1, "", title="Pool and sauna")
OTHER = source(2, "", title="Museum")
HEADER = "| Ticket | Price |"


def prose(text: str, score: float, n: int = 1, headings: tuple[str, ...] = ()) -> Evidence:
    return Evidence(n=n, start=0, text=text, kind="prose", headings=headings, block=0, score=score)


def row(text: str, score: float) -> Evidence:
    return Evidence(n=1, start=50, text=text, kind="row", header=HEADER, block=50, of=2, score=score)


TOWEL = prose("Towels are 3 euros.", 10, headings=("Sauna",))
SAUNA, ADULTS = row("| Sauna and pool | 14 euros |", 8), row("| Adults | 5 euros |", 8.5)
MUSEUM = prose("The sauna of 1900 costs 2 euros to see.", 9.9, n=2)


def first(question: str, *evidence: Evidence, whole: str = "") -> str:
    return priced(evidence, (PAGE, OTHER), question, whole or question, "en")[0].text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How much is the sauna?", SAUNA.text),  # and not what its heading alone names
        ("How much is a towel?", TOWEL.text),
        ("Can I borrow a towel in the sauna?", TOWEL.text),  # no price is asked for
        ("How much is it?", ADULTS.text),  # a price of a table
    ],
)
def test_of_a_pages_prices_that_of_the_named_thing_comes_first(question: str, text: str) -> None:
    assert first(question, TOWEL, MUSEUM, ADULTS, SAUNA) == text


def test_a_compound_names_something_else() -> None:
    party = prose("Kindergeburtstage kosten 14 Euro.", 10)
    child = prose("Kinder baden für 2 Euro.", 8)
    assert first("Was kostet das Baden für Kinder?", party, child) == child.text


def test_a_question_that_leans_is_about_what_was_named_before_it() -> None:
    fine = prose("Replacing the tag costs 5 euros.", 9.5)
    dog = row("| first dog | 84 euros |", 8)
    assert first("What does it cost?", fine, dog, whole="How do I register a dog? What does it cost?") == dog.text
    assert first("What must I bring?", fine, dog, whole="What does a dog cost? What must I bring?") == fine.text


@pytest.mark.parametrize(
    ("question", "text", "lacks"),
    [
        ("What does an account cost?", "An account that is not paid is closed.", True),
        ("What does an account cost?", "An account is 5 euros a month.", False),
        ("What does an account cost?", "An account is free of charge.", False),
        ("How do I close my account?", "An account that is not paid is closed.", False),
    ],
)
def test_where_the_page_has_no_price_none_is_found(question: str, text: str, lacks: bool) -> None:
    assert lacks_price((prose(text, 9), MUSEUM), (PAGE, OTHER), question, "en") is lacks


def test_where_nothing_was_found_nothing_lacks() -> None:
    assert not lacks_price((), (), "What does it cost?", "en")


def test_the_currency_may_be_in_the_header() -> None:
    year = row("| Year | 90 |", 7).model_copy(update={"header": "| Ticket | Euros |"})
    assert first("What does a year cost?", TOWEL, year) == year.text
    assert not lacks_price((year,), (PAGE,), "What does a year cost?", "en")
