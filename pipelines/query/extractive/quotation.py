"""Quotation: what is told as an answer where no model writes: the unit that answers, and what fits as well.

    evidence, best first ─▶ the best, with its list's neighbours that fit as well: "The website says:"

Of a table the rows that fit, below its header; a row of … stands for those that are left out, and … for steps of a
numbered list between two. The decisive words come first, and one page is quoted, unless a question asks for two things:
who wants more follows the citation. What is not surely an answer is shown where it stands (card.py).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from pipelines.query.extractive.days import matching_rows
from schemas.answer import Certainty, Citation, Token, WholeTable
from schemas.query import Evidence, SourceTable
from text.markdown import cells, plain, valid
from text.sentences import cut

ROOM = 300  # characters quoted where the unit is sure, unless the best unit alone is longer
LONGEST = 600  # characters of one unit
CLOSE = 2.0  # of the score: a unit that is less far behind the best fits as well
SIBLINGS = 4.0  # ... of the same list or table
MOST = 4  # units
SEVERAL = 3  # rows: of a table of which so many fit as well, none is left out ...
SHORT_TABLE = 450  # ... unless its rows have more characters
DATED = 500  # characters of a unit, and of its table's header, in which days are looked for
THAT_DAY = 4.0  # of the score: what is about the day that was asked about fits so much better

_STEP = re.compile(r"[ \t]*(\d{1,3})[.)][ \t]")  # of a numbered list
# Of a definition, of an item in one; behind the beginning of a line they are words: "9 - 12".
_MARK = re.compile(r"^(?:[ \t]*+(?::|[-*+•]|\d{1,3}[.)])[ \t]++)+", re.MULTILINE)


@dataclass(frozen=True)
class Quotation:
    """As events to stream."""

    events: tuple[Token | Citation | WholeTable, ...]
    certainty: Certainty = "said"

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Token))

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(event for event in self.events if isinstance(event, Citation))


def answering(evidence: Sequence[Evidence], lead_in: str, tables: Sequence[SourceTable] = ()) -> Quotation:
    """The best unit, and what fits as well."""
    return Quotation(tuple(_written(chosen(evidence), lead_in, tables)))


@dataclass(frozen=True)
class Unsure:
    """A part of a question that nothing is sure to answer."""

    said: str  # our own words about it
    evidence: Sequence[Evidence]
    shown: bool  # what comes closest is quoted all the same


def by_part(
    sure: Sequence[Sequence[Evidence]], lead_in: str, unsure: Sequence[Unsure], tables: Sequence[SourceTable] = ()
) -> Quotation:
    """One quotation for each part of a question.

    Args:
        sure: what fits each part that is surely answered.
    """
    picked = _of_parts(sure)
    events = list(_written(picked, lead_in, tables))
    for part in unsure:
        if part.evidence and any(_overlap(part.evidence[0], each) for each in picked):
            continue  # it has been quoted for the other part
        said = f"\n\n{part.said}"
        at = sum(len(event.text) for event in events if isinstance(event, Token))
        events += _written(part.evidence[:1], said, tables, at) if part.shown else [Token(text=said)]
    return Quotation(tuple(events))


def _of_parts(parts: Sequence[Sequence[Evidence]]) -> list[Evidence]:
    """The best of each part, then what is of the same lists and tables."""
    beside = [
        each
        for evidence in parts
        for each in _chosen(evidence, ROOM // len(parts))[1:]
        if each.kind != "prose" and _together(each, evidence[0])
    ]
    return _fitting([*(evidence[0] for evidence in parts), *beside], LONGEST, MOST * len(parts))


def unread(evidence: Sequence[Evidence], told: str) -> list[Evidence]:
    """Best first, what does not stand in an answer that the visitor has read."""
    read = plain(told)
    return [each for each in evidence if plain(each.text) not in read]


def for_follow_up(evidence: Sequence[Evidence], told: str) -> tuple[list[Evidence], bool]:
    """Best first, what answers a further question: what the visitor has read does not come again.

    But for the best of it where nothing new is as good: of several rows that were shown, it is the one that is meant;
    of a sentence that was all, what stands around it comes with it.

    Returns: that, and whether to quote the best alone would be the same answer once more.
    """
    others = unread(evidence, told)
    if others and others[0] is evidence[0]:
        return others, False
    best = evidence[0]
    if len(evidence) - len(others) > 1:
        return [best, *others], False
    around = any(each.n == best.n for each in others)
    return ([best, *others] if around or not others else others), True


def on_day(evidence: Sequence[Evidence], day: date, lang: str, there: Container[int]) -> tuple[list[Evidence], bool]:
    """Best first, where the question is about a day: what is about that day before what is about others.

    Returns: that, and whether anything is.

    Args:
        lang: of the pages. there: numbers of the sources that may be lifted: those of the best page.
    """
    rows = [plain(f"{each.header[:DATED]}\n{each.text[:DATED]}") for each in evidence]
    matching = set(matching_rows(rows, day, lang))
    lifted = [
        each.model_copy(update={"score": each.score + THAT_DAY}) if n in matching and each.n in there else each
        for n, each in enumerate(evidence)
    ]
    found = any(evidence[n].n in there for n in matching)
    return sorted(lifted, key=lambda each: -each.score), found


def chosen(evidence: Sequence[Evidence]) -> list[Evidence]:
    """What to quote where the best unit is sure, best first."""
    return _chosen(evidence, ROOM)


def _chosen(evidence: Sequence[Evidence], room: int) -> list[Evidence]:
    best = evidence[0]
    well = [
        each
        for each in evidence
        if each.score >= best.score - (SIBLINGS if _together(each, best) and each.kind != "prose" else CLOSE)
    ]
    return _whole(_fitting(well, room), evidence)


def _whole(taken: list[Evidence], evidence: Sequence[Evidence]) -> list[Evidence]:
    """With all of a short table or list of which several are quoted: some days of seven read as if they were all; and
    with the steps between two of a numbered list, which are no use without them.
    """
    best = taken[0]
    if _step(best):
        return _with_steps_between(taken, evidence)
    rows = {each.start: each for each in evidence if each.kind in ("row", "item") and _together(each, best)}
    quoted = sum(_together(each, best) for each in taken)
    short = sum(len(each.text) for each in rows.values()) <= SHORT_TABLE
    if best.kind not in ("row", "item") or quoted < SEVERAL or len(rows) < best.of or not short:
        return taken
    return [best, *(each for each in rows.values() if each.start != best.start), *(
        each for each in taken if not _together(each, best)
    )]  # fmt: skip


def _with_steps_between(taken: list[Evidence], evidence: Sequence[Evidence]) -> list[Evidence]:
    """Those of the best one's list, if they are found and there is room for them."""
    places = [each.start for each in taken if _together(each, taken[0])]
    between = [
        each
        for each in evidence
        if _together(each, taken[0]) and min(places) < each.start < max(places) and each.start not in places
    ]
    return taken + between if sum(len(each.text) for each in [*taken, *between]) <= LONGEST else taken


def _step(unit: Evidence) -> int:
    """Its number in a numbered list; 0: it is in none."""
    found = _STEP.match(unit.text) if unit.kind == "item" and not unit.header else None
    return int(found[1]) if found else 0


def _fitting(evidence: Sequence[Evidence], room: int, most: int = MOST) -> list[Evidence]:
    """The first, and as many of the others as there is room for; nothing twice."""
    taken: list[Evidence] = []
    for each in evidence:
        if len(taken) == most:
            break
        if taken and (len(each.text) > room or any(_overlap(each, other) for other in taken)):
            continue
        taken.append(each)
        room -= len(each.text)
    return taken


def _overlap(one: Evidence, other: Evidence) -> bool:
    return one.n == other.n and (one.text in other.text or other.text in one.text or one.start == other.start)


def _together(one: Evidence, other: Evidence) -> bool:
    return (one.n, one.block) == (other.n, other.block)


def _written(
    picked: Sequence[Evidence], lead_in: str, tables: Sequence[SourceTable], at: int = 0
) -> Iterator[Token | Citation | WholeTable]:
    """A block quotation per list, table or sentence; the best one's first, its own units in reading order.

    Args:
        tables: whole; of those that are quoted in part.
        at: characters of the answer before it.
    """
    if not picked:
        return
    yield Token(text=lead_in)
    at += len(lead_in)
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
        ordered = sorted(units, key=lambda each: each.start)
        begins = at + len(_above(ordered[0])) - len(_header(ordered[0]))
        for last, unit in zip([None, *ordered], ordered, strict=False):
            defines = unit.kind == "item" and unit.header
            joint = _above(unit) if last is None else "\n>\n> " if defines and last.header != unit.header else "\n> "
            if last is not None and _step(unit) > _step(last) + 1:
                joint = "\n>\n> …\n>\n> "  # a list of its own, that goes on with this number
            joint += _term(unit, last) if defines else ""
            text = _quoted(unit).replace("\n", "\n> ")
            yield Token(text=joint + text)
            start = at + len(joint)
            at = start + len(text)
            yield Citation(n=unit.n, start=start, end=at, quote=plain(unit.text))
        if units[0].kind == "row" and len(units) < units[0].of:
            more = f"\n> |{' … |' * len(cells(units[0].header or units[0].text))}"
            yield Token(text=more)
            at += len(more)
        whole = next(
            (each.text for each in tables if (units[0].n in each.sources and units[0].block == each.block)), ""
        )
        if units[0].kind == "row" and _rows(whole) > len(units):
            yield WholeTable(n=units[0].n, start=begins, text=whole)


def _rows(table: str) -> int:
    """Below its header."""
    return len(table.splitlines()) - (2 if "\n| --- |" in table else 0)


def _above(unit: Evidence) -> str:
    """What must be read before its list or table: the sentence that introduces it, or the heading; a table's header."""
    if unit.kind == "prose":
        return ""
    introduced = unit.intro or (f"**{unit.headings[-1]}**" if unit.headings else "")
    above = introduced.replace("\n", "\n> ") + "\n>\n> " if introduced else ""
    return above + _header(unit)


def _header(unit: Evidence) -> str:
    """Of a row, its table's; a blank one where it has none, since only with one a row is a table."""
    if unit.kind != "row":
        return ""
    width = len(cells(unit.header or unit.text))
    return f"{unit.header or '|' + '  |' * width}\n> |{' --- |' * width}\n> "


def _term(unit: Evidence, last: Evidence | None) -> str:
    """What stands before a definition: its term, unless that was quoted with the one before, and the mark."""
    if last and last.header == unit.header:
        return ": "
    return f"{unit.header}\n: ".replace("\n", "\n> ")


def _quoted(unit: Evidence) -> str:
    text = valid(unit.text) if unit.kind != "code" else unit.text
    text = _MARK.sub("", text) if unit.kind == "item" and unit.header else text
    if unit.kind in ("row", "code") or len(text) <= LONGEST:
        return text
    return f"{cut(text, LONGEST)} …"
