"""What is measured of one case: worked examples that docs/reference/measures.md shows."""

from __future__ import annotations

from datetime import UTC, datetime
from math import log2
from typing import Any

import pytest

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.measures import AnswerPassage, Observed, measured

AT = datetime(2026, 11, 23, tzinfo=UTC)
CARD = Case.model_validate(
    {
        "id": "card",
        "question": "What does a library card cost?",
        "lang": "en",
        "pages": ["library", "fees"],
        "answers": ["18 euros", "18 euros a year"],
        "facts": [["€18", "18 euros"], "adults"],
        "never": ["€9"],
    }
)
DRAGON = Case(id="dragon", question="What does a dragon cost?", lang="en", never=("gold",), expect="refuse")
HELLO = Case(id="hello", question="Hello", lang="en", expect="courtesy")


def page(name: str, text: str = "", lang: str = "en", *, cited: bool = False) -> AnswerPassage:
    return AnswerPassage(page=name, lang=lang, text=text, cited=cited)


def observed(answer: str = "", **more: Any) -> Observed:
    return Observed.model_validate({"case": "?", "at": AT, "answer": answer, "ms": 120.0, "grade": 0} | more)


def test_a_worked_example() -> None:
    figures = measured(
        CARD,
        observed(
            "A card costs 18 euros a year for adults.",
            found=(page("bus"), page("library"), page("bus"), page("library")),
            sources=(
                page("library", "# Library\n\nThe card costs **18 euros** a year.", cited=True),
                page("bus", cited=True),
            ),
        ),
    )
    ideal = 1 + 1 / log2(3)
    assert figures == pytest.approx(
        {
            "hit@1": 0,
            "hit@5": 1,
            "hit@10": 1,
            "MRR@10": 1 / 2,
            "nDCG@10": (1 / log2(3)) / ideal,  # 0.387
            "recall@10": 1 / 2,
            "first source": 1,
            "answer in 2000": 1,
            "answer in 4000": 1,
            "EM": 0,
            "cover-EM": 1,
            # card costs 18 euros year for adults | 18 euros year: 3 common of 7 said, and of 3
            "F1": 2 * (3 / 7) * 1 / (3 / 7 + 1),
            "facts": 1,
            "right": 1,
            "citation precision": 1 / 2,
            "citation recall": 1 / 2,
            "refusal": 1,
            "language": 1,
        }
    )


def test_a_refusal_keeps_its_place_in_every_figure_of_its_case() -> None:
    refused = measured(
        CARD, observed("I found nothing about 18 euros for adults.", grade=5, sources=(page("library"),))
    )
    assert [refused[name] for name in ("EM", "cover-EM", "F1", "facts", "right", "refusal", "citation recall")] == [
        0
    ] * 7
    assert "citation precision" not in refused  # of no citation
    assert refused["first source"] == 1


def test_what_failed_counts_as_nothing() -> None:
    failed = Observed(case="?", at=AT, ms=30_000.0, failed="timeout")
    assert set(measured(CARD, failed).values()) == {0.0}
    assert measured(DRAGON, failed) == {"right": 0, "refusal": 0}  # an apology is no refusal
    assert measured(HELLO, failed) == {"right": 0}


@pytest.mark.parametrize(
    ("case", "answer", "right", "refusal"),
    [
        (CARD, observed("18 euros for adults", sources=(page("bus", cited=True),)), 1, 1),
        (CARD, observed("18 euros", sources=(page("library", cited=True),)), 0, 1),  # half of it
        (CARD, observed("18 euros for adults, €9 reduced", sources=(page("library", cited=True),)), 0, 1),
        (CARD, observed("18 euros for adults", sources=(page("library"),)), 0, 0),
        (DRAGON, observed("Nothing was found.", grade=5), 1, 1),
        (DRAGON, observed("Nothing but gold was found.", grade=5), 0, 1),
        (DRAGON, observed("Dogs cost 90 euros.", sources=(page("dog-tax", cited=True),)), 0, 0),
        (HELLO, observed("Hello!"), 1, None),
        (HELLO, observed("Nothing was found.", grade=5), 0, None),
        (HELLO, observed("Hello!", sources=(page("library"),)), 0, None),
        (Case(id="x", question="x", expect="answer"), observed("y", sources=(page("a", cited=True),)), None, 1),
        (Case(id="x", question="x"), observed("y"), None, None),
    ],
)
def test_what_is_right(case: Case, answer: Observed, right: float | None, refusal: float | None) -> None:
    figures = measured(case, answer)
    assert (figures.get("right"), figures.get("refusal")) == (right, refusal)


def test_without_statements_a_reference_answer_is_to_be_said_and_without_either_a_page_cited() -> None:
    cited = (page("library", cited=True),)
    by_answer = Case(id="x", question="x", lang="en", answers=("18 euros",), pages=("fees",), expect="answer")
    assert measured(by_answer, observed("It is 18 euros.", sources=cited))["right"] == 1
    assert measured(by_answer, observed("It is 118 euros.", sources=cited))["right"] == 0
    by_page = Case(id="x", question="x", pages=("library", "fees"), expect="answer")
    assert measured(by_page, observed("It is.", sources=cited))["right"] == 1
    assert measured(by_page, observed("It is.", sources=(page("bus", cited=True),)))["right"] == 0


def test_a_page_in_another_language_than_the_case_wants_is_another_page() -> None:
    case = Case(id="x", question="x", pages=("library",), page_lang="de", expect="answer")
    found = (page("library", lang="en"), page("library", lang="de"))
    assert measured(case, observed(found=found))["MRR@10"] == 0.5
    assert measured(case.model_copy(update={"page_lang": None}), observed(found=found))["MRR@10"] == 1


def test_the_answer_must_stand_within_the_characters() -> None:
    case = Case(id="x", question="x", answers=("18 euros",), expect="answer")
    far = observed(sources=(page("a", "x" * 1_995), page("b", "18 euros")))
    assert (measured(case, far)["answer in 2000"], measured(case, far)["answer in 4000"]) == (0, 1)


@pytest.mark.parametrize(
    ("lang", "answer", "figure"),
    [
        ("en", "The library is open on Monday.", 1),
        ("en", "Die Bibliothek ist am Montag offen.", 0),
        ("de-AT", "Die Bibliothek ist am Montag offen.", 1),
        ("fr", "La bibliothèque est ouverte le lundi et le mardi.", 1),
        ("en", "18 €", None),
        (None, "The library is open.", None),
    ],
)
def test_the_language_of_an_answer(lang: str | None, answer: str, figure: float | None) -> None:
    assert measured(Case(id="x", question="x", lang=lang), observed(answer)).get("language") == figure
