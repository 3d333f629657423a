"""Removes a model's reasoning at the start of its output.

    "\\n<think>They want the pri" "ce.</think>\\n\\nNine eu" "ros [1]." ─▶ "" "Nine eu" "ros [1]."

Most servers send the reasoning in a separate field. Others leave it in the text, between tags.
"""

from __future__ import annotations

import re

_OPENING = ("<think>", "<thinking>")
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_UNFINISHED = len("</thinking>") - 1  # characters of an incomplete closing tag


class ReasoningFilter:
    """Filters a model's output piece by piece. The result does not depend on the pieces.

    It only holds back white space at the start, and a possible opening tag there.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._thought = False  # some reasoning has ended
        self._answering = False

    def feed(self, piece: str) -> str:
        """The answer's text that is certain after this piece."""
        if self._answering:
            return piece
        self._held += piece
        while True:
            if self._thinking:
                end = _CLOSING.search(self._held)
                if end is None:
                    self._held = self._held[-_UNFINISHED:]
                    return ""
                self._held, self._thinking, self._thought = self._held[end.end() :], False, True
            start = self._held.lstrip()
            head = start[: max(map(len, _OPENING))].lower()
            opened = next((tag for tag in _OPENING if head.startswith(tag)), None)
            if opened is not None:
                self._held, self._thinking = start[len(opened) :], True
                continue
            if any(tag.startswith(head) for tag in _OPENING):
                return ""
            self._answering = True
            return self.finish()

    def finish(self) -> str:
        """The text held back until the end. Empty where reasoning never ended."""
        held, self._held = self._held, ""
        if self._thinking:
            return ""
        return held.lstrip() if self._thought else held
