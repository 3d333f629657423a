"""Links: in a model's text only to sources. What a page or a visitor has talked a model into cannot lead anybody away.

    "See [the form](https://evil.example/f) or https://evil.example." ─▶ "See the form or evil.example."

Images become their descriptions, too: a browser would fetch them from wherever they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from schemas.query import Source

LONGEST_LABEL = 300  # characters of a link's text, and
LONGEST_URL = 2_000  # of its address, that are waited for

_LABEL = rf"(?:\\.|[^\[\]\\\n]){{0,{LONGEST_LABEL}}}"
_URL = rf"(?:[^()\s<>]|\([^()\s]*\)){{0,{LONGEST_URL}}}"
_TITLE = r"(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?"
_ADDRESS = rf"(?:https?|ftp)://[^\s<>\[\]`\"]{{0,{LONGEST_URL}}}"
# A link; the end of one whose text was too long or had brackets of its own; an address by itself.
_ANY = re.compile(
    rf"(?P<image>!)?\[(?P<label>{_LABEL})\]\(\s*(?:<(?P<framed>[^<>\n]*)>|(?P<url>{_URL})){_TITLE}\s*\)"
    rf"|\]\(\s*(?:<(?P<tail_framed>[^<>\n]*)>|(?P<tail>{_URL})){_TITLE}\s*\)"
    rf"|<?(?P<bare>{_ADDRESS})>?",
    re.IGNORECASE,
)
# What may still become one of these at the end of the text so far.
_BEGUN = re.compile(
    rf"(?:!|!?\[{_LABEL}\\?(?:\](?:\([^)\n]{{0,{LONGEST_URL}}}(?:\([^()\s]*\)[^)\n]*)?)?)?"
    rf"|\](?:\([^)\n]{{0,{LONGEST_URL}}}(?:\([^()\s]*\)[^)\n]*)?)?"
    rf"|<?{_ADDRESS}|<?(?:h|ht|htt|https?|https?:|https?:/|f|ft|ftp|ftp:|ftp:/)|<)\Z",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\^?\d{1,2}(?: *[,;–-] *\d{1,2})*")
_AFTER_ADDRESS = ".,;:!?)'*_"  # is the sentence's, not the address's


class LinkFilter:
    """Takes a model's text piece by piece and gives it without the links that lead elsewhere. However it is cut, that
    is the same.

    Args:
        sources: what may be linked to; mail and telephone links may, where the sources have the address.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._urls = {_bare(source.url) for source in sources if source.url}
        self._texts = [source.text.casefold() for source in sources]
        self._held = ""

    def feed(self, piece: str) -> str:
        """What is certain after this piece."""
        self._held += piece
        said = ""
        while match := _ANY.search(self._held):
            begun = _BEGUN.search(self._held)
            growing = match["bare"] is not None and match.end() == len(self._held) and self._held[-1] != ">"
            if growing or (begun and begun.start() < match.start()):
                break
            said += self._held[: match.start()] + self._shown(match)
            self._held = self._held[match.end() :]
        begun = _BEGUN.search(self._held)
        keep = begun.start() if begun else len(self._held)
        said += self._held[:keep]
        self._held = self._held[keep:]
        return said

    def finish(self) -> str:
        """What only the end makes certain."""
        held, self._held = self._held, ""
        return _ANY.sub(self._shown, held)

    def _shown(self, match: re.Match[str]) -> str:
        if match["bare"] is not None:
            address = match["bare"].rstrip(_AFTER_ADDRESS)
            return match.group() if self._allowed(address) else match["bare"].partition("://")[2]
        url = next((match[name] for name in ("framed", "url", "tail_framed", "tail") if match[name] is not None), "")
        if self._allowed(url) and not match["image"]:
            return match.group()
        label = match["label"]
        if label is None:
            return "] "  # what follows may be in brackets, and must not become the link's address
        # A number that links to somewhere is meant as a citation.
        return f"[{label}] " if _NUMBER.fullmatch(label.strip()) else _ANY.sub(self._shown, label)

    def _allowed(self, url: str) -> bool:
        scheme, _, address = url.partition(":")
        if scheme.lower() in ("mailto", "tel"):
            said = address.partition("?")[0].casefold()
            return bool(said) and any(said in text for text in self._texts)
        return _bare(url) in self._urls


def _bare(url: str) -> str:
    """The address of the page, wherever on it the link leads."""
    return url.partition("#")[0].rstrip("/")
