"""Which words of a page are taken for a word of the question."""

from __future__ import annotations

import pytest

from text.likeness import Likeness


@pytest.mark.parametrize(
    ("word", "like"),
    [
        ("parking", "parking"),
        ("ausweis", "personalausweis"),  # a part of a compound
        ("sperrmüllabfuhr", "sperrmüll"),  # the other way round
        ("hundestoier", "hundesteuer"),  # misspelled
        ("geöffnet", "geöffneten"),  # inflected
        ("openning", "opening"),
    ],
)
def test_the_same_word_in_another_shape_is_like_it(word: str, like: str) -> None:
    assert 0.6 < Likeness([like]).of(word)[like] <= 1.0


@pytest.mark.parametrize(
    ("word", "other"),
    [("permit", "parking"), ("car", "scar"), ("tax", "tex"), ("museum", "muster"), ("day", "may")],
)
def test_another_word_is_not(word: str, other: str) -> None:
    assert Likeness([other]).of(word) == {}


def test_the_same_word_is_likest() -> None:
    likes = Likeness(["ausweis", "ausweise", "personalausweis"]).of("ausweis")
    assert likes["ausweis"] == 1.0 > likes["ausweise"] > likes["personalausweis"]


def test_a_word_that_is_known_is_no_other_one_misspelled() -> None:
    assert Likeness(["anmelden"]).of("abmelden", misspelled=False) == {}
    assert Likeness(["personalausweis"]).of("ausweis", misspelled=False) != {}


def test_a_compound_is_less_like_its_first_part_than_a_form_of_it() -> None:
    found = Likeness(["hund", "hunde"])
    assert found.of("hundekot")["hund"] < found.of("hundes")["hund"]
    assert found.of("hundekot")["hund"] == found.of("hundekot")["hunde"]
