"""Words in any script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.words import count_words, stems, words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("?!", 0),
        ("Öffnungszeiten", 1),
        ("What's open?", 2),
        ("l’école primaire", 2),
        ("Wann öffnet die Bücherei?", 4),
        ("पुस्तकालय कब खुलता है", 4),  # vowel signs do not split words
        ("מתי פתוחה הספרייה", 3),
        ("营业时间", 2),  # four characters are a keyword or two
        ("图书馆几点开门", 4),
        ("ห้องสมุดเปิดกี่โมง", 5),
        ("도서관은 언제 엽니까", 3),
    ],
)
def test_counts_words_in_any_script(text: str, count: int) -> None:
    assert count_words(text) == count


def test_words_are_folded_and_split_at_apostrophes() -> None:
    assert words("Dell'ORARIO, groß_und 9.30") == ["dell", "orario", "gross", "und", "9", "30"]


@given(st.text(st.characters(codec="ascii")))
def test_ascii_is_cut_like_any_other_text(text: str) -> None:
    assert words(f"{text} 书") == [*words(text), "书"]


def test_scripts_without_spaces_are_compared_by_pairs() -> None:
    assert words("图书馆 A") == ["图书", "书馆", "a"]
    assert words("书") == ["书"]


def test_stems_forget_endings_and_accents() -> None:
    assert stems("Öffnungszeiten") == stems("Offnung")
    assert stems("București") == stems("Bucuresti")
