"""Shows a model's sentences when they are complete, and marks or omits those that the sources do not support.

    piece ─▶ entities ─▶ links ─▶ citations (cite) ─▶ held until the next sentence begins ─▶ Grounds ─▶ Token, Citation
                                                                      Doubt ─▶ the same and a note, or left out ─┘

At most one sentence is held back, and visitors never see a contradicted figure without the note.
The work is linear in the length of the model's text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.query.answer.cite import CitationParser
from pipelines.query.answer.entities import EntityReader
from pipelines.query.answer.grounding import Doubt
from pipelines.query.answer.judging import Check
from pipelines.query.answer.links import LinkFilter
from schemas.answer import Citation, Doubted, Token
from schemas.outcome import DoubtedSentence
from schemas.query import Source
from text.sentences import ended, split

LONGEST = 1_000  # characters of a sentence; of a longer one the parts are decided by themselves
SLICE = 250  # characters that are taken at a time: what is looked through again for each stays short
FOLLOWS = 40  # characters behind what may end a sentence, which tell whether it does

_MAY_END = re.compile(r"[.!?…؟۔。！？।\n]")


class CitationFilter:
    """Takes the model's text piece by piece.

    The result does not depend on the pieces, except where a later line changes the meaning of the lines above it, such
    as the term of a definition list.

    `text` is the answer so far, and `citations` point into it. `reasons`: the doubtful sentences with the reasons.
    `left_out`: those that are not in the text. `doubted`: the places of the others. `stated`: all other sentences, with
    the numbers that they cite.

    Args:
        grounds: the rules; None: no check.
        note: the mark of a doubtful sentence, in the visitor's language; empty: it is left out.
    """

    def __init__(self, sources: Sequence[Source], grounds: Check | None, lang: str, note: str = "") -> None:
        self._entities = EntityReader()
        self._links = LinkFilter(sources)
        self._parser = CitationParser(sources)
        self._grounds = grounds
        self._lang = lang
        self._note = f" *({note})*" if note else ""
        self._said: list[str] = []  # what is shown
        self._length = 0  # characters of that
        self.citations: list[Citation] = []
        self.doubted: list[Doubted] = []
        self.reasons: list[DoubtedSentence] = []
        self.stated: list[tuple[str, tuple[int, ...]]] = []
        self._decided = 0  # so much of the parser's text is shown or left out
        self._in_prose = True  # what was decided last
        self._looked = 0  # so much of it was looked through for the ends of sentences
        self._given = 0  # so many of its citations
        self._gap = ""  # white space before a sentence that was left out
        self._shown: list[tuple[int, int, int]] = []  # from, to in the parser's text, and where it is in ours

    @property
    def text(self) -> str:
        return "".join(self._said)

    @property
    def left_out(self) -> list[DoubtedSentence]:
        return [each for each in self.reasons if not each.marked]

    @property
    def founded(self) -> bool:
        return any(cited for _, cited in self.stated)

    @property
    def dropped(self) -> int:
        """Numbers that were no source."""
        return self._parser.dropped

    def feed(self, piece: str) -> list[Token | Citation]:
        """The events that are certain after this piece, in order."""
        return self._take(self._links.feed(self._entities.feed(piece)))

    def finish(self, *, cut: bool = False) -> list[Token | Citation]:
        """The events that are final only at the end.

        Args:
            cut: whether the text breaks off: then an unfinished marker is dropped, and so is an unfinished sentence,
                whose rest may have said the opposite; unless it is the only one.
        """
        events = self._take(self._links.feed(self._entities.finish()) + self._links.finish())
        self._parser.finish(cut=cut)
        events += self._settle(self._parser.length)
        if cut and self._length and not ended(self._parser.part(self._decided)):
            return events
        events += self._settle(None)
        # The end of a fence, the line below a table's header.
        rest, self._gap = self._gap + self._parser.part(self._decided), ""
        if rest.strip():
            self._show(rest.rstrip(), self._decided, self._parser.length, events)
        return events

    def _take(self, text: str) -> list[Token | Citation]:
        events: list[Token | Citation] = []
        for at in range(0, len(text), SLICE):
            self._parser.feed(text[at : at + SLICE])
            # A line with markers at its start is supported by them as a whole, once it is complete.
            events += self._settle(self._parser.settled)
        return events

    def _settle(self, limit: int | None) -> list[Token | Citation]:
        """Decide the complete sentences before `limit`, up to which the parser's text is final; default: all."""
        events: list[Token | Citation] = []
        while True:
            self._decide_whole(limit, events)
            if (self._parser.length if limit is None else limit) - self._decided <= LONGEST:
                return events
            part = self._parser.part(self._decided, self._decided + LONGEST).rfind(" ") + 1 or LONGEST
            self._decide(self._decided, self._decided + part, events)
            self._looked = self._decided

    def _decide_whole(self, limit: int | None, events: list[Token | Citation]) -> None:
        base, open_text = self._decided, self._parser.part(self._decided)
        if limit is not None and not _MAY_END.search(open_text, max(0, self._looked - FOLLOWS - base)):
            return
        self._looked = self._parser.length
        gap = open_text[: len(open_text) - len(open_text.lstrip())]
        # In the place of what was decided, where that goes on: inside a line or a paragraph "2. " begins no list.
        goes_on = self._decided and gap.count("\n") < (2 if self._in_prose else 1)
        before = "x " if goes_on else ""
        sentences = [one for one in split(before + open_text, self._lang) if one.end > len(before)]
        for sentence in sentences if limit is None else sentences[:-1]:
            end = base + sentence.end - len(before)
            if end - self._decided > LONGEST or (limit is not None and end > limit):
                self._looked = self._decided
                return
            self._in_prose = sentence.kind == "prose"
            start = max(sentence.start - len(before), len(gap) if sentence.start < len(before) else 0)
            self._decide(base + start, end, events)

    def _decide(self, start: int, end: int, events: list[Token | Citation]) -> None:
        said = self._parser.part(start, end)
        open_ones = self._parser.citations[self._given :]  # all others end before
        cited = [c.n for c in open_ones if c.start < end and c.end > start]
        doubt = self._grounds(said, cited) if self._grounds else None
        if doubt is not None:
            reason = DoubtedSentence(
                sentence=said,
                kind=doubt.kind,
                said=doubt.said,
                cited=tuple(dict.fromkeys(cited)),
                marked=bool(self._note),
            )
            self.reasons.append(reason)
        if doubt is not None and self._note:
            self._mark(said, start, end, doubt, events)
        elif doubt is not None:
            gap = self._parser.part(self._decided, start)
            self._gap = max(self._gap, gap, key=lambda white: white.count("\n"))
            self._decided = end
        else:
            self.stated.append((said, tuple(cited)))
            self._show(self._parser.part(self._decided, end), self._decided, end, events)
        for citation in open_ones:
            if citation.end > end:
                break
            self._cite(citation, events)
            self._given += 1

    def _mark(self, said: str, start: int, end: int, doubt: Doubt, events: list[Token | Citation]) -> None:
        """Show the sentence with the note behind it; in a table's row, in its last cell."""
        until = end - 1 if said.endswith("|") else end
        self._show(self._parser.part(self._decided, until), self._decided, until, events)
        behind = self._length
        begun = behind - len(self._parser.part(start, until))
        self.doubted.append(Doubted(start=begun, end=behind, kind=doubt.kind, said=doubt.said))
        self._said.append(self._note)
        self._length += len(self._note)
        events.append(Token(text=self._note))
        if until < end:
            self._show(" |", until, end, events)

    def _show(self, text: str, start: int, end: int, events: list[Token | Citation]) -> None:
        if self._gap or not self._length:
            stripped = text.lstrip()
            own = text[: len(text) - len(stripped)]
            gap = max(self._gap, own, key=lambda white: white.count("\n")) if self._length else ""
            self._shown.append((start + len(own), end, self._length + len(gap)))
            text, self._gap = gap + stripped, ""
        else:
            self._shown.append((start, end, self._length))
        self._decided = end
        self._said.append(text)
        self._length += len(text)
        if text:
            events.append(Token(text=text))

    def _cite(self, citation: Citation, events: list[Token | Citation]) -> None:
        """The citation with its offsets in the shown text; of a line with omissions, the rest."""
        parts: list[tuple[int, int]] = []
        for begun, until, at in reversed(self._shown):
            if until <= citation.start:
                break
            if begun < citation.end:
                parts.append((at + max(citation.start, begun) - begun, at + min(citation.end, until) - begun))
        if parts:
            moved = citation.model_copy(update={"start": parts[-1][0], "end": parts[0][1]})
            self.citations.append(moved)
            events.append(moved)
