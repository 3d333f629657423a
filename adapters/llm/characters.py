"""Repairs a server's text: joins halves of characters, and removes control characters.

    "a\\ud83d" "\\ude00b\\u0000" ─▶ "a" "😀b"        a lone surrogate becomes U+FFFD

Servers that count in UTF-16 cut emoji in two.
"""

from __future__ import annotations

import codecs

_CONTROLS = dict.fromkeys(n for n in (*range(32), *range(127, 160)) if chr(n) not in "\t\n\r")


class SurrogateJoiner:
    """Repairs a text piece by piece. The result does not depend on the pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def feed(self, piece: str) -> str:
        """The complete characters up to this piece. Half a character is kept for the next piece."""
        return self._decoder.decode(piece.encode("utf-16-le", "surrogatepass")).translate(_CONTROLS)


def writable(text: str) -> str:
    """Repair a whole text."""
    return SurrogateJoiner().feed(text)
