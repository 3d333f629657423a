"""What a model writes is shown sentence by sentence, and only what its sources bear out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.answer.grounding import Grounds
from pipelines.query.answer.sift import LONGEST, Sifter
from schemas.answer import Token
from tests.asking import source

CARD = source(1, "A library card costs 12 euros a year. It is open from 9 to 17.")
POOL = source(2, "A ticket for the pool costs 4 euros.")


def sifted(*pieces: str) -> Sifter:
    sifter = Sifter([CARD, POOL], Grounds([CARD, POOL], "What does it cost?", "en"), "en")
    events = [event for piece in pieces for event in sifter.feed(piece)] + sifter.finish()
    assert "".join(event.text for event in events if isinstance(event, Token)) == sifter.text
    assert [event for event in events if not isinstance(event, Token)] == sifter.citations
    return sifter


def cited(sifter: Sifter) -> list[tuple[int, str]]:
    return [(c.n, sifter.text[c.start : c.end]) for c in sifter.citations]


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
    ],
)
def test_what_is_shown_and_cited(said: str, text: str, citations: list[tuple[int, str]]) -> None:
    assert (sifted(said).text, cited(sifted(said))) == (text, citations)
    assert (sifted(*said).text, cited(sifted(*said))) == (text, citations)


def test_a_sentence_comes_when_the_next_one_begins() -> None:
    sifter = Sifter([CARD], Grounds([CARD], "", "en"), "en")
    assert sifter.feed("A card costs 12 euros") == []
    assert sifter.feed(" [1].") == []
    first, citation = sifter.feed(" It")
    assert first == Token(text="A card costs 12 euros.")
    assert citation == sifter.citations[0]


def test_without_end_it_comes_in_parts() -> None:
    sifter = Sifter([CARD], None, "en")
    for _ in range(LONGEST):
        sifter.feed("word ")
    assert len(sifter.text) > 3 * LONGEST


@given(st.text("ab .[]1299€\n-|(", max_size=60), st.integers(1, 7))
def test_however_it_is_cut_the_answer_is_the_same(said: str, size: int) -> None:
    whole, pieces = sifted(said), sifted(*(said[i : i + size] for i in range(0, len(said), size)))
    assert (whole.text, whole.citations, whole.left_out) == (pieces.text, pieces.citations, pieces.left_out)
    assert all(0 <= c.start < c.end <= len(whole.text) for c in whole.citations)
