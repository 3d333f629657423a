"""Code: whether a Markdown text, read character by character, is inside of code, where nothing means anything else."""

from __future__ import annotations

FENCE = "```"


class CodeSpans:
    """Is fed a text once, however long it is: what it keeps is about the line that is being read."""

    def __init__(self) -> None:
        self._within = False  # a fence was opened on a line before
        self._begins = ""  # the first characters of the line
        self._odd = False  # backticks on the line

    def feed(self, text: str) -> None:
        for ch in text:
            if ch == "\n":
                self._within, self._begins, self._odd = self.fenced, "", False
                continue
            if len(self._begins) < len(FENCE) and (self._begins or not ch.isspace()):
                self._begins += ch
            self._odd ^= ch == "`"

    @property
    def fenced(self) -> bool:
        """In a block of code, the line that opens it included."""
        return self._within != (self._begins == FENCE)

    @property
    def inside(self) -> bool:
        """There, or between two backticks of a line."""
        return self.fenced or self._odd
