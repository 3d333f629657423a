"""What an assistant reads of an answer."""

from __future__ import annotations

from gateway.mcp.server import _marked
from schemas.answer import Citation


def test_a_number_stands_behind_what_it_supports_and_within_a_tables_row() -> None:
    text = "It is so.\n\n| Mill | 180 |\n| Hall | 90 |"
    rows = [Citation(n=2, start=0, end=9), Citation(n=1, start=11, end=25), Citation(n=1, start=26, end=len(text))]
    assert _marked(text, rows) == "It is so. [2]\n\n| Mill | 180 [1] |\n| Hall | 90 [1] |"
