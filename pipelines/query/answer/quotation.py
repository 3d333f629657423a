"""Quotation: what is shown of the evidence where no model writes.

    evidence, best first ─ sure of the unit ─▶ it, with its list's neighbours that fit as well: "The website says:"
                         └ sure of the page ─▶ what fits best on it, as far as there is room: "This page is about it:"

Of a table the rows that fit, below its header; a row of … stands for those that are left out. The decisive words come
first, and seldom more than one page is quoted: who wants more follows the citation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from pipelines.query.answer.days import matching_rows
from schemas.answer import Citation, Token
from schemas.query import Evidence
from text.markdown import cells, plain
from text.sentences import cut

ROOM = 300  # characters quoted where the unit is sure, unless the best unit alone is longer
PASSAGE = 420  # ... where only the page is
LONGEST = 600  # characters of one unit
CLOSE = 2.0  # of the score: a unit that is less far behind the best fits as well
SIBLINGS = 4.0  # ... of the same list or table
MOST = 4  # units
THAT_DAY = 4.0  # of the score: what is about the day that was asked about fits so much better


@dataclass(frozen=True)
class Quotation:
    """As events to stream."""

    events: tuple[Token | Citation, ...]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Token))

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(event for event in self.events if isinstance(event, Citation))


def answering(evidence: Sequence[Evidence], lead_in: str) -> Quotation:
    """The best unit, and what fits as well."""
    return Quotation(tuple(_written(chosen(evidence), lead_in)))


def describing(evidence: Sequence[Evidence], lead_in: str) -> Quotation:
    """What fits best on the page of the best unit."""
    best = evidence[0]
    there = [each for each in evidence if each.n == best.n]
    return Quotation(tuple(_written(_fitting(there, PASSAGE, above=True), lead_in)))


def unsaid(evidence: Sequence[Evidence], told: str) -> list[Evidence]:
    """Best first, what does not stand in an answer that the visitor has read."""
    read = plain(told)
    return [each for each in evidence if plain(each.text) not in read]


def further(evidence: Sequence[Evidence], told: str) -> tuple[list[Evidence], bool]:
    """Best first, what answers a further question: what the visitor has read does not come again.

    But for the best of it where nothing new is as good: of several rows that were shown, it is the one that is meant;
    of a sentence that was all, what stands around it comes with it.

    Returns: that, and whether to quote the best alone would be the same answer once more.
    """
    others = unsaid(evidence, told)
    if others and others[0] is evidence[0]:
        return others, False
    best = evidence[0]
    if len(evidence) - len(others) > 1:
        return [best, *others], False
    around = any(each.n == best.n for each in others)
    return ([best, *others] if around or not others else others), True


def on_day(evidence: Sequence[Evidence], day: date, lang: str) -> list[Evidence]:
    """Best first, where the question is about a day: what is about that day before what is about others.

    Args:
        lang: of the pages.
    """
    matching = set(matching_rows([plain(f"{each.header} {each.text}") for each in evidence], day, lang))
    lifted = [
        each.model_copy(update={"score": each.score + THAT_DAY}) if n in matching else each
        for n, each in enumerate(evidence)
    ]
    return sorted(lifted, key=lambda each: -each.score)


def chosen(evidence: Sequence[Evidence]) -> list[Evidence]:
    """What to quote where the best unit is sure, best first."""
    best = evidence[0]
    well = [
        each
        for each in evidence
        if each.score >= best.score - (SIBLINGS if _together(each, best) and each.kind != "prose" else CLOSE)
    ]
    return _fitting(well, ROOM)


def _fitting(evidence: Sequence[Evidence], room: int, *, above: bool = False) -> list[Evidence]:
    """The first, and as many of the others as there is room for; nothing twice.

    Args:
        above: what is written above a list or table takes room, too.
    """
    taken: list[Evidence] = []
    for each in evidence:
        if len(taken) == MOST:
            break
        begins = above and not any(_together(each, other) for other in taken)
        length = len(each.text) + (len(_above(each)) if begins else 0)
        if taken and (length > room or any(_overlap(each, other) for other in taken)):
            continue
        taken.append(each)
        room -= length
    return taken


def _overlap(one: Evidence, other: Evidence) -> bool:
    return one.n == other.n and (one.text in other.text or other.text in one.text or one.start == other.start)


def _together(one: Evidence, other: Evidence) -> bool:
    return (one.n, one.block) == (other.n, other.block)


def _written(picked: Sequence[Evidence], lead_in: str) -> Iterator[Token | Citation]:
    """A block quotation per list, table or sentence; the best one's first, its own units in reading order."""
    if not picked:
        return
    yield Token(text=lead_in)
    at = len(lead_in)
    rank = {id(each): n for n, each in enumerate(picked)}
    blocks: dict[tuple[int, int], list[Evidence]] = {}
    for each in picked:
        blocks.setdefault((each.n, each.block), []).append(each)
    before = 0  # source
    for units in sorted(blocks.values(), key=lambda units: rank[id(units[0])]):
        begin = "\n>\n> " if units[0].n == before else "\n\n> "
        before = units[0].n
        yield Token(text=begin)
        at += len(begin)
        for k, unit in enumerate(sorted(units, key=lambda each: each.start)):
            joint = _above(unit) if k == 0 else "\n> "
            text = _quoted(unit).replace("\n", "\n> ")
            yield Token(text=joint + text)
            start = at + len(joint)
            at = start + len(text)
            yield Citation(n=unit.n, start=start, end=at, quote=plain(unit.text))
        if units[0].kind == "row" and len(units) < units[0].of:
            more = f"\n> |{' … |' * len(cells(units[0].header or units[0].text))}"
            yield Token(text=more)
            at += len(more)


def _above(unit: Evidence) -> str:
    """What must be read before it: the sentence that introduces its list, or the heading; a table's header."""
    if unit.kind == "prose":
        return ""
    introduced = unit.intro or (f"**{unit.headings[-1]}**" if unit.headings else "")
    above = introduced.replace("\n", "\n> ") + "\n>\n> " if introduced else ""
    if unit.header:
        above += f"{unit.header}\n> |{' --- |' * len(cells(unit.header))}\n> "
    return above


def _quoted(unit: Evidence) -> str:
    if unit.kind in ("row", "code") or len(unit.text) <= LONGEST:
        return unit.text
    return f"{cut(unit.text, LONGEST)} …"
