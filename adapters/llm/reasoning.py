"""Reasoning: what a model thinks aloud before it answers is not part of its answer.

    "\\n<think>They want the pri" "ce.</think>\\n\\nNine eu" "ros [1]." ─▶ "" "Nine eu" "ros [1]."

Servers that know their model send it in a field of its own; behind the others it stands at the start of the text.
"""

from __future__ import annotations

import re

_OPENING = ("<think>", "<thinking>")
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_UNFINISHED = len("</thinking>") - 1  # characters of a closing tag that may still come


class Spoken:
    """Takes a model's output piece by piece and gives what it says. However it is cut, that is the same.

    Nothing is held back but white space at the start, and what may become an opening tag there.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._thought = False  # some reasoning has ended
        self._speaking = False

    def feed(self, piece: str) -> str:
        """What is certain after this piece."""
        if self._speaking:
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
            self._speaking = True
            return self.finish()

    def finish(self) -> str:
        """What only the end makes certain; of reasoning that never ended nothing."""
        held, self._held = self._held, ""
        if self._thinking:
            return ""
        return held.lstrip() if self._thought else held
