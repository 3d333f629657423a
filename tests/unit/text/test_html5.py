"""Which pages are read by the rules of HTML 5; what those make of them stands in test_html.py."""

from __future__ import annotations

import pytest

from text.html5 import ATTRIBUTES, ROOTS, TAGS, well_formed

BROKEN = "<header><div>Logo</header><p>a"


def test_end_tags_stand_where_browsers_see_them() -> None:
    assert "<header><div>Logo</div></header><p>a</p>" in well_formed(BROKEN)
    assert "<table><thead><tr><th>A</th>" in well_formed("<table><thead><th>A</th></thead><tr><td>1</table>")


@pytest.mark.parametrize(
    "costly",
    [
        "<div>" * TAGS,
        "<b x=1>" * 400 + "<p>a" * (TAGS - 1_000),
        "<div " + " ".join(f"a{n}" for n in range(2 * ATTRIBUTES)) + ">",
        "<div a='\"' " + " ".join(f"a{n}='>'" for n in range(2 * ATTRIBUTES)) + ">",
        "<body a=1>" * (ROOTS + 1),
        "<tr><td>9</td><td>12</td></tr>",
    ],
)
def test_what_would_take_long_or_lose_its_cells_is_left_as_it_is(costly: str) -> None:
    assert well_formed(BROKEN + costly) == BROKEN + costly
