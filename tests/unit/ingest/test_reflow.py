"""Lines of a PDF page become paragraphs again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.extraction.documents import reflowed

LINE = "A dog costs ninety-six euros in every year that it is kept in town"


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("", ""),
        ("Fees\nDogs\nCats", "Fees\nDogs\nCats"),
        (f"{LINE}\n{LINE}\nand then.\nNext.", f"{LINE} {LINE} and then.\nNext."),
        (f"{LINE} or if that is the rea-\nson a half.\nNext.", f"{LINE} or if that is the reason a half.\nNext."),
        (f"{LINE} on the Elbe-\nSaale canal.", f"{LINE} on the Elbe- Saale canal."),
        (f"{LINE}\n\nNext.", f"{LINE}\n\nNext."),
    ],
)
def test_lines_that_are_one_paragraph(text: str, paragraphs: str) -> None:
    assert reflowed(text) == paragraphs


@given(st.text(alphabet="ab .-\n", max_size=400))
def test_no_letter_is_lost(text: str) -> None:
    letters = str.maketrans("", "", " -\n")
    assert reflowed(text).translate(letters) == text.translate(letters)
