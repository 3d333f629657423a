"""What may be told as an answer: precision first."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.query.extractive.certainty import certain
from schemas.query import Evidence, Sure
from tests.asking import source

SURE = Sure(of="unit", unit=0.9, page=0.9)
TITLE = "Swimming: Otterbad pool and Seebad lido"
HOURS = Evidence(
    n=1,
    start=0,
    text="| Sunday | 9–18 |",
    kind="row",
    headings=("Otterbad pool opening hours",),
    header="| Day | Time |",
    block=0,
    of=7,
    score=1,
)
FEE = "For a house of two floors the permit fee is 2,400 euros."


@pytest.mark.parametrize(
    ("question", "title", "expected"),
    [
        ("When is the Otterbad open?", TITLE, True),
        ("When is the lido open?", TITLE, False),  # the heading is about the other one
        ("When is the lido open?", "The lido and its kiosk", True),  # the heading names neither
        ("When is the library open?", TITLE, False),
    ],
)
def test_of_a_page_about_two_things_hours_are_of_the_one_that_the_heading_names(
    question: str, title: str, expected: bool
) -> None:
    assert certain(question, "en", HOURS, source(1, HOURS.text, title=title), SURE) is expected


@pytest.mark.parametrize("before", ["", "## Fees\n\n", "Fees depend on the costs. "])
def test_a_sentence_within_a_paragraph_is_only_shown(before: str) -> None:
    unit = Evidence(n=1, start=len(before), text=FEE, kind="prose", block=len(before), score=1)
    told = certain("What is the permit fee in euros?", "en", unit, source(1, before + FEE, title="Permit"), SURE)
    assert told is ("depend" not in before)


@pytest.mark.parametrize(
    ("lang", "question", "told"),
    [
        ("en", "How long does it take?", False),
        ("en", "How long does an ID card take?", True),
        ("en", "How long does a passport take?", False),  # which the title names alone
        ("de", "Wie lange muss ich warten?", False),
        ("fr", "Combien de temps faut-il attendre ?", False),
        ("uk", "Скільки це триває?", False),
    ],
)
def test_what_the_sentence_does_not_name_is_not_answered(lang: str, question: str, told: bool) -> None:
    text = "An ID card takes about three weeks."
    unit = Evidence(n=1, start=0, text=text, kind="prose", block=0, score=1)
    assert certain(question, lang, unit, source(1, text, title="ID cards and passports"), SURE) is told


@pytest.mark.parametrize(
    ("question", "kind", "text", "told"),
    [
        ("What does the old mill cost?", "row", "| Old mill | 180 euros |", True),
        ("What does a wedding cost?", "row", "| Old mill | 180 euros |", False),  # of one of its places
        ("What does the old mill cost?", "row", "| Old mill | surcharge of 180 euros |", False),
        ("What does the old mill cost on Saturday?", "row", "| Old mill | 180 euros |", False),  # perhaps not then
        ("What does the ferry cost?", "prose", "The ferry costs 4 euros.", True),
        ("How long does the ferry take?", "prose", "The ferry takes 4 minutes.", True),
        ("How long does the ferry take?", "item", "- Ferry for 18 years and over: 4 euros", False),  # an age
        ("What does the ferry cost?", "prose", "The ferry costs 4 euros in winter and 6 euros in summer.", False),
        ("What does a copy cost?", "item", "- Copy: 2 euros", True),
        ("What does a wedding cost?", "item", "- Copy: 2 euros", False),
        ("What does a wedding for a child cost?", "item", "- Birthday parties with cake: 14 euros a child", False),
        ("Can you tell me what a copy costs?", "item", "- Copy: 2 euros", True),  # "can" denies nothing
    ],
)
def test_a_price_is_told_of_what_is_named_alone_and_whole(question: str, kind: Any, text: str, told: bool) -> None:
    unit = Evidence(
        n=1, start=0, text=text, kind=kind, headings=("Wedding",), header="| Place | Price |", block=0, score=1
    )  # fmt: skip
    assert certain(question, "en", unit, source(1, text, title="Wedding"), SURE) is told
    parts = unit.model_copy(update={"header": "| Place | Surcharge |"})
    assert not (kind == "row" and certain(question, "en", parts, source(1, text, title="Wedding"), SURE))


def test_a_compound_is_not_named_by_its_first_part() -> None:
    for text, told in (("| Urnenwahlgrab | 1.240 Euro |", False), ("| Urnen | 1.240 Euro |", True)):
        unit = Evidence(n=1, start=0, text=text, kind="row", header="| Grab | Preis |", block=0, score=1)
        assert certain("Was kostet eine Urne?", "de", unit, source(1, text, title="Gräber"), SURE) is told


def test_a_page_s_title_alone_names_no_price_in_a_sentence() -> None:
    text = "Front crawl for adults runs over eight evenings and costs 88 euros."
    unit = Evidence(n=1, start=0, text=text, kind="prose", headings=("Courses",), block=0, score=1)
    assert not certain("How much is swimming for adults?", "en", unit, source(1, text, title="Swimming"), SURE)
    assert certain("How much is front crawl for adults?", "en", unit, source(1, text, title="Swimming"), SURE)


@pytest.mark.parametrize(
    ("heading", "told"),
    [("Are there showers?", False), ("What does a towel cost?", True), ("Showers and towels", True)],
)
def test_an_answer_to_another_question_of_the_page_is_only_shown(heading: str, told: bool) -> None:
    text = "Yes, free of charge; bring your own towel, or hire one for 2 pounds."
    unit = Evidence(n=1, start=0, text=text, kind="prose", headings=(heading,), block=0, score=1)
    assert certain("How much is a towel?", "en", unit, source(1, text, title="Questions"), SURE) is told
