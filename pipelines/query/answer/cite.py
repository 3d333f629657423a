"""Cite: turns markers in the model's text into citations, checked against the sources.

    "Open on Monday [1][7]. See " ─▶ "Open on Monday. See", Citation n=1 of its first 14 characters   (there is no 7)

A marker is `[1]`, `[1, 2]`, `[1-3]`, `[^1]`, `\\[1\\]`, `【1】`, `［1］` or `[source 1]`; brackets around markers are
part of them: `[[1]]`, `([1], [2])`. `[1](...)` is a link, `(1)`, `[x]` and `[2024]` are text, and in code nothing is
a marker.

The work is linear in what the model writes: nothing looks further back than `LONGEST` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipelines.query.answer.entities import CodeSpans
from schemas.answer import Citation
from schemas.query import Source
from text.markdown import plain
from text.sentences import last_start, split
from text.words import stems

# Share of a statement's words that a source's sentence must have to be called its origin.
QUOTE_SHARE = 0.3
LONGEST = 1_000  # characters of a statement: of a longer one the last ones are cited
BLANK = 100  # characters of white space in a row; more say nothing

# The prompt calls them sources; a model that answers in another language may translate that.
_SOURCE = r"(?i:sources?|quellen?|fuentes?|font[eis]+|bron(?:nen)?|źródł[oa]|forrás(?:ok)?|surs[ae])[ :#.-]{0,2}"
_NUMBER = rf"(?:{_SOURCE})?\^?\d{{1,2}}"
NUMBERS = rf"{_NUMBER}(?: *[,;，；、–-] *{_NUMBER})*"
_LEFT, _RIGHT = r"(?:\\?\[|[【［])", r"(?:\\?\]|[】］])"
_ONE = rf"{_LEFT}{NUMBERS}(?:†[^\]】］]{{0,20}})?{_RIGHT}"
_BEGUN = rf"(?:{_LEFT}[\w ,;，；、–:#.^\\-]{{0,40}}(?:†[^】\n]{{0,20}})?|\\)"
_OPENS, _BETWEEN = rf"(?:{_LEFT}|[(（])", r"[ ,;，；、]{0,3}"  # of markers in brackets of their own
_MARKER = re.compile(rf"{_ONE}|{_OPENS} ?{_ONE}(?:{_BETWEEN}{_ONE}){{0,8}} ?(?:{_RIGHT}|[)）])")
_UNFINISHED = re.compile(rf"{_BEGUN}|{_OPENS} ?(?:{_ONE}{_BETWEEN}){{0,9}}(?:{_BEGUN})?")
_RANGE = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
# Not text.markdown: the statement is still being written, so its line is not known yet.
_LEAD = re.compile(r"(?:[\s>#*+•_,;:-]|\d{1,3}[.)](?:\s|\Z))*")  # of a statement: bullets, what joins it
_WORDLESS = re.compile(r"\W*")
_NO_SPACE_BEFORE = frozenset(".,;:!?…)]}»”。，！？、")


class CitationParser:
    """Takes the model's text piece by piece. Text and citations do not depend on the pieces.

    `length` and `part` are of the answer so far, without markers; `citations` point into it, in the order of their
    ends; `dropped` counts the numbers that were no source.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = {source.n: source for source in sources}
        self._origins: dict[int, Origins] = {}
        self._text: list[str] = []  # character by character: a string is copied by what is added to it
        self._line_at = 0  # where its last line begins
        self._code = CodeSpans()
        self.citations: list[Citation] = []
        self._known: set[tuple[int, int, int]] = set()  # those of them that there are: number, start, end
        self.dropped = 0
        self._held = ""  # what may become a marker
        self._gap = ""  # white space not written yet
        self._after = ""  # white space after the markers in that gap
        self._marked = False  # there are markers in that gap
        self._leading: dict[int, None] = {}  # cited at the start of a line, before the words they belong to
        self._span: tuple[int, int] | None = None  # of the last marker

    @property
    def length(self) -> int:
        return len(self._text)

    def part(self, start: int = 0, end: int | None = None) -> str:
        """`text[start:end]` of the answer so far."""
        return "".join(self._text[start:end])

    @property
    def settled(self) -> int:
        """The offset up to which the text is final: only citations of the next sentence or the last line may follow."""
        return self._line_at if self._leading else self.length

    def feed(self, piece: str) -> None:
        for ch in piece:
            self._step(ch)

    def finish(self, *, cut: bool = False) -> None:
        """Process the held text at the end. White space at the end is not part of the answer.

        Args:
            cut: whether the text breaks off: then the beginning of a marker is dropped.
        """
        while self._held and not _MARKER.fullmatch(self._held) and not cut:
            self._release()
        if _MARKER.fullmatch(self._held):
            self._mark(self._held)
        self._held = self._gap = self._after = ""
        self._settle_leading()

    def _step(self, ch: str) -> None:
        if self._held:
            if _MARKER.fullmatch(self._held):
                if ch == "(":  # a link whose text is a number
                    self._unhold()
                else:
                    self._mark(self._held)
                    self._held = ""
            elif _UNFINISHED.fullmatch(self._held + ch) or _MARKER.fullmatch(self._held + ch):
                self._held += ch
                return
            else:
                self._release()
                self._step(ch)
                return
        if ch in "[【［(（\\" and not (self._code.fenced if "\n" in self._gap else self._code.inside):
            self._held = ch
        elif not ch.isspace():
            self._write(ch)
        elif self._marked:
            self._after += ch if len(self._after) < BLANK else ""
        else:
            self._gap += ch if len(self._gap) < BLANK else ""

    def _release(self) -> None:
        """Release held text that is no marker; another marker may begin in it."""
        held, self._held = self._held, ""
        self._write(held[0])
        for ch in held[1:]:
            self._step(ch)

    def _unhold(self) -> None:
        held, self._held = self._held, ""
        for ch in held:
            if ch.isspace():
                self._gap += ch
            else:
                self._write(ch)

    def _write(self, ch: str) -> None:
        gap = self._gap
        if self._marked:
            gap = self._after if "\n" in self._after or "\n" not in gap else gap
            if not gap and ch.isalnum():
                gap = self._gap or " "
            if ch in _NO_SPACE_BEFORE and "\n" not in gap:
                gap = ""
        if "\n" in (self._after if self._marked else gap) or self.length - self._line_at >= LONGEST:
            self._settle_leading()
        self._gap = self._after = ""
        self._marked = False
        added = (gap if self._text else "") + ch
        self._text.extend(added)
        self._code.feed(added)
        if "\n" in added:
            self._line_at = self.length - len(added) + added.rfind("\n") + 1

    def _mark(self, marker: str) -> None:
        ones: list[str] = re.findall(_ONE, marker)
        numbers = list(dict.fromkeys(n for one in ones for n in _numbers(one.partition("†")[0])))
        known = [n for n in numbers if n in self._sources]
        self.dropped += len(numbers) - len(known)
        if "\n" in self._gap and not self._marked:
            self._settle_leading()
        if not self._marked:
            # None: no word of the line is there yet.
            begins = self.length - self._line_at < LONGEST and _LEAD.fullmatch(self.part(self._line_at))
            self._span = None if "\n" in self._gap or begins else self._supported()
        self._marked, self._after = True, ""
        if self._span is None:
            self._leading |= dict.fromkeys(known)
        else:
            self._cite(known, *self._span)

    def _supported(self) -> tuple[int, int]:
        """The start of the supported text: of the last sentence, or the marker before, if there are words between."""
        end = self.length
        at = max(self._line_at, end - LONGEST)
        start = at + last_start(self.part(at))
        previous = self.citations[-1].end if self.citations else 0
        if start < previous and _WORDLESS.fullmatch(self.part(previous)) is None:
            start = previous
        lead = _LEAD.match(self.part(start))
        return start + lead.end() if lead else start, end

    def _settle_leading(self) -> None:
        """Let leading markers cite their line, once it is complete or long enough."""
        if self._leading:
            lead = _LEAD.match(self.part(self._line_at))
            self._cite(self._leading, self._line_at + lead.end() if lead else self._line_at, self.length)
            self._leading = {}

    def _cite(self, numbers: Iterable[int], start: int, end: int) -> None:
        new = [n for n in numbers if start < end and (n, start, end) not in self._known]
        statement = frozenset(stems(self.part(start, end))) if new else frozenset()
        for n in new:
            if n not in self._origins:
                self._origins[n] = Origins(self._sources[n])
            self._known.add((n, start, end))
            self.citations.append(Citation(n=n, start=start, end=end, quote=self._origins[n].of(statement)))


class Origins:
    """Finds the sentence of a source from which a statement was made."""

    def __init__(self, source: Source) -> None:
        sentences = (plain(source.text[each.start : each.end]) for each in split(source.text, source.lang))
        self._sentences = [(frozenset(stems(sentence)), sentence) for sentence in sentences]

    def of(self, said: frozenset[str]) -> str | None:
        """The sentence that shares most words with the statement; None if it shares too few.

        It compares words only, so it finds nothing across languages.

        Args:
            said: the statement's stems.
        """
        best, quote = QUOTE_SHARE, None
        for there, sentence in self._sentences:
            # Dice's coefficient: a long sentence does not win by its length.
            share = 2 * len(said & there) / (len(said) + len(there)) if said and there else 0.0
            if share > best:
                best, quote = share, sentence
        return quote


def used_sources(sources: Iterable[Source], citations: Iterable[Citation]) -> tuple[Source, ...]:
    """All sources, with `cited` set on those with a citation."""
    numbers = {citation.n for citation in citations}
    return tuple(source.model_copy(update={"cited": source.n in numbers}) for source in sources)


def _numbers(text: str) -> Iterable[int]:
    for match in _RANGE.finditer(text):
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        yield from range(first, last + 1) if first <= last < first + 20 else (first, last)
