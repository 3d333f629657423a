"""What a spreadsheet would run is text in a cell, and comes back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.spreadsheets import guarded, unguarded


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("When?", "When?"),
        ("a - b = c", "a - b = c"),
        ("=1+1", "'=1+1"),
        ("  +49 30 1", "'  +49 30 1"),
        ("＝1+1", "'＝1+1"),
        ("\t=1+1", "'\t'=1+1"),
        ("Why?;=1+1", "Why?;'=1+1"),
        ("Why?\n-1+1", "Why?\n'-1+1"),
        ("\r\n@SUM(1)", "'\r'\n'@SUM(1)"),
    ],
)
def test_no_cell_begins_as_a_formula(cell: str, written: str) -> None:
    assert guarded(cell) == written


@given(st.text(alphabet="=+-@＝;\t\r\n' ab"))
def test_a_cell_comes_back_as_it_was_and_is_no_formula_wherever_it_is_cut(cell: str) -> None:
    written = guarded(cell)
    assert unguarded(written) == cell
    for line in written.splitlines():
        assert not any(part.lstrip().startswith(("=", "+", "-", "@", "＝")) for part in line.split(";"))
