"""Which words German compounds are made of."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.compounds import _COMPILED, _marked, parts


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("personalausweisgebuhr", "personal ausweis gebuhr"),
        ("offnungszeiten", "offnung zeiten"),
        ("strassenbahn", "strassen bahn"),
        ("kindergarten", "kinder garten"),
        ("sperrmull", "sperr mull"),  # a verb first
        ("schwimmbad", "schwimm bad"),
        ("ordnungsamt", "ordnung amt"),  # not "samt"
        ("burgeramt", "burger amt"),
        ("bewohnerparkausweis", "bewohner park ausweis"),
        ("hundesteuersatzung", "hunde steuer satzung"),
    ],
)
def test_compounds_are_split(word: str, found: str) -> None:
    assert [part.removesuffix("s") for part in parts(word, "de")] == [part.removesuffix("s") for part in found.split()]


@pytest.mark.parametrize(
    "word", ["freitag", "station", "wirtschaft", "information", "universitat", "regierung", "krankheit", "kita", "x"]
)
def test_what_is_no_compound_stays_whole(word: str) -> None:
    assert parts(word, "de") == (word,)


def test_languages_that_do_not_join_words_are_left_alone() -> None:
    assert parts("personalausweisgebuhr", "en") == ("personalausweisgebuhr",)


@given(st.text("abegilnorstu", max_size=80))
def test_parts_stand_in_the_word_in_order(word: str) -> None:
    at = 0
    for part in parts(word, "de"):
        at = word.index(part, at) + len(part)


def test_a_vocabulary_that_says_anything_else_has_another_name() -> None:
    """What a user's cache has under the name of before would stay in use."""
    said = blake2b("\n".join(sorted(_marked())).encode(), digest_size=8).hexdigest()
    assert (_COMPILED, said) == (1, "4420e558210f7660"), "another number for _COMPILED, and here"
