"""What a change does, line by line."""

from __future__ import annotations

from text.diff import text_diff


def test_plain_texts_are_compared_line_by_line() -> None:
    old = "\n".join(f"line {n}" for n in range(20))
    new = old.replace("line 1\n", "line one\n").replace("line 18", "@@ eighteen")
    assert text_diff("a\nb", "a\nc") == (" a", "-b", "+c")
    assert text_diff(old, old) == ()
    found = text_diff(old, new)
    assert [line for line in found if line[0] in "+-…"] == ["-line 1", "+line one", "…", "-line 18", "+@@ eighteen"]
    assert text_diff("", "x") == ("+x",)
