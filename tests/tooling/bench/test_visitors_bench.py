"""The measure of everyday questions: what counts as useful, as wrong, and which part a case is in."""

from __future__ import annotations

import re

import pytest

from bench.misspelled import misspelled
from bench.visitors import GERMAN, HALF, LONGEST, ROOTS, Case, Shown, cases, judged, part_of, unfounded
from sites.content import DEMO, load_pages
from text.words import words

PRICE = Case(
    id="en-price-01",
    kind="price",
    lang="en",
    question="card?",
    pages=("library",),
    facts=(("€18", "18 euros"), ("adults",)),
    never=("€9",),
    expect="answer",
)
REFUSE = Case(id="en-near-miss-01", kind="near-miss", lang="en", question="film?", expect="refuse")
HELLO = Case(id="en-greeting-01", kind="greeting", lang="en", question="hi", expect="courtesy")


def shown(answer: str, *cited: str, grade: int = 0, pages: tuple[str, ...] | None = None) -> Shown:
    return Shown(answer, grade, cited if pages is None else pages, cited)


@pytest.mark.parametrize(
    ("case", "answer", "useful", "wrong", "refused"),
    [
        (PRICE, shown("A card costs\u00a018 EUROS for Adults.", "library"), True, False, False),
        (PRICE, shown("A card costs €18.", "library"), False, False, False),  # half of it
        (PRICE, shown("€18 for adults, €9 reduced.", "library"), False, True, False),  # what must not be said
        (PRICE, shown("Cranes and skips.", "building-permit"), False, True, False),  # another page's words
        (PRICE, shown("€18 for adults." + "x" * LONGEST, "library"), False, False, False),  # too long
        (PRICE, shown("Nothing found.", grade=5), False, False, True),
        (PRICE, shown("€18 for adults", grade=5, pages=("library",)), False, False, True),  # listed, not answered
        (REFUSE, shown("Not on this website.", grade=4, pages=("museum",)), True, False, False),
        (REFUSE, shown("The museum is in Klostergasse.", "museum"), False, True, False),
        (HELLO, shown("Hello! Ask me about the town."), True, False, False),
        (HELLO, shown("I could not find anything.", grade=5), False, False, False),
    ],
)
def test_what_an_answer_is_worth(case: Case, answer: Shown, useful: bool, wrong: bool, refused: bool) -> None:
    verdict = judged(case, answer)
    assert (verdict.useful, verdict.wrong, verdict.refused) == (useful, wrong, refused)


def test_the_right_page_counts_where_one_is_expected() -> None:
    assert judged(PRICE, shown("?", pages=("library", "museum"))).page_first is True
    assert judged(PRICE, shown("?", pages=("museum", "library"))).page_first is False
    assert judged(REFUSE, shown("?", pages=("museum",))).page_first is None


def test_the_hold_out_is_a_third_of_the_set_and_the_same_in_any_order() -> None:
    every = cases()
    held, tuned = part_of(every, "hold-out"), part_of(every, "tune")
    assert {case.id for case in held} | {case.id for case in tuned} == {case.id for case in every}
    assert not {case.id for case in held} & {case.id for case in tuned}
    assert 0.28 < len(held) / len(every) < 0.38
    assert {case.id for case in part_of(every[::-1], "hold-out")} == {case.id for case in held}


def test_every_kind_of_question_is_asked_in_both_languages_of_the_site() -> None:
    every = cases()
    assert len({case.id for case in every}) == len(every) >= 290
    kinds = {case.kind for case in every}
    for lang in ("en", "de"):
        assert {case.kind for case in every if case.lang == lang} == kinds
    assert sum(case.lang not in ("en", "de") for case in every) >= 40


@pytest.mark.parametrize("site", GERMAN)
def test_what_is_asked_in_other_languages_stands_on_the_german_pages(site: str) -> None:
    every = cases(site)
    assert len({case.id for case in every}) == len(every) == 45
    assert {case.lang for case in every} == {"ar", "en", "fr", "pl", "tr", "uk"}
    assert sum(case.expect == "refuse" for case in every) == 15
    assert 20 <= len(part_of(every, "hold-out", HALF)) <= 24
    texts = {
        page.id: re.sub("<[^>]*>", " ", page.content) for page in load_pages(ROOTS[GERMAN[site]]) if page.lang == "de"
    }
    assert not unfounded(every, texts)


@pytest.mark.parametrize("lang", ["de", "en"])
def test_what_is_asked_in_everyday_words_stands_on_the_pages(lang: str) -> None:
    every = [case for case in cases("demo-everyday") if case.lang == lang]
    assert len({case.id for case in every}) == len(every) == 20
    texts = {page.id: re.sub("<[^>]*>", " ", page.content) for page in load_pages(DEMO) if page.lang == lang}
    assert not unfounded(every, texts)


def test_a_misspelled_twin_has_one_wrong_word_and_is_the_same_each_time() -> None:
    question = "When is the library open, and the swimming pool?"
    twins = [misspelled(question, str(seed)) for seed in range(60)]
    assert twins == [misspelled(question, str(seed)) for seed in range(60)]
    wrong = [set(words(twin)) - set(words(question)) for twin in twins]
    assert {len(each) for each in wrong} == {1}
    assert {len(word) for each in wrong for word in each} >= {6, 7, 8, 9}
    assert misspelled("Is it open now?", "seed") == "Is it open now?"
