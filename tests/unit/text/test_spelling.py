"""Which words of pages are what a misspelled word means."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from text.dictionary import _COMPILED, _forms, in_dictionary
from text.spelling import LONGEST, respelled


@pytest.mark.parametrize(
    ("word", "similar", "right"),
    [
        ("libary", ["library"], "library"),
        ("bibliotek", ["bibliothek"], "bibliothek"),
        ("swiming", ["swimming"], "swimming"),
        ("Hundestoier", ["hundesteuer"], "hundesteuer"),  # two edits of a long word
        ("passprot", ["passport"], "passport"),  # swapped letters are one
        ("numbr", ["members", "number"], "number"),
        ("driving", ["diving"], ""),  # a word
        ("abmelden", ["anmelden"], ""),
        ("Passbildautomat", ["passbildautomaten"], ""),  # a compound
        ("heut", ["heute"], ""),  # short
        ("cafe", ["cage", "café"], "café"),  # a word, but the pages have it with its accent alone
        ("resume", ["résumé"], "résumé"),
        ("fur", ["für"], ""),
        ("plzen", ["pilze"], ""),
        ("kurche", ["lurche"], ""),  # another first letter
        ("x" * (LONGEST + 1), ["x" * LONGEST], ""),
    ],
)
def test_a_word_in_no_dictionary_is_put_right_by_one_that_is_near(word: str, similar: list[str], right: str) -> None:
    assert respelled(word, similar) == right


def test_the_dictionaries_have_forms_and_compounds() -> None:
    assert all(map(in_dictionary, ("Driving", "wallets", "Geldbörse", "Bücher", "Personalausweisgebühr")))
    assert not any(map(in_dictionary, ("libary", "Bibliotek", "oterbad")))


def test_a_vocabulary_that_says_anything_else_has_another_name() -> None:
    """What a user's cache has under the name of before would stay in use."""
    said = blake2b("\n".join(sorted(_forms())).encode(), digest_size=8).hexdigest()
    assert (_COMPILED, said) == (1, "70411a57245f9839"), "another number for _COMPILED, and here"
