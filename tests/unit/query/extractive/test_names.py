"""What is asked about by a name that no page knows."""

from __future__ import annotations

import pytest

from pipelines.query.extractive.names import strange_names
from pipelines.query.search.ports import Hit
from text import dictionary

PAGE = Hit(
    page_key="k", field="content", ord=0, page_id="p", lang="en", title="Packages", url="", text="Remove it with npm. "
    "Ours is the Otterbad. Hundesteuer.", revision=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _dictionaries() -> None:
    dictionary.ready(["en", "de"])


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How do I remove a package from OpenUPM?", ["openupm"]),
        ("how can I tag this with mix in Elixir", ["elixir"]),  # a word, but with a capital
        ("wie setze ich mein iphone zurück", ["iphone"]),
        ("Is the Otterbad open at Christmas?", []),  # on the page; a dictionary has it
        ("what does the oterbad cost", []),  # misspelled
        ("bin zu spät dran, was brummt ihr mir da auf", []),  # everyday words are no names
        ("Was kostet die Hundesteuerermäßigung für einen Hund?", []),  # German nouns, and a compound
        ("heut abend noch schwimmen", []),  # our own lists know what days are called
        ("hol lehet venni szürke szemeteszákot", []),  # no dictionary of this language is here
        ("bunyan dtrace", ["bunyan", "dtrace"]),  # without a sign of its language, in that of the page
        ("can files be restored in Nextcloud?", ["nextcloud"]),  # a compound in German alone
        ("HOW DO I GET A REFUND FROM YOU", []),
    ],
)
def test_a_name_is_in_no_dictionary_or_has_a_capital_and_stands_on_no_page(question: str, names: list[str]) -> None:
    assert strange_names(question, [PAGE]) == names
