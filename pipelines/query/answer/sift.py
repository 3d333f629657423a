"""Sift: a model's sentence is shown when it is complete and its citations bear it out; else it is left out.

    piece ─▶ links ─▶ citations (cite) ─▶ held until the next sentence begins ─▶ Grounds ─▶ Token, Citation
                                                                                    └ Doubt ─▶ left out

So at most a sentence is held back, and no visitor sees a figure that its source contradicts, not even for a moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.query.answer.cite import CitationParser
from pipelines.query.answer.grounding import Doubt
from pipelines.query.answer.judging import Check
from pipelines.query.answer.links import LinkFilter
from schemas.answer import Citation, Token
from schemas.query import Source
from text.sentences import split

LONGEST = 1_000  # characters of a sentence; of a longer one the parts are decided by themselves

_MAY_END = re.compile(r"[.!?…؟۔。！？।\n]")


class Sifter:
    """Takes the model's text piece by piece, as `CitationParser` does. However it is cut, what comes out is the same.

    `text` is the answer so far, `citations` point into it; `left_out` are the sentences that are not in it, and why;
    `stated` those that are, with the numbers that they cite.

    Args:
        grounds: None: nothing is checked.
    """

    def __init__(self, sources: Sequence[Source], grounds: Check | None, lang: str) -> None:
        self._links = LinkFilter(sources)
        self._parser = CitationParser(sources)
        self._grounds = grounds
        self._lang = lang
        self.text = ""
        self.citations: list[Citation] = []
        self.left_out: list[tuple[str, Doubt]] = []
        self.stated: list[tuple[str, tuple[int, ...]]] = []
        self._decided = 0  # so much of the parser's text is shown or left out
        self._given = 0  # so many of its citations
        self._gap = ""  # white space before a sentence that was left out
        self._shown: list[tuple[int, int, int]] = []  # from, to in the parser's text, and where it is in ours

    @property
    def dropped(self) -> int:
        """Numbers that were no source."""
        return self._parser.dropped

    def feed(self, piece: str) -> list[Token | Citation]:
        """The events that are certain after this piece, in order."""
        self._parser.feed(self._links.feed(piece))
        # A line with markers at its start is supported by them as a whole, once it is complete.
        return self._settle(self._parser.settled)

    def finish(self, *, cut: bool = False) -> list[Token | Citation]:
        """The events that only the end makes certain.

        Args:
            cut: the text breaks off: what may have become a marker is none of it.
        """
        self._parser.feed(self._links.finish())
        self._parser.finish(cut=cut)
        events = self._settle(None)
        # The end of a fence, the line below a table's header.
        rest, self._gap = self._gap + self._parser.text[self._decided :], ""
        if rest.strip():
            self._show(rest.rstrip(), self._decided, len(self._parser.text), events)
        return events

    def _settle(self, limit: int | None) -> list[Token | Citation]:
        """Decide the sentences that are complete; all of them without a `limit`, where the parser's text is open."""
        events: list[Token | Citation] = []
        if limit is not None and limit - self._decided > LONGEST:
            self._decide(self._decided, self._parser.text.rfind(" ", self._decided, limit) + 1 or limit, events)
        open_text = self._parser.text[self._decided :]
        if limit is not None and not _MAY_END.search(open_text):
            return events
        sentences = split(open_text, self._lang)
        base = self._decided
        for sentence in sentences if limit is None else sentences[:-1]:
            end = base + sentence.end
            if limit is not None and end > limit:
                break
            self._decide(base + sentence.start, end, events)
        return events

    def _decide(self, start: int, end: int, events: list[Token | Citation]) -> None:
        said = self._parser.text[start:end]
        cited = [c for c in self._parser.citations if c.start < end and c.end > start]
        doubt = self._grounds.doubt(said, [c.n for c in cited]) if self._grounds else None
        if doubt is not None:
            self.left_out.append((said, doubt))
            gap = self._parser.text[self._decided : start]
            self._gap = max(self._gap, gap, key=lambda white: white.count("\n"))
            self._decided = end
        else:
            self.stated.append((said, tuple(c.n for c in cited)))
            self._show(self._parser.text[self._decided : end], self._decided, end, events)
        while self._given < len(self._parser.citations) and self._parser.citations[self._given].end <= end:
            self._cite(self._parser.citations[self._given], events)
            self._given += 1

    def _show(self, text: str, start: int, end: int, events: list[Token | Citation]) -> None:
        if self._gap or not self.text:
            stripped = text.lstrip()
            own = text[: len(text) - len(stripped)]
            gap = max(self._gap, own, key=lambda white: white.count("\n")) if self.text else ""
            self._shown.append((start + len(own), end, len(self.text) + len(gap)))
            text, self._gap = gap + stripped, ""
        else:
            self._shown.append((start, end, len(self.text)))
        self._decided = end
        self.text += text
        if text:
            events.append(Token(text=text))

    def _cite(self, citation: Citation, events: list[Token | Citation]) -> None:
        """Where it is in what is shown; of a line of which something was left out, the rest."""
        parts = [
            (at + max(citation.start, begun) - begun, at + min(citation.end, ended) - begun)
            for begun, ended, at in self._shown
            if begun < citation.end and citation.start < ended
        ]
        if parts:
            moved = citation.model_copy(update={"start": parts[0][0], "end": parts[-1][1]})
            self.citations.append(moved)
            events.append(moved)
