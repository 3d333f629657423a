"""Marks: removes the marks of our prompts from a model's text, since small models repeat them.

"<response-01e6c55d3813b130>\nIt costs 5 euros.\n</response-01e6..."  ─▶  "\nIt costs 5 euros.\n"
"""

from __future__ import annotations

import re

_MARK = re.compile(r"</?[a-z]{1,20}-([0-9a-f]{16})[^<>\n]{0,40}>")
_BEGUN = re.compile(r"</?[a-z]{0,20}(?:-[0-9a-f]{0,16})?(?:(?<=[0-9a-f]{16})[^<>\n]{0,40})?\Z")


class Unmarked:
    """Takes a model's text piece by piece and removes the marks of one request. A possible beginning of a mark is held.

    Args:
        fence: the word in this request's marks. Marks with another word are text.
    """

    def __init__(self, fence: str) -> None:
        self._fence = fence
        self._held = ""

    def feed(self, text: str) -> str:
        text = self._without(self._held + text)
        begun = _BEGUN.match(text, begins) if (begins := text.rfind("<")) >= 0 else None
        self._held = begun[0] if begun else ""
        return text.removesuffix(self._held)

    def finish(self) -> str:
        held, self._held = self._held, ""
        return held

    def _without(self, text: str) -> str:
        return _MARK.sub(lambda mark: "" if mark[1] == self._fence else mark[0], text) if "<" in text else text
