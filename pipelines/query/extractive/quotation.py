"""Quotation: quotes the unit that surely answers, with the units that fit as well. Otherwise there is a card (card.py).

    evidence, best first ─▶ the best unit, with those of its list or table that fit as well: "The website says:"

Of a table it quotes the rows that fit, below the header; a row of … stands for omitted rows, and … for omitted steps of
a numbered list. The best unit comes first. Only one page is quoted, unless a question asks two things.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from pipelines.query.extractive.days import closed_on, matching_rows
from schemas.answer import Certainty, Citation, Token, WholeTable
from schemas.query import Evidence, SourceTable
from text.markdown import cells, plain, valid
from text.sentences import cut

ROOM = 300  # characters to quote, unless the best unit alone is longer
LONGEST = 600  # characters of one unit
CLOSE = 2.0  # a unit fits as well as the best one if its score is at most so much lower ...
SIBLINGS = 4.0  # ... or so much, in the same list or table
MOST = 4  # units
SEVERAL = 3  # rows: a table of which so many fit is quoted whole ...
SHORT_TABLE = 450  # ... unless its rows have more characters
DATED = 500  # characters of a unit, and of its table's header, to search for days
THAT_DAY = 4.0  # bonus of a unit about the question's day

_STEP = re.compile(r"[ \t]*(\d{1,3})[.)][ \t]")  # of a numbered list
# Marks of definitions and items. Only at the beginning of a line: elsewhere they are text, such as "9 - 12".
_MARK = re.compile(r"^(?:[ \t]*+(?::|[-*+•]|\d{1,3}[.)])[ \t]++)+", re.MULTILINE)


@dataclass(frozen=True)
class Quotation:
    """A quotation or a card, as events to stream."""

    events: tuple[Token | Citation | WholeTable, ...]
    certainty: Certainty = "said"

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Token))

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(event for event in self.events if isinstance(event, Citation))


def answering(evidence: Sequence[Evidence], lead_in: str, tables: Sequence[SourceTable] = ()) -> Quotation:
    """The best unit and the units that fit as well."""
    return Quotation(tuple(_written(chosen(evidence), lead_in, tables)))


@dataclass(frozen=True)
class Unsure:
    """A part of a question without a sure answer."""

    said: str  # our own words about it
    evidence: Sequence[Evidence]
    shown: bool  # whether to quote the closest unit all the same


def by_part(
    sure: Sequence[Sequence[Evidence]], lead_in: str, unsure: Sequence[Unsure], tables: Sequence[SourceTable] = ()
) -> Quotation:
    """One quotation for each part of a question.

    Args:
        sure: the evidence of each part with a sure answer.
    """
    picked = _of_parts(sure)
    events = list(_written(picked, lead_in, tables))
    for part in unsure:
        if part.evidence and any(_overlap(part.evidence[0], each) for each in picked):
            continue  # the other part has quoted it
        said = f"\n\n{part.said}"
        at = sum(len(event.text) for event in events if isinstance(event, Token))
        events += _written(part.evidence[:1], said, tables, at) if part.shown else [Token(text=said)]
    return Quotation(tuple(events))


def _of_parts(parts: Sequence[Sequence[Evidence]]) -> list[Evidence]:
    """The best unit of each part, then the units of the same lists and tables."""
    siblings = [
        each
        for evidence in parts
        for each in _chosen(evidence, ROOM // len(parts))[1:]
        if each.kind != "prose" and _together(each, evidence[0])
    ]
    return _fitting([*(evidence[0] for evidence in parts), *siblings], LONGEST, MOST * len(parts))


def unread(evidence: Sequence[Evidence], answer: str) -> list[Evidence]:
    """The units that are not in an answer that the visitor has read."""
    read = plain(answer)
    return [each for each in evidence if plain(each.text) not in read]


def for_follow_up(evidence: Sequence[Evidence], answer: str) -> tuple[list[Evidence], bool]:
    """(evidence for a follow-up, whether its best unit alone would repeat the answer before).

    Units of the answer before are left out. If the best unit is one of them, it stays: of several shown rows, the
    visitor means this one; a single sentence is shown again with the units around it.
    """
    others = unread(evidence, answer)
    if others and others[0] is evidence[0]:
        return others, False
    best = evidence[0]
    if len(evidence) - len(others) > 1:
        return [best, *others], False
    around = any(each.n == best.n for each in others)
    return ([best, *others] if around or not others else others), True


def on_day(evidence: Sequence[Evidence], day: date, lang: str, there: Container[int]) -> tuple[list[Evidence], bool]:
    """(evidence with the units about a day first, whether there are some).

    A unit that says that something is closed on the day comes before all others: opening hours are not true then.

    Args:
        lang: the pages' language.
        there: numbers of the best page's sources; only their units move forward.
    """
    rows = [plain(f"{each.header[:DATED]}\n{each.text[:DATED]}") for each in evidence]
    matching = set(matching_rows(rows, day, lang))
    closed = {n for n, row in enumerate(rows) if evidence[n].n in there and closed_on(row, day, lang)}
    scores = [each.score + THAT_DAY * (n in matching and each.n in there) for n, each in enumerate(evidence)]
    best = max(scores)
    lifted = [each.model_copy(update={"score": best if n in closed else scores[n]}) for n, each in enumerate(evidence)]
    found = any(evidence[n].n in there for n in matching)
    return [lifted[n] for n in sorted(range(len(lifted)), key=lambda n: (-lifted[n].score, n not in closed))], found


def chosen(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The units to quote, best first."""
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
    """The units with omissions filled in, where a reader would miss them.

    A short table or list is quoted whole if several of its units are: five days of opening hours look like all seven.
    Steps of a numbered list are quoted without gaps.
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
    """The units with the steps between them, if the evidence has these and they fit."""
    places = [each.start for each in taken if _together(each, taken[0])]
    between = [
        each
        for each in evidence
        if _together(each, taken[0]) and min(places) < each.start < max(places) and each.start not in places
    ]
    return taken + between if sum(len(each.text) for each in [*taken, *between]) <= LONGEST else taken


def _step(unit: Evidence) -> int:
    """The unit's number in a numbered list; 0 elsewhere."""
    found = _STEP.match(unit.text) if unit.kind == "item" and not unit.header else None
    return int(found[1]) if found else 0


def _fitting(evidence: Sequence[Evidence], room: int, most: int = MOST) -> list[Evidence]:
    """The first unit, and as many of the others as fit, without duplicates."""
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
    """A block quotation for each list, table or sentence: that of the best unit first, units in reading order.

    Args:
        tables: the whole tables of quoted rows.
        at: characters of the answer before the quotation.
    """
    if not picked:
        return
    yield Token(text=lead_in)
    at += len(lead_in)
    rank = {id(each): n for n, each in enumerate(picked)}
    blocks: dict[tuple[int, int], list[Evidence]] = {}
    for each in picked:
        blocks.setdefault((each.n, each.block), []).append(each)
    before = 0  # number of the source quoted last
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
                joint = "\n>\n> …\n>\n> "  # Markdown begins a new list, with this number
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
    """The number of rows below the header."""
    return len(table.splitlines()) - (2 if "\n| --- |" in table else 0)


def _above(unit: Evidence) -> str:
    """The text above a list or table: the sentence that introduces it, or its heading; then a table's header."""
    if unit.kind == "prose":
        return ""
    introduced = unit.intro or (f"**{unit.headings[-1]}**" if unit.headings else "")
    above = introduced.replace("\n", "\n> ") + "\n>\n> " if introduced else ""
    return above + _header(unit)


def _header(unit: Evidence) -> str:
    """The header of a row's table. Without one it is blank, since Markdown needs a header row."""
    if unit.kind != "row":
        return ""
    width = len(cells(unit.header or unit.text))
    return f"{unit.header or '|' + '  |' * width}\n> |{' --- |' * width}\n> "


def _term(unit: Evidence, last: Evidence | None) -> str:
    """The text before a definition: its term, unless the definition before has the same, and the mark."""
    if last and last.header == unit.header:
        return ": "
    return f"{unit.header}\n: ".replace("\n", "\n> ")


def _quoted(unit: Evidence) -> str:
    text = valid(unit.text) if unit.kind != "code" else unit.text
    text = _MARK.sub("", text) if unit.kind == "item" and unit.header else text
    if unit.kind in ("row", "code") or len(text) <= LONGEST:
        return text
    return f"{cut(text, LONGEST)} …"
