"""Converts tables to Markdown in which each row is understandable alone.

    cells with their spans ─▶ rows of slots ─▶ parts: title, names of the columns, rows ─▶ Markdown

A value that spans several slots is repeated in each. The names of several header rows are joined ("Price: Adult"). A
row with a single label becomes a title above its rows, or a column before them. Columns have names if the author marked
them (`thead`, `th`, bold cells), or if words are above numbers. Otherwise the header row is empty, since a wrong name
is worse than none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Literal

from babel import Locale

from prompts.loader import table as words
from text.sentences import ended

MAX_COLUMNS = 1_000  # HTML's limit of a span
MAX_SLOTS = 20  # slots a cell; HTML allows a million
MAX_REPEATED = 4  # most characters of the result for each character of a cell
SPARE = 2_000  # slots, and characters, that every table may have
LONGEST_REPEATED = 300  # characters of a repeated value; a longer one is a text, and names no row
LONGEST_NAME = 60  # characters of a column's name that is recognized by the numbers below it
LONGEST_TITLE = 200  # characters

SectionName = Literal["thead", "tbody", "tfoot"]
_BOLD = re.compile(r"\*\*(?:[^*\\]|\\.)+\*\*")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, eq=False)
class Cell:
    """`text` is Markdown in one line, with escaped bars. A `rowspan` of 0 extends to the end of the section."""

    text: str
    head: bool = False
    colspan: int = 1
    rowspan: int = 1
    scope: str = ""
    id: str = ""
    headers: tuple[str, ...] = ()

    @property
    def names_rows(self) -> bool:
        return self.scope in ("row", "rowgroup")

    @property
    def strong(self) -> bool:
        return self.head or _BOLD.fullmatch(self.text) is not None

    @property
    def name(self) -> str:
        return self.text.rstrip(" :：")


@dataclass
class _Section:
    name: SectionName
    rows: list[list[Cell]] = field(default_factory=list)


@dataclass
class Table:
    """A table in reading order: sections, rows and cells."""

    caption: str = ""
    sections: list[_Section] = field(default_factory=lambda: [_Section("tbody")])

    def begin_section(self, name: SectionName) -> None:
        self.sections.append(_Section(name))

    def begin_row(self) -> None:
        self.sections[-1].rows.append([])

    def add(self, cell: Cell) -> None:
        rows = self.sections[-1].rows
        if not rows:  # <thead><th>
            rows.append([])
        rows[-1].append(cell)

    @property
    def rows(self) -> Iterator[list[Cell]]:
        """All rows; those of `tfoot` are the last ones."""
        return chain.from_iterable(section.rows for section in _ordered(self.sections))

    def flat(self) -> str:
        """The words in one line, for a table in a cell of another one."""
        lines = (" ".join(cell.text for cell in row if cell.text) for row in self.rows)
        return "; ".join(filter(None, [self.caption, *lines])).replace("\\|", "|")

    def markdown(self) -> str:
        """Titles, tables and notes, with blank lines between them."""
        rows = _rows(self.sections)
        if rows is None:  # the spans are absurd: write the cells without names
            given = [[cell.text for cell in row] for row in self.rows if row]
            return "\n\n".join(filter(None, [self.caption, lines_of([""] * len(given[0]), given)]))
        ids = {cell.id: cell for row in self.rows for cell in row if cell.id}
        return "\n\n".join(chain.from_iterable(_written(part, self.caption, ids) for part in _parts(rows)))


@dataclass(frozen=True)
class _Row:
    slots: Sequence[Cell | None]
    section: int
    within: SectionName

    @property
    def cells(self) -> list[Cell]:
        """The distinct cells with a text."""
        return list(dict.fromkeys(cell for cell in self.slots if cell is not None and cell.text))

    @property
    def label(self) -> Cell | None:
        """The cell that spans all of several columns."""
        first = self.slots[0]
        whole = first is not None and len(self.slots) > 1 and all(slot is first for slot in self.slots)
        return first if whole else None

    @property
    def names_columns(self) -> bool:
        """Whether all its cells are headers, and none is a header of a row."""
        named = self.cells
        elsewhere = len(self.slots) == 1 or any(cell is not self.slots[0] for cell in named)
        return bool(named) and elsewhere and all(cell.head and not cell.names_rows for cell in named)


@dataclass
class _Part:
    """Rows with the same column names."""

    titles: list[str] = field(default_factory=list)
    header: list[_Row] = field(default_factory=list)
    rows: list[tuple[str, _Row]] = field(default_factory=list)  # with the label of their group
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Span:
    start: int
    end: int
    cell: Cell
    last: int  # row of the section


def _ordered(sections: Iterable[_Section]) -> list[_Section]:
    return sorted((section for section in sections if section.rows), key=lambda section: section.name == "tfoot")


def _rows(sections: Iterable[_Section]) -> list[_Row] | None:
    """All rows with a text, with equal numbers of slots; None: the spans would make far more slots than cells."""
    ordered = _ordered(sections)
    found = [cell for section in ordered for row in section.rows for cell in row]
    room = most = MAX_SLOTS * len(found) + SPARE
    placed: list[tuple[list[_Span], int, SectionName]] = []
    for n, section in enumerate(ordered):
        line: list[_Span] = []
        for y, row in enumerate(section.rows):
            hanging = [span for span in line if span.last >= y]
            room -= len(hanging)
            if room < 0:
                return None
            line = _line(row, hanging, y)
            if any(cell.text for cell in row):
                placed.append((line, n, section.name))
    starts = sorted({span.start for line, _, _ in placed for span in line})
    if len(starts) > MAX_COLUMNS or len(starts) * len(placed) > most:
        return None
    rows = [_Row(_slots(line, starts), n, name) for line, n, name in placed]
    used = [x for x in range(len(starts)) if any(cell is not None and cell.text for cell in (r.slots[x] for r in rows))]
    rows = [_Row([row.slots[x] for x in used], row.section, row.within) for row in rows]
    size = sum(len(cell.text) for row in rows for cell in row.slots if cell is not None)
    return rows if size <= MAX_REPEATED * sum(len(cell.text) for cell in found) + SPARE else None


def _line(row: Iterable[Cell], hanging: Sequence[_Span], y: int) -> list[_Span]:
    """The spans of a row, including those that extend into it from above."""
    spans, at, k = list(hanging), 0, 0
    for cell in row:
        while k < len(hanging) and hanging[k].start <= at:
            at = max(at, hanging[k].end)
            k += 1
        end = at + cell.colspan
        if k < len(hanging):
            end = min(end, hanging[k].start)
        spans.append(_Span(at, end, cell, y + cell.rowspan - 1 if cell.rowspan else MAX_COLUMNS**2))
        at = end
    return sorted(spans, key=lambda span: span.start)


def _slots(line: Iterable[_Span], starts: Sequence[int]) -> list[Cell | None]:
    """The slots of a line. Columns begin where a cell begins, so a wide span does not add empty columns."""
    slots: list[Cell | None] = [None] * len(starts)
    for span in line:
        for x in range(bisect_left(starts, span.start), bisect_left(starts, span.end)):
            slots[x] = span.cell
    return slots


def _parts(rows: Sequence[_Row]) -> Iterator[_Part]:
    kinds = _kinds(rows)
    # Several labels, each above its own rows, are groups and no titles.
    above = [n for n, row in enumerate(rows) if row.label is not None and row.label.strong]
    several = sum(kinds[n + 1 : n + 2] == ["data"] for n in above) > 1
    part, group, ends = _Part(), "", -1  # the section with which the group ends
    labels: list[Cell] = []  # above the row
    for row, kind in zip(rows, kinds, strict=True):
        if row.label is not None:
            labels.append(row.label)
            continue
        label = ": ".join(cell.name for cell in labels)
        grouped = all(cell.strong for cell in labels) and bool(part.header or part.rows or several)
        if labels and kind == "data" and grouped:
            group, ends = label, row.section if labels[-1].scope == "rowgroup" else -1
        elif labels or kind != "data":
            if part.rows:
                yield part
                part = _Part(header=part.header if kind == "data" else [])
            part.titles += filter(None, [label])
            group = ""
        labels = []
        if kind == "names":
            part.header.append(row)
            continue
        if row.within == "tfoot" or (ends >= 0 and row.section != ends):
            group = ""
        part.rows.append((group, row))
    part.notes += (cell.text for cell in labels)
    yield part


def _kinds(rows: Sequence[_Row]) -> list[str]:
    """The kind of each row: label, names, data; break: data from which the column names are unknown."""
    first = _header(rows)
    kinds = ["label" if row.label else "names" if n in first else "data" for n, row in enumerate(rows)]
    if all(row.names_columns for row in rows if row.label is None):
        return kinds
    after = False  # there is data below
    for n in reversed(range(len(rows))):
        row = rows[n]
        if kinds[n] == "data" and after and row.within != "tfoot" and row.names_columns:
            kinds[n] = "break" if any(_DIGIT.search(cell.text) for cell in row.cells) else "names"
        after = after or kinds[n] == "data"
    return kinds


def _header(rows: Sequence[_Row]) -> set[int]:
    """Numbers of the header rows, which name the columns below."""
    own = [n for n, row in enumerate(rows) if row.label is None]
    found = {n for n in own if rows[n].within == "thead"}
    if found and len(found) < len(own):
        return found
    found = set()
    for before, n in zip([-1, *own], own, strict=False):
        below = before in found and any(c is not None and c.head and c in rows[before].slots for c in rows[n].slots)
        if not (rows[n].names_columns or below):
            break
        found.add(n)
    if found and len(found) < len(own):
        return found
    recognized = len(own) > 1 and (_bold(rows, own) or _words_over_figures([rows[n] for n in own]))
    return {own[0]} if recognized else set()


def _bold(rows: Sequence[_Row], own: Sequence[int]) -> bool:
    bold = [all(_BOLD.fullmatch(cell.text) for cell in rows[n].cells) for n in own]
    return bold[0] and len(rows[own[0]].cells) > 1 and not any(bold[1:])


def _words_over_figures(rows: Sequence[_Row]) -> bool:
    """Whether the first row has words, and all rows below have numbers, except in the first column.

    False for two columns without an empty corner: "Name: Anna" may be above telephone numbers as well.
    """
    first, *below = ([cell.text if cell is not None else "" for cell in row.slots] for row in rows)
    corner, names = first[0], [name.casefold() for name in first[1:]]
    if all(row.slots[0] is not None and row.slots[0].head for row in rows):
        return False  # the first column has row headers
    if len(below) < 2 or len(names) < (2 if corner else 1) or len(set(names)) < len(names) or not all(names):
        return False
    if any(_DIGIT.search(name) or len(name) > LONGEST_NAME for name in first):
        return False
    columns = [[text for text in column if text] for column in list(zip(*below, strict=True))[1:]]
    figures = all(len(column) > 1 and all(map(_DIGIT.search, column)) for column in columns)
    return figures and corner.casefold().rstrip(".") not in _weekdays()


@cache
def _weekdays() -> frozenset[str]:
    """Weekdays in all languages, case folded: "Monday | closed | by appointment" is no header."""
    days = (Locale.parse(lang).days["format"] for lang in words("languages"))
    return frozenset(
        name.casefold().rstrip(".")
        for each in days
        for width in ("wide", "abbreviated")
        for name in each[width].values()
    )


def _written(part: _Part, caption: str, ids: dict[str, Cell]) -> Iterator[str]:
    """The title, the table and the notes of a part."""
    titled = part.titles
    if caption and (len(caption) > LONGEST_TITLE or "\n" in caption or caption[0] == "#" or ended(caption)):
        yield caption
    elif caption:
        titled = [caption.rstrip(" :："), *titled]
    if titled:
        yield ": ".join(dict.fromkeys(titled))
    width = len(part.rows[0][1].slots) if part.rows else 0
    names = [_named(row.slots[x] for row in part.header) for x in range(width)]
    grouped = any(group for group, _ in part.rows)
    lines = [[group] * grouped + _texts(row, names, group, ids) for group, row in part.rows]
    if lines:
        yield lines_of([""] * grouped + names, lines)
    yield from part.notes


def _named(above: Iterable[Cell | None]) -> str:
    """A column's name: the distinct texts above it."""
    return ": ".join(dict.fromkeys(cell.name for cell in above if cell is not None and cell.text))


def _texts(row: _Row, names: Sequence[str], group: str, ids: dict[str, Cell]) -> list[str]:
    """The row's cells, each after the headers in its attribute that are neither above nor beside it."""
    row_names = {cell.name for cell in row.cells}
    texts: list[str] = []
    for slot, name in zip(row.slots, names, strict=True):
        text = slot.text if slot is not None else ""
        if (
            slot is not None
            and len(text) > LONGEST_REPEATED
            and any(slot is before for before in row.slots[: len(texts)])
        ):
            text = ""
        headers = (ids[each].name for each in slot.headers if each in ids) if slot is not None and text else ()
        more = [each for each in headers if each and each != group and each not in row_names and each not in name]
        texts.append(": ".join([*more, text]))
    return texts


def lines_of(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, of cells in Markdown."""
    rule = f"|{' --- |' * len(names)}"
    return "\n".join(["| " + " | ".join(names) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])
