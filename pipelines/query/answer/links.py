"""Links: removes links from a model's text, except those to sources: an injected prompt must not mislead visitors.

    "See [the form](https://evil.example/f) or https://evil.example." ─▶ "See the form or evil.example."

Images become their descriptions, since a browser would fetch them from any host.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urljoin

from pipelines.query.answer.cite import NUMBERS
from schemas.query import Evidence, Retrieved, Source

LONGEST_LABEL = 300  # characters of a link's text, and
LONGEST_URL = 2_000  # of its address, and
LONGEST = 3_000  # of all of it, that are waited for
_BLANK = r"\s{0,9}"

_LABEL = rf"(?:\\.|[^\[\]\\\n]){{0,{LONGEST_LABEL}}}"
_UNITS = rf"(?:[^()\s<>]|\([^()\s]*\)){{0,{LONGEST_URL}}}"
_TITLE = rf"(?:\s{_BLANK}(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?{_BLANK}"
_ADDRESS = rf"(?:https?|ftp)://[^\s<>\[\]`\"]{{0,{LONGEST_URL}}}"
# A link; the end of one whose text was too long or had brackets of its own; an address by itself.
_ANY = re.compile(
    rf"(?P<image>!)?\[(?P<label>{_LABEL}|\[{NUMBERS}\])\]\({_BLANK}(?:<(?P<framed>[^<>\n]*)>|(?P<url>{_UNITS})){_TITLE}\)"
    rf"|\]\({_BLANK}(?:<(?P<tail_framed>[^<>\n]*)>|(?P<tail>{_UNITS})){_TITLE}\)"
    rf"|<?(?P<bare>{_ADDRESS})>?",
    re.IGNORECASE,
)
# How one of these begins, and what may still become one.
_SCHEME_BEGUN = r"(?:h|ht|htt|https?|https?:|https?:/|f|ft|ftp|ftp:|ftp:/)"
_START = re.compile(rf"!(?=\[|\Z)|\[|\](?=\(|\Z)|<?(?:https?|ftp)://|<?{_SCHEME_BEGUN}\Z|<\Z", re.IGNORECASE)
_TARGET_BEGUN = (
    rf"\({_BLANK}(?:<[^<>\n]*>?|{_UNITS}(?:\([^()\s]*)?)"
    rf"(?:\s{_BLANK}(?:\"[^\"\n]*\"?|'[^'\n]*'?|\([^()\n]*\)?)?)?{_BLANK}"
)
_BEGUN = re.compile(
    rf"!|!?\[(?:{_LABEL}\\?|\[[\w ,:;–^-]{{0,40}}\]?)(?:\](?:{_TARGET_BEGUN})?)?|\](?:{_TARGET_BEGUN})?"
    rf"|<?{_ADDRESS}|<?{_SCHEME_BEGUN}|<",
    re.IGNORECASE,
)
_TARGET = re.compile(r"(?<=\]\()[^\s()<>]+(?=[\s)])")
_MARKER = re.compile(NUMBERS)
_AFTER_ADDRESS = ".,;:!?)'*_"  # is the sentence's, not the address's


class LinkFilter:
    """Takes a model's text piece by piece, and returns it without links elsewhere. The result does not depend on the
    pieces.

    Args:
        sources: allowed targets. Links to mail addresses and telephone numbers are allowed if a source has them.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._urls = {_bare(source.url) for source in sources if source.url}
        self._of = {str(source.n): _bare(source.url) for source in sources}
        self._texts = [source.text.casefold() for source in sources]
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that is final after this piece."""
        held, said, at = self._held + piece, [], 0
        while start := _START.search(held, at):
            said.append(held[at : start.start()])
            at = start.start()
            end = min(len(held), at + LONGEST)
            match = _ANY.match(held, at, end)
            growing = match is not None and match["bare"] is not None and match.end() == len(held) and held[-1] != ">"
            if growing or (match is None and end == len(held) and _BEGUN.fullmatch(held, at)):
                self._held = held[at:]
                return "".join(said)
            said.append(held[at] if match is None else self._shown(match))
            at = at + 1 if match is None else match.end()
        self._held = ""
        return "".join((*said, held[at:]))

    def finish(self) -> str:
        """The text that is final only at the end."""
        held, self._held = self._held, ""
        return _ANY.sub(self._shown, held)

    def _shown(self, match: re.Match[str]) -> str:
        if match["bare"] is not None:
            address = match["bare"].rstrip(_AFTER_ADDRESS)
            return match.group() if self._allowed(address) else match["bare"].partition("://")[2]
        url = next((match[name] for name in ("framed", "url", "tail_framed", "tail") if match[name] is not None), "")
        label, allowed = match["label"], self._allowed(url)
        number = (label or "").strip("[] ")
        # A linked number is meant as a citation, whether its target is allowed or not.
        marker = label is not None and _MARKER.fullmatch(number) is not None
        if marker and (not allowed or label != number or self._of.get(number) == _bare(url)):
            return f"[{number}] "
        if allowed and not match["image"]:
            return match.group()
        if label is None:
            return "] "  # what follows may be in brackets, and must not become the link's address
        return _ANY.sub(self._shown, label)

    def _allowed(self, url: str) -> bool:
        scheme, _, address = url.partition(":")
        if scheme.lower() in ("mailto", "tel"):
            said = address.partition("?")[0].casefold()
            return bool(said) and any(said in text for text in self._texts)
        return _bare(url) in self._urls


def with_whole_links(retrieved: Retrieved) -> Retrieved:
    """The message with absolute addresses in its sources' links, since answers are read on other pages."""
    urls = {source.n: source.url for source in retrieved.sources}

    def linked(unit: Evidence, url: str) -> Evidence:
        return unit.model_copy(
            update={name: absolute(getattr(unit, name), url) for name in ("text", "intro", "header")}
        )

    def quotable(found: Sequence[Evidence]) -> tuple[Evidence, ...]:
        return tuple(each if each.kind == "code" else linked(each, urls.get(each.n, "")) for each in found)

    return retrieved.model_copy(
        update={
            "sources": whole_links(retrieved.sources),
            "evidence": quotable(retrieved.evidence),
            "parts": tuple(part.model_copy(update={"evidence": quotable(part.evidence)}) for part in retrieved.parts),
            "tables": tuple(
                table.model_copy(update={"text": absolute(table.text, next(map(urls.get, table.sources), None) or "")})
                for table in retrieved.tables
            ),
        }
    )


def whole_links(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The same for sources of a strategy."""
    return tuple(source.model_copy(update={"text": absolute(source.text, source.url)}) for source in sources)


def absolute(markdown: str, url: str) -> str:
    """Markdown of the page at `url`, with absolute addresses in its links."""
    return _TARGET.sub(lambda match: _joined(url, match.group()), markdown) if url else markdown


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:  # a target that is no address
        return target


def _bare(url: str) -> str:
    """The address without its fragment."""
    return url.partition("#")[0].rstrip("/")
