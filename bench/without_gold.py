"""Fidelity of pages without a gold text: encodings, tables, figures.

page ─▶ decoded without a charset ─▶ beside UTF-8, which the saved pages are
     ─▶ its content ─▶ each figure in its text, Markdown and units
     ─▶ each table of data ─▶ HTML's own grid of cells ─▶ each cell in a unit of its row, under the names of its column
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from bs4 import BeautifulSoup, Tag

from connectors.cms.sitemap.page import read_page
from text.encodings import UnknownEncoding, decoded
from text.html import read
from text.html5 import well_formed
from text.html_tree import is_hidden
from text.markdown import plain
from text.units import Unit, units
from text.words import words

COLUMNS = (
    "folder", "pages", "mojibake, of", "tables with th whole, of", "others whole, of", "of these with a header",
    "cells in no unit, of", "figures altered, of", "in no unit",
)  # fmt: skip
FIGURE = re.compile(r"\d(?:[\d.,:/]*\d)?")
MANGLED = (("mojibake", "decoded"), ("th whole", "th"), ("none whole", "none"))
LARGEST = 60_000  # bytes of a table; larger ones take long and are none for readers
MOST_SPANNED = 1_000
BEGINNING = 4  # letters by which a cell is known in what its unit says
_UNSEEN = ("sup", "sub", "rt", "rp", "script", "style", "template", "button", "select")
_LAYOUT = ("presentation", "none")


class Placed(NamedTuple):
    """A cell at a place of the grid."""

    cell: Tag
    text: str
    names: tuple[str, ...]  # of the headers above it


def lines(folders: Iterable[Path]) -> Iterator[tuple[object, ...]]:
    """In the order of `COLUMNS`."""
    for folder in folders:
        counts: Counter[str] = Counter()
        known: set[str] = set()
        pages = [file for file in sorted(folder.rglob("*")) if file.suffix in (".html", ".htm") and file.is_file()]
        for page in pages:
            counts += _of_page(page.read_bytes(), known)
        yield (
            str(folder),
            len(pages),
            *(f"{counts[a]}, {counts[b]}" for a, b in MANGLED),
            counts["claimed"],
            *(f"{counts[a]}, {counts[b]}" for a, b in (("cells lost", "cells"), ("altered", "figures"))),
            counts["in no unit"],
        )  # fmt: skip


def _of_page(data: bytes, known: set[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    try:
        right = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        right = None
    if right is not None and not right.isascii():
        counts["decoded"] = 1
        try:
            counts["mojibake"] = int(decoded(data, page=True) != right)
        except UnknownEncoding:
            counts["mojibake"] = 1
    counts += _figures(data)
    text = data.decode("latin-1") if right is None else right
    for table in BeautifulSoup(well_formed(text), "lxml").find_all("table"):
        if (grid := _grid(table)) and (key := _key(table.get_text(" "))) not in known:
            known.add(key)
            counts += _of_table(table, grid)
    return counts


def _figures(data: bytes) -> Counter[str]:
    """Figures of the page's content that its text does not have, and those that no unit has."""
    try:
        page = read_page(data, "https://www.town.example/page")
    except (UnknownEncoding, ValueError):
        return Counter()
    text = read(page.content)
    if text.tree is None:
        return Counter()
    for raised in text.tree.find_all(["sup", "sub"]):  # 7<sup>50</sup> may be 7.50, or a note
        raised.decompose()
    seen, there = (set(FIGURE.findall(each)) for each in (text.tree.get_text(" "), plain(text.markdown)))
    said = " ".join(" ".join((*unit.headings, plain(unit.intro), unit.said)) for unit in units(text.markdown))
    return Counter(
        {
            "figures": len(seen),
            "altered": len(seen - there),
            "in no unit": len((seen & there) - set(FIGURE.findall(said))),
        }
    )


def _of_table(table: Tag, grid: Sequence[Sequence[Placed | None]]) -> Counter[str]:
    for picture in table.find_all("img"):
        picture["alt"] = ""  # no text that its readers see
    found = units(read(str(table)).markdown)
    rows = [[cell for cell in row if cell and cell.text] for row in grid]
    said = _key(" ".join(" ".join((*unit.headings, unit.intro, unit.header, unit.said)) for unit in found))
    cells = {id(each.cell): each for row in rows for each in row}.values()
    lost = sum(each.text not in said for each in cells)
    kind = "th" if table.find("th") else "none"
    data = [row for row in rows if any(each.cell.name == "td" for each in row)]
    whole = not lost and all(any(_says(unit, row) for unit in found) for row in data)
    return Counter(
        {
            kind: 1,
            f"{kind} whole": int(whole),
            "claimed": int(kind == "none" and any(unit.header.strip("| -") for unit in found)),
            "cells": len(cells),
            "cells lost": lost,
        }
    )


def _says(unit: Unit, row: Sequence[Placed]) -> bool:
    """Whether a unit says each cell of a row, each with the names of its column; or has the row for its header."""
    if all(each.text in _key(unit.header) for each in row):
        return True
    pieces = [_key(piece) for piece in unit.said.split("; ")]
    above = _key(" ".join((*unit.headings, unit.intro)))
    said = _key(unit.said)
    named = {
        id(each.cell)  # one that spans columns is said once, under one of their names
        for each in row
        if each.cell.name == "th"
        or not each.names
        or any(
            each.text[:BEGINNING] in piece and all(name in piece or name in above for name in each.names)
            for piece in pieces
        )
        or each.names[-1] + each.text in said  # a cell of several lines
    }
    return all(each.text in said and id(each.cell) in named for each in row)


def _grid(table: Tag) -> list[list[Placed | None]]:
    """The cells of a table of data by HTML's rules; empty for layout, nested tables, and those that are too small."""
    if table.find("table") or table.find_parent("table") or table.get("role") in _LAYOUT or len(str(table)) > LARGEST:
        return []
    rows: list[list[Tag | None]] = []
    spans: dict[int, tuple[int, Tag]] = {}  # by column: how many rows a cell goes on for
    for tr in table.find_all("tr"):
        row: list[Tag | None] = []
        cells = iter(tr.find_all(["td", "th"]))
        cell = next(cells, None)
        while cell is not None or any(at >= len(row) for at in spans):
            at = len(row)
            if at in spans:
                left, spanning = spans.pop(at)
                row.append(spanning)
                if left > 1:
                    spans[at] = (left - 1, spanning)
                    if cell is None and all(other <= at for other in spans):
                        break
            elif cell is not None:
                for each in range(at, at + min(_span(cell, "colspan"), MOST_SPANNED)):
                    row.append(cell)
                    if (tall := _span(cell, "rowspan")) > 1:
                        spans[each] = (tall - 1, cell)
                cell = next(cells, None)
            else:
                row.append(None)
        rows.append(row)
    width = max(map(len, rows), default=0)
    if len(rows) < 2 or width < 2 or sum(len(row) for row in rows) < 4:
        return []
    heads = [_is_head(row) for row in rows]
    placed: list[list[Placed | None]] = []
    for number, row in enumerate(rows):
        names = [_names(rows[:number], heads, at) for at in range(len(row))]
        placed.append(
            [_placed(each, above) if each is not None else None for each, above in zip(row, names, strict=True)]
        )
    return placed


def _placed(cell: Tag, names: tuple[str, ...]) -> Placed:
    return Placed(cell, _of_cell(cell), names)


def _of_cell(cell: Tag) -> str:
    """What its readers see, without marks of notes."""
    return _key("".join(text for text in cell.strings if not any(map(_is_unseen, text.parents))))


def _is_unseen(element: Tag) -> bool:
    return element.name in _UNSEEN or is_hidden({name: str(value) for name, value in element.attrs.items()})


def _is_head(row: Sequence[Tag | None]) -> bool:
    return any(row) and all(cell is None or cell.name == "th" or not cell.get_text(strip=True) for cell in row)


def _names(above: Sequence[Sequence[Tag | None]], heads: Sequence[bool], at: int) -> tuple[str, ...]:
    """The texts of the header cells above a cell, of the rows of headers that begin the table."""
    found: list[Tag] = []
    for row, head in zip(above, heads, strict=False):
        if not head:
            break
        if at < len(row) and (cell := row[at]) is not None and cell not in found:
            found.append(cell)
    return tuple(filter(None, map(_of_cell, found)))


def _span(cell: Tag, name: str) -> int:
    said = str(cell.get(name, "1"))
    return max(int(said), 1) if said.isdecimal() and len(said) < 6 else 1


def _key(text: str) -> str:
    """Its words without what is between them, since languages and tables divide them in their own ways."""
    return "".join(words(normalize("NFC", text)))
