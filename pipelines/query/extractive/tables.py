"""Tables: the whole tables of quoted rows, so that visitors can open them.

    row that may be quoted ─▶ the chunks around it ─▶ rows above and below ─▶ the table, if it is complete

A table that is longer than the chunks around its row is left out: half a table would look like a whole one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pipelines.query.extractive.ranking import KEPT, Findings, Weighed
from pipelines.query.search.ports import ChunkKey, Hit, SearchIndex
from schemas.query import Source, SourceTable

AROUND = 5  # chunks to read before and after the row's chunk
MOST = 3  # tables of an answer
LONGEST = 8_000  # characters of a table

_ROW = re.compile(r"[ \t]*\|")


async def whole_tables(
    found: Iterable[Findings], near: Iterable[Hit], sources: Sequence[Source], chunks: SearchIndex
) -> tuple[SourceTable, ...]:
    """The tables of the rows that may be quoted.

    Args:
        near: chunks that are already read.

    Raises:
        Retryable: the index is away.
    """
    numbers: dict[str, tuple[int, ...]] = {}
    for source in sources:
        numbers[source.url] = (*numbers.get(source.url, ()), source.n)
    rows: dict[tuple[str, int], Weighed] = {}
    for findings in found:
        for each in findings.units[:KEPT]:
            if each.unit.kind == "row" and each.hit.url in numbers and len(rows) < MOST:
                rows.setdefault((each.hit.page_key, each.unit.block), each)
    known = {chunk.place: chunk for chunk in near if chunk.field == "content"}
    known |= {each.hit.place: each.hit for each in rows.values()}
    lacking = {place: None for each in rows.values() for place in _around(each.hit) if place not in known}
    if lacking:
        index = next(iter(rows.values())).hit.index
        known |= {chunk.place: chunk for chunk in await chunks.chunks(index, list(lacking))}
    tables = ((each, _table(each, known)) for each in rows.values())
    return tuple(
        SourceTable(sources=numbers[each.hit.url], block=each.unit.block, text=text)
        for each, text in tables
        if text is not None and len(text) <= LONGEST
    )


def _around(hit: Hit) -> list[ChunkKey]:
    ords = range(max(hit.ord - AROUND, 0), hit.ord + AROUND + 1)
    return [(hit.page_key, hit.field, ord_) for ord_ in ords]


def _table(row: Weighed, known: Mapping[ChunkKey, Hit]) -> str | None:
    """The row's table; None if it may be incomplete."""
    text, at, begins, ends = _text_around(row.hit, known)
    start = text.find(row.unit.text, at)
    while start >= 0:
        begin = _begin(text, start)
        end = _end(text, start)
        lines = [line.strip() for line in text[begin:end].splitlines()]
        if not row.unit.header or lines[0] == row.unit.header.strip():
            cut = (begin == 0 and not begins) or (end == len(text) and not ends)
            return None if cut else "\n".join(lines)
        start = text.find(row.unit.text, end)
    return None


def _text_around(hit: Hit, known: Mapping[ChunkKey, Hit]) -> tuple[str, int, bool, bool]:
    """(text of the adjoining chunks, offset of the hit, whether it is the page's beginning, whether it is its end)."""

    def adjoining(ord_: int) -> tuple[str, bool]:
        """(text of that chunk or "", whether the page surely has no such chunk)."""
        chunk = known.get((hit.page_key, hit.field, ord_))
        if chunk is None or chunk.shown != hit.shown:
            return "", abs(ord_ - hit.ord) <= AROUND
        return (chunk.text, False) if chunk.revision == hit.revision else ("", False)

    before, after = "", hit.text
    first, (piece, begins) = hit.ord, adjoining(hit.ord - 1)
    while piece:
        first, before = first - 1, piece + before
        piece, begins = adjoining(first - 1)
    last, (piece, ends) = hit.ord, adjoining(hit.ord + 1)
    while piece:
        last, after = last + 1, after + piece
        piece, ends = adjoining(last + 1)
    return before + after, len(before), begins, ends


def _begin(text: str, at: int) -> int:
    """The offset of the first row of the table with the row at `at`."""
    begin = text.rfind("\n", 0, at) + 1
    while begin and _ROW.match(text, above := text.rfind("\n", 0, begin - 1) + 1):
        begin = above
    return begin


def _end(text: str, at: int) -> int:
    """The offset behind the last row of the table with the row at `at`."""
    end = at
    while True:
        line = text.find("\n", end)
        if line < 0:
            return len(text)
        if not _ROW.match(text, line + 1):
            return line
        end = line + 1
