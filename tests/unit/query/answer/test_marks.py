"""What a small model repeats of its prompt's marks is not shown; all else is, in whatever pieces it comes."""

from __future__ import annotations

import pytest

from pipelines.query.answer.marks import Unmarked
from prompts.loader import fence
from tests.asking import question
from tests.running import run

FENCE = "01e6c55d3813b130"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (f"<response-{FENCE}>\nIt costs 5 euros.\n</response-{FENCE}>", "\nIt costs 5 euros.\n"),
        (f'<source-{FENCE} n="1">12 euros</source-{FENCE}> [1]', "12 euros [1]"),
        ("<source-00e6c55d3813b131>12 euros", "<source-00e6c55d3813b131>12 euros"),
        ("a < b, 3 <", "a < b, 3 <"),
        (f"<source-{FENCE}", f"<source-{FENCE}"),
        ("<" * 300, "<" * 300),
        (f"<{'a' * 90}{'b' * 90}>", f"<{'a' * 90}{'b' * 90}>"),
        (f"</a-{FENCE}{'b' * 41}>", f"</a-{FENCE}{'b' * 41}>"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_marks_are_taken_out(written: str, shown: str, size: int) -> None:
    unmarked = Unmarked(FENCE)
    pieces = [unmarked.feed(written[at : at + size]) for at in range(0, len(written), size)]
    assert "".join([*pieces, unmarked.finish()]) == shown


@pytest.mark.parametrize("written", ["a < b and c", "if x <5", "<b>bold", "<source of", f"<a-{FENCE}{'b' * 41}"])
def test_only_what_may_become_a_mark_waits(written: str) -> None:
    assert Unmarked(FENCE).feed(written) == written


async def test_no_visitor_sees_them() -> None:
    mark = f"response-{fence(question().request_id)}"
    ran = await run("plain", f"<{mark}>Closed on Sundays [1].</{mark}>")
    assert (ran.text, [each.n for each in ran.citations]) == ("Closed on Sundays.", [1])
