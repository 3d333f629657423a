"""Cite: markers in the model's text become citation events, checked against the sources.

    "Open on Monday [1][7]. See " ─▶ Token "Open on Monday", Citation n=1 of it, Token ". See "     (there is no 7)

A marker is `[1]`, `[1, 2]`, `[1-3]`, `[^1]`, `【1】` or `［1］`; brackets around markers are part of them: `[[1]]`,
`([1], [2])`. `[1](...)` is a link, `[x]` and `[2024]` are text, and in code nothing is a marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from schemas.answer import Citation, Token
from schemas.query import Source
from text.markdown import plain
from text.sentences import last_start, split
from text.words import stems

# Share of a statement's words that a source's sentence must have to be called its origin.
QUOTE_SHARE = 0.3

_ONE = r"[\[【［]\^?\d{1,2}(?: *[,;，；、–-] *\^?\d{1,2})*(?:†[^\]】］]{0,20})?[\]】］]"
_BEGUN = r"[\[［]\^?[\d ,;，；、–^-]{0,30}|【\^?[\d ,;，；、–^-]{0,30}(?:†[^】\n]{0,20})?"
_OPENS, _BETWEEN = r"[\[【［(（]", r"[ ,;，；、]{0,3}"  # of markers in brackets of their own
_MARKER = re.compile(rf"{_ONE}|{_OPENS} ?{_ONE}(?:{_BETWEEN}{_ONE}){{0,8}} ?[\]】］)）]")
_UNFINISHED = re.compile(rf"{_BEGUN}|{_OPENS} ?(?:{_ONE}{_BETWEEN}){{0,9}}(?:{_BEGUN})?")
_RANGE = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
# Not text.markdown: the statement is still being written, so nobody knows yet what its line will be.
_LEAD = re.compile(r"(?:[\s>#*+•_,;:-]|\d{1,3}[.)](?:\s|\Z))*")  # of a statement: bullets, what joins it
_WORDLESS = re.compile(r"\W*")
_NO_SPACE_BEFORE = frozenset(".,;:!?…)]}»”。，！？、")


class CitationParser:
    """Takes the model's text piece by piece. However it is cut, text and citations are the same.

    `text` is the answer so far, without markers; `citations` point into it; `dropped` counts the numbers that were
    no source.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = {source.n: source for source in sources}
        self.text = ""
        self.citations: list[Citation] = []
        self.dropped = 0
        self._held = ""  # what may become a marker
        self._gap = ""  # white space not written yet
        self._after = ""  # white space after the markers in that gap
        self._marked = False  # there are markers in that gap
        self._leading: list[int] = []  # cited at the start of a line, before the words they belong to
        self._span: tuple[int, int] | None = None  # of the last marker

    @property
    def settled(self) -> int:
        """Up to here in the text nothing but the next sentence's citations can come; its last line may have more."""
        return len(self.text) - len(self._line()) if self._leading else len(self.text)

    def feed(self, piece: str) -> list[Token | Citation]:
        """The events that are certain after this piece, in order."""
        events: list[Token | Citation] = []
        for ch in piece:
            self._step(ch, events)
        return events

    def finish(self, *, cut: bool = False) -> list[Token | Citation]:
        """The events that only the end makes certain. White space at the end is not part of the answer.

        Args:
            cut: the text breaks off: what may have become a marker is none of it.
        """
        events: list[Token | Citation] = []
        while self._held and not _MARKER.fullmatch(self._held) and not cut:
            self._release(events)
        if _MARKER.fullmatch(self._held):
            self._mark(self._held, events)
        self._held = self._gap = self._after = ""
        self._settle_leading(events)
        return events

    def _step(self, ch: str, events: list[Token | Citation]) -> None:
        if self._held:
            if _MARKER.fullmatch(self._held):
                if ch == "(":  # a link whose text is a number
                    self._unhold(events)
                else:
                    self._mark(self._held, events)
                    self._held = ""
            elif _UNFINISHED.fullmatch(self._held + ch) or _MARKER.fullmatch(self._held + ch):
                self._held += ch
                return
            else:
                self._release(events)
                self._step(ch, events)
                return
        if ch in "[【［(（" and not self._in_code():
            self._held = ch
        elif ch.isspace():
            if self._marked:
                self._after += ch
            else:
                self._gap += ch
        else:
            self._write(ch, events)

    def _release(self, events: list[Token | Citation]) -> None:
        """No marker begins where we thought; one may begin behind it."""
        held, self._held = self._held, ""
        self._write(held[0], events)
        for ch in held[1:]:
            self._step(ch, events)

    def _unhold(self, events: list[Token | Citation]) -> None:
        held, self._held = self._held, ""
        for ch in held:
            if ch.isspace():
                self._gap += ch
            else:
                self._write(ch, events)

    def _write(self, ch: str, events: list[Token | Citation]) -> None:
        gap = self._gap
        if self._marked:
            gap = self._after if "\n" in self._after or "\n" not in gap else gap
            if not gap and ch.isalnum():
                gap = self._gap or " "
            if ch in _NO_SPACE_BEFORE and "\n" not in gap:
                gap = ""
        if "\n" in (self._after if self._marked else gap):
            self._settle_leading(events)
        self._gap = self._after = ""
        self._marked = False
        added = (gap if self.text else "") + ch
        self.text += added
        if events and isinstance(events[-1], Token):
            events[-1] = Token(text=events[-1].text + added)
        else:
            events.append(Token(text=added))

    def _mark(self, marker: str, events: list[Token | Citation]) -> None:
        ones: list[str] = re.findall(_ONE, marker)
        numbers = list(dict.fromkeys(n for one in ones for n in _numbers(one.partition("†")[0])))
        known = [n for n in numbers if n in self._sources]
        self.dropped += len(numbers) - len(known)
        if "\n" in self._gap and not self._marked:
            self._settle_leading(events)
        at_line_start = "\n" in self._gap or not self.text or not _LEAD.sub("", self._line(), count=1)
        if not self._marked:
            self._span = None if at_line_start else self._supported()
        self._marked, self._after = True, ""
        if self._span is None:
            self._leading.extend(known)
        else:
            for n in known:
                self._cite(n, *self._span, events)

    def _supported(self) -> tuple[int, int]:
        """From the start of the last sentence, or from the marker before if there are words since."""
        end = len(self.text)
        start = end - len(self._line()) + last_start(self._line())
        previous = self.citations[-1].end if self.citations else 0
        if start < previous and _WORDLESS.fullmatch(self.text, previous) is None:
            start = previous
        lead = _LEAD.match(self.text, start)
        return lead.end() if lead else start, end

    def _settle_leading(self, events: list[Token | Citation]) -> None:
        """The line is complete: its leading markers support it."""
        if self._leading:
            line = self._line()
            end = len(self.text)
            lead = _LEAD.match(line)
            start = end - len(line) + (lead.end() if lead else 0)
            for n in self._leading if start < end else ():
                self._cite(n, start, end, events)
            self._leading = []

    def _cite(self, n: int, start: int, end: int, events: list[Token | Citation]) -> None:
        if start >= end or any((c.n, c.start, c.end) == (n, start, end) for c in self.citations):
            return
        quote = origin(self.text[start:end], self._sources[n])
        citation = Citation(n=n, start=start, end=end, quote=quote)
        self.citations.append(citation)
        events.append(citation)

    def _line(self) -> str:
        return self.text[self.text.rfind("\n") + 1 :]

    def _in_code(self) -> bool:
        """Inside a fenced block, or inside backticks on this line."""
        if "`" not in self.text:
            return False
        if sum(line.lstrip().startswith("```") for line in self.text.split("\n")) % 2:
            return True
        return "\n" not in self._gap and self._line().count("`") % 2 == 1


def origin(statement: str, source: Source) -> str | None:
    """The source's sentence that shares most words with the statement; None where that is not much.

    Found by words alone, so never across languages.
    """
    said = set(stems(statement))
    best, quote = QUOTE_SHARE, None
    for sentence in split(source.text, source.lang):
        text = plain(source.text[sentence.start : sentence.end])
        there = set(stems(text))
        # Dice's coefficient: a long sentence does not win by its length.
        share = 2 * len(said & there) / (len(said) + len(there)) if said and there else 0.0
        if share > best:
            best, quote = share, text
    return quote


def used_sources(sources: Iterable[Source], citations: Iterable[Citation]) -> tuple[Source, ...]:
    """All sources, `cited` true on those that a citation names."""
    numbers = {citation.n for citation in citations}
    return tuple(source.model_copy(update={"cited": source.n in numbers}) for source in sources)


def _numbers(text: str) -> Iterable[int]:
    for match in _RANGE.finditer(text):
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        yield from range(first, last + 1) if first <= last < first + 20 else (first, last)
