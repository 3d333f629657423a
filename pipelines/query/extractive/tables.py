"""Tables: whoever is shown a row may want to see the whole table, as it stands on the page.

    row that may be quoted ─▶ the chunks around it ─▶ lines above and below that are rows ─▶ the table, if all is there

A table that is longer than what is read around the row is not handed on: half a table would pass for a whole one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pipelines.query.extractive.ranking import KEPT, Findings, Weighed
from pipelines.query.search.ports import ChunkKey, Hit, SearchIndex
from schemas.query import Source, SourceTable

AROUND = 5  # chunks on each side of the row's
MOST = 3  # tables of an answer
LONGEST = 8_000  # characters of one

_ROW = re.compile(r"[ \t]*\|")


async def whole_tables(
    found: Iterable[Findings], near: Iterable[Hit], sources: Sequence[Source], chunks: SearchIndex
) -> tuple[SourceTable, ...]:
    """Of the rows that may be quoted, the tables that they are of.

    Args:
        near: chunks that have been read already.

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
    """The table that a row is of; None if it is not surely all there."""
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
    """The text of the chunks that touch, where the hit's begins in it, whether it begins and ends as the page does."""

    def beside(ord_: int) -> tuple[str, bool]:
        """The text of that chunk, if it goes on there, and whether the page surely does not."""
        chunk = known.get((hit.page_key, hit.field, ord_))
        if chunk is None or chunk.shown != hit.shown:
            return "", abs(ord_ - hit.ord) <= AROUND
        return (chunk.text, False) if chunk.revision == hit.revision else ("", False)

    before, after = "", hit.text
    first, (piece, begins) = hit.ord, beside(hit.ord - 1)
    while piece:
        first, before = first - 1, piece + before
        piece, begins = beside(first - 1)
    last, (piece, ends) = hit.ord, beside(hit.ord + 1)
    while piece:
        last, after = last + 1, after + piece
        piece, ends = beside(last + 1)
    return before + after, len(before), begins, ends


def _begin(text: str, at: int) -> int:
    """Where the rows begin that the one at `at` goes on with."""
    begin = text.rfind("\n", 0, at) + 1
    while begin and _ROW.match(text, above := text.rfind("\n", 0, begin - 1) + 1):
        begin = above
    return begin


def _end(text: str, at: int) -> int:
    """Where the rows end that go on with the one at `at`."""
    end = at
    while True:
        line = text.find("\n", end)
        if line < 0:
            return len(text)
        if not _ROW.match(text, line + 1):
            return line
        end = line + 1
