"""XLSX: each sheet as the visible tables, with cells as their number formats show them.

Text boxes and charts stand below their sheet's tables. Hidden sheets, rows and columns, comments and pictures are left
out and counted. Blank rows separate tables, unless a merged cell, a filter or an Excel table spans them.
"""

from __future__ import annotations

import io
import zipfile
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from adapters.extraction.cell_formats import formatted
from adapters.extraction.office_parts import GRAPHIC, PICTURE, Drawing, Parts, R, paragraphs
from text.html import tidy, to_markdown
from text.markdown import escaped, escaped_line
from text.tables import Cell, Table
from text.words import count_roughly

MOST_MERGED = 10_000  # cells of one range whose value is repeated
LAST_COLUMN = 16_384


def sheets(data: bytes) -> tuple[list[tuple[str, str]], Counter[str], int]:
    """Name and Markdown of each visible sheet; what is left out, and how often; how many words are visible."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True, rich_text=True)
    hidden = sum(sheet.sheet_state != "visible" for sheet in book.worksheets)
    left_out = Counter({"hidden sheets": hidden, "charts": len(book.chartsheets)})
    read, seen = [], 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = _Drawings(Parts(archive))
        for each in book.worksheets:
            if each.sheet_state == "visible":
                sheet = _Sheet(each)
                drawn, lost = files.of(each.title)
                left_out += sheet.left_out + lost
                seen += count_roughly(" ".join((*sheet.texts, *(text for one in drawn for text in one.texts))))
                below = to_markdown("".join(one.html for one in drawn))
                read.append((each.title, tidy(f"{sheet.markdown()}\n\n{below}")))
    return read, +left_out, seen


class _Drawings:
    """The text boxes and charts of sheets."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        book, related = parts.root("xl/workbook.xml"), parts.related("xl/workbook.xml")
        found = book.iter("{*}sheet") if book is not None else ()
        self._sheets = {sheet.get("name"): related.get(sheet.get(R + "id", ""), "") for sheet in found}

    def of(self, title: str) -> tuple[list[Drawing], Counter[str]]:
        """Those of a sheet, and what of them has no text."""
        drawn: list[Drawing] = []
        left_out: Counter[str] = Counter()
        for name in self._parts.related(self._sheets.get(title, "")).values():
            root = self._parts.root(name) if name.startswith("xl/drawings/") and name.endswith(".xml") else None
            if root is not None:
                related = self._parts.related(name)
                left_out["pictures"] += sum(1 for _ in root.iter(PICTURE))
                drawn += [Drawing(tuple(lines)) for box in root.iter("{*}txBody") if (lines := paragraphs(box))]
                for graphic in root.iter(GRAPHIC):
                    what, one = self._parts.drawn(graphic, related)
                    left_out[what] += bool(what and one is None)
                    drawn += [one] if one else []
        return drawn, left_out


class _Sheet:
    """The visible cells of a sheet; `left_out` counts hidden rows and columns with a text, and comments."""

    def __init__(self, sheet: Any) -> None:
        self._sheet = sheet
        # Not by `iter_rows`, which creates all cells up to the last one: a sheet may have 17 billion.
        cells = {at: cell for at, cell in sheet._cells.items() if _text(cell)}
        columns = {column for _, column in cells} & self._columns_hidden()
        rows = {row for row, _ in cells if self._is_hidden(row)}
        self.left_out = Counter({"hidden rows": len(rows), "hidden columns": len(columns)})
        self.left_out["comments"] = sum(cell.comment is not None for cell in sheet._cells.values())
        self.texts: list[str] = []  # of the visible cells
        self._rows: dict[int, dict[int, Cell]] = defaultdict(dict)
        marked = [table.ref for table in sheet.tables.values() if table.headerRowCount != 0]
        self._marked = [_bounds(ref) for ref in (*marked, sheet.auto_filter.ref) if ref]
        for (row, column), cell in sorted(cells.items()):
            if row not in rows and column not in columns:
                self.texts.append(_text(cell))
                self._rows[row][column] = Cell(_markdown(cell), head=self._is_header(row, column))
        self._repeat_merged()

    def markdown(self) -> str:
        return tidy("\n\n".join(map(self._written, self._blocks())))

    def _is_header(self, row: int, column: int) -> bool:
        return any(row == top and left <= column <= right for left, top, right, _ in self._marked)

    def _repeat_merged(self) -> None:
        """Repeat a merged cell in each row that it spans, with its width."""
        self._tall = [(top, end) for _, top, _, end in self._marked]
        numbers = list(self._rows)
        for merged in self._sheet.merged_cells.ranges:
            left, top, right, end = merged.bounds
            cell = self._rows.get(top, {}).get(left)
            if cell is None or (right - left + 1) * (end - top + 1) > MOST_MERGED:
                continue
            self._tall.append((top, end))
            wide = replace(cell, colspan=right - left + 1)
            for row in numbers[bisect_left(numbers, top) : bisect_right(numbers, end)]:
                self._rows[row][left] = wide

    def _is_hidden(self, row: int) -> bool:
        dimensions = self._sheet.row_dimensions
        if row in dimensions:
            return bool(dimensions[row].hidden or dimensions[row].ht == 0)
        return bool(self._sheet.sheet_format.zeroHeight)

    def _columns_hidden(self) -> set[int]:
        hidden: set[int] = set()
        for column in self._sheet.column_dimensions.values():
            if column.hidden or column.width == 0:
                column.reindex()
                hidden.update(range(column.min, min(column.max, LAST_COLUMN) + 1))
        return hidden

    def _blocks(self) -> Iterator[list[int]]:
        """Rows that belong together."""
        tall = sorted(self._tall)
        block: list[int] = []
        reach = at = 0  # the last row of the spans that began so far
        for row in self._rows:
            if block and not all(map(self._is_hidden, range(max(reach, block[-1]) + 1, row))):
                yield block
                block = []
            block.append(row)
            while at < len(tall) and tall[at][0] <= row:
                reach = max(reach, tall[at][1])
                at += 1
        if block:
            yield block

    def _written(self, rows: Sequence[int]) -> str:
        if len({column for row in rows for column in self._rows[row]}) > 1:
            return self._table(rows).markdown()
        return "\n\n".join(escaped_line(cell.text) for row in rows for cell in self._rows[row].values())

    def _table(self, rows: Sequence[int]) -> Table:
        last = max(column for row in rows for column in self._rows[row])
        full = [row for row in rows if len(self._rows[row]) > 1]
        table = Table()
        for row in rows:
            table.begin_row()
            cells = sorted(self._rows[row].items())
            if full and not full[0] <= row <= full[-1]:  # a single cell above or below the table: a title or a note
                table.add(replace(cells[0][1], text=escaped_line(cells[0][1].text), colspan=last))
                continue
            at = 1
            for column, cell in cells:
                if column > at:
                    table.add(Cell("", colspan=column - at))
                table.add(cell)
                at = column + cell.colspan
        return table


def _bounds(ref: str) -> tuple[int, int, int, int]:
    """First column and row, last column and row of `A1:C9`."""
    from openpyxl.utils.cell import range_boundaries

    left, top, right, end = range_boundaries(ref)
    return left or 1, top or 1, right or LAST_COLUMN, end or 1


def _text(cell: Any) -> str:
    if cell.value is None or cell.data_type == "e":  # `#REF!`
        return ""
    return " ".join(formatted(cell.value, cell.number_format).split())


def _markdown(cell: Any) -> str:
    from openpyxl.cell.rich_text import CellRichText

    text = escaped(_text(cell))
    if isinstance(cell.value, CellRichText):
        text = " ".join(to_markdown("".join(map(_html, cell.value))).split())
    text = text.replace("|", "\\|")
    if cell.font.strike:
        return f"~~{text}~~"
    return f"**{text}**" if cell.font.b and "**" not in text else text


def _html(part: Any) -> str:
    """A run of a cell's rich text as HTML."""
    text = escape(str(part))
    font = getattr(part, "font", None)
    raised = {"superscript": "sup", "subscript": "sub"}.get(font.vertAlign or "") if font else None
    for tag in filter(None, (raised, "s" if font and font.strike else None)):
        text = f"<{tag}>{text}</{tag}>"
    return text
