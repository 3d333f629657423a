"""CSV and tab-separated values as one table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from itertools import chain, islice
from unicodedata import category

from text.markdown import escaped
from text.tables import Cell, Table

DELIMITERS = ";\t|,"  # a comma is in numbers, too, so another one counts where both make equal rows
LOOKED_AT = 20  # rows


def table(text: str) -> str | None:
    """Markdown; None: the rows have no delimiter in common, so the text is none.

    The first row names the columns if each of its cells is a word without a figure.
    """
    try:
        delimiter = max(DELIMITERS, key=lambda each: _columns(text, each))
        if _columns(text, delimiter) < 2:
            return None
        rows = _rows(text, delimiter)
        first = next(rows)
        named = len(set(first)) == len(first) and all(cell and not any(map(_is_figure, cell)) for cell in first)
        found = Table()
        for number, row in enumerate(chain([first], rows)):
            found.begin_row()
            for cell in row:
                found.add(Cell(escaped(cell).replace("|", "\\|"), head=named and not number))
        return found.markdown()
    except csv.Error:  # a cell of more than 131,072 characters
        return None


def _columns(text: str, delimiter: str) -> int:
    """Of each of the first rows; 0 if they differ."""
    lengths = {len(row) for row in islice(_rows(text, delimiter), LOOKED_AT)}
    return lengths.pop() if len(lengths) == 1 else 0


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    lines = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    read = ([" ".join(cell.split()) for cell in row] for row in lines)
    return (row for row in read if any(row))


def _is_figure(char: str) -> bool:
    return category(char) == "Nd"
