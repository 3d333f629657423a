"""What a model writes is shown sentence by sentence, and only what its sources bear out."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.query.answer.citation_filter import LONGEST, CitationFilter
from pipelines.query.answer.grounding import Grounds
from schemas.answer import Token
from tests.asking import source

CARD = source(1, "A library card costs 12 euros a year. It is open from 9 to 17.")
POOL = source(2, "A ticket for the pool costs 4 euros.")
TIMETABLE = source(3, "\n".join(f"| {n} | {n % 24:02}:{n * 7 % 60:02} | {n} euros |" for n in range(120)))


def filtered(*pieces: str) -> CitationFilter:
    filter = CitationFilter([CARD, POOL], Grounds([CARD, POOL], "What does it cost?", "en").doubt, "en")
    events = [event for piece in pieces for event in filter.feed(piece)] + filter.finish()
    assert "".join(event.text for event in events if isinstance(event, Token)) == filter.text
    assert [event for event in events if not isinstance(event, Token)] == filter.citations
    return filter


def cited(filter: CitationFilter) -> list[tuple[int, str]]:
    return [(c.n, filter.text[c.start : c.end]) for c in filter.citations]


@pytest.mark.parametrize(
    ("said", "text", "citations"),
    [
        ("A card costs 12 euros [1]. Have fun.", "A card costs 12 euros. Have fun.", [(1, "A card costs 12 euros")]),
        (
            "A card costs 99 euros [1]. It is open until 17:00 [1].",
            "It is open until 17:00.",
            [(1, "It is open until 17:00")],
        ),
        (
            "The pool costs 4 euros [2]. A card costs 99 euros [1].",
            "The pool costs 4 euros.",
            [(2, "The pool costs 4 euros")],
        ),
        (
            "The pool costs 4 euros. [2] A card costs 99 euros. [1]",
            "The pool costs 4 euros.",
            [(2, "The pool costs 4 euros.")],
        ),
        ("The pool costs 4 euros [1].", "", []),  # another source says so
        ("It is 4 euros [2].\n\nA card is 99 [1].\nYes.", "It is 4 euros.\n\nYes.", [(2, "It is 4 euros")]),
        (
            "[2] The pool costs 4 euros. A card costs 99.\nYes.",
            "The pool costs 4 euros.\nYes.",
            [(2, "The pool costs 4 euros.")],
        ),
        (
            "- Card: 12 euros [1]\n- Pool: 99 euros [2]\n- Else: ask",
            "- Card: 12 euros\n- Else: ask",
            [(1, "Card: 12 euros")],
        ),
        (
            "| Card | 12 euros [1] |\n| --- | --- |\n| Pool | 99 euros [2] |",
            "| Card | 12 euros |\n| --- | --- |",
            [(1, "| Card | 12 euros")],
        ),
        ("See [us](https://evil.example) at 9 [1].", "See us at 9.", [(1, "See us at 9")]),
        ("See &#91;us&#93;(https://evil.example) at 9 [1].", "See \\[us\\]  at 9.", [(1, "See \\[us\\]  at 9")]),
        ("It is 12&nbsp;euros [[1]](/p1).", "It is 12\u00a0euros.", [(1, "It is 12\u00a0euros")]),
        (r"It is 12 euros \[1\].", "It is 12 euros.", [(1, "It is 12 euros")]),
    ],
)
def test_what_is_shown_and_cited(said: str, text: str, citations: list[tuple[int, str]]) -> None:
    assert (filtered(said).text, cited(filtered(said))) == (text, citations)
    assert (filtered(*said).text, cited(filtered(*said))) == (text, citations)


def test_a_sentence_comes_when_the_next_one_begins() -> None:
    filter = CitationFilter([CARD], Grounds([CARD], "", "en").doubt, "en")
    assert filter.feed("A card costs 12 euros") == []
    assert filter.feed(" [1].") == []
    first, citation = filter.feed(" It")
    assert first == Token(text="A card costs 12 euros.")
    assert citation == filter.citations[0]


def test_without_end_it_comes_in_parts_which_are_the_same_however_it_is_cut() -> None:
    said = "It costs 4 euros [2]. " + "word " * LONGEST + "[1] and so on. A card costs 99 euros [1]. " * 30
    whole = filtered(said)
    assert len(whole.left_out) == 30
    assert max(len(sentence) for sentence, _ in whole.stated) <= LONGEST
    for size in (1, 7, 300):
        pieces = filtered(*(said[i : i + size] for i in range(0, len(said), size)))
        assert (pieces.text, pieces.citations, pieces.left_out) == (whole.text, whole.citations, whole.left_out)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("It costs 4 euros [2]. Open on Sun", "It costs 4 euros."),
        ("It costs 4 euros [2]. Open daily. ", "It costs 4 euros. Open daily."),
        ("- It costs 4 euros [2]\n- Card: 12 eu", "- It costs 4 euros"),
        ("It costs 99 euros [2]. Open to", "Open to"),
        ("Open to", "Open to"),
    ],
)
def test_where_the_text_breaks_off_the_last_whole_sentence_is_the_end(said: str, text: str) -> None:
    filter = CitationFilter([CARD, POOL], Grounds([CARD, POOL], "What does it cost?", "en").doubt, "en")
    events = [*filter.feed(said), *filter.finish(cut=True)]
    assert "".join(event.text for event in events if isinstance(event, Token)) == filter.text == text
    assert all(citation.end <= len(text) for citation in filter.citations)


def seconds(said: str, size: int) -> float:
    """Of CPU, for a text that comes in pieces of a size."""
    sources = [CARD, POOL, TIMETABLE]
    filter = CitationFilter(sources, Grounds(sources, "What does it cost?", "en").doubt, "en")
    began = process_time()
    for i in range(0, len(said), size):
        filter.feed(said[i : i + size])
    filter.finish()
    return process_time() - began


SENTENCE = "The office gives out passports, identity cards and library cards, and forms for dogs and boats as well"


@pytest.mark.parametrize("size", [4, 1_000_000])
@pytest.mark.parametrize("sentence", [f"{SENTENCE}, and {SENTENCE.lower()} [1]. ", f"{SENTENCE[:-4]} z. B. [1] "])
def test_the_work_on_a_text_grows_as_the_text_does(sentence: str, size: int) -> None:
    seconds(sentence, size)
    short, long = (min(seconds(sentence * n, size) for _ in range(2)) for n in (20, 160))
    assert long < 3 * 8 * short


@pytest.mark.parametrize(
    "unit",
    ["[", "[1]", "[[1],", "[a](x(b)\\[", "\\[", "http://", "a [1] b ", "- [1] a\n", "&amp;", "`", "```\n", "1 ",
     "12 euros ", "9 to 17, ", "12:30, 8:05 ", "no, ", "A", "| 12:30 ", "- ", " ", "\n", "。", "👍", "a. "],
)  # fmt: skip
def test_no_text_takes_much_longer_than_others(unit: str) -> None:
    """Generous: most take milliseconds. What grows with the square, or faster, took half a minute and more."""
    assert seconds((unit * 2_000)[:2_000], 2) < 5


@example("&amp;#39; [[1]](/p1) x", 3)
@example("Answer: 1. Go in. 2. Pay. 3. Leave.", 1)
@example("Go in.\n2. Pay! 3. Places are free.", 1)
@given(st.text("ab .[]1299€\n-|(&;", max_size=60), st.integers(1, 7))
def test_however_it_is_cut_the_answer_is_the_same(said: str, size: int) -> None:
    whole, pieces = filtered(said), filtered(*(said[i : i + size] for i in range(0, len(said), size)))
    assert (whole.text, whole.citations, whole.left_out) == (pieces.text, pieces.citations, pieces.left_out)
    assert all(0 <= c.start < c.end <= len(whole.text) for c in whole.citations)


def test_why_sentences_are_in_doubt_is_said_with_the_sources_that_they_cite() -> None:
    said = "A card costs 12 euros [1]. A card costs 99 euros [1]. A pool costs 98 euros."
    for note in ("", "not on the page"):
        filter = CitationFilter([CARD], Grounds([CARD], "", "en").doubt, "en", note)
        filter.feed(said)
        filter.finish()
        assert [(each.sentence, each.kind, each.cited, each.marked) for each in filter.reasons] == [
            ("A card costs 99 euros.", "figure", (1,), bool(note)),
            ("A pool costs 98 euros.", "figure", (), bool(note)),
        ]
