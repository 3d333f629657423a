"""Characters: a server's text as one that can be written down, whatever it has put into its JSON.

    "a\\ud83d" "\\ude00b\\u0000" ─▶ "a" "😀b"        half of a character that stays alone becomes U+FFFD

Servers that count in UTF-16 cut emoji in two.
"""

from __future__ import annotations

import codecs

_CONTROLS = dict.fromkeys(n for n in (*range(32), *range(127, 160)) if chr(n) not in "\t\n\r")


class Characters:
    """Takes a text piece by piece. However it is cut, that is the same."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def feed(self, piece: str) -> str:
        """What is whole after this piece; half a character waits for its other half."""
        return self._decoder.decode(piece.encode("utf-16-le", "surrogatepass")).translate(_CONTROLS)


def writable(text: str) -> str:
    """A text that comes at once."""
    return Characters().feed(text)
