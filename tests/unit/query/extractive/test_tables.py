"""Whole tables, of rows that may be quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipelines.query.extractive.ranking import Findings, Weighed
from pipelines.query.extractive.tables import AROUND, LONGEST, whole_tables
from pipelines.query.search.ports import ChunkKey, Hit
from schemas.query import Source, SourceTable
from tests.asking import source
from tests.unit.query.extractive.test_ranking import hit, unit

HEADER = "| Day | Hours |"
ROWS = [f"| {day} | 9 to {n} |" for n, day in enumerate(("Mon", "Tue", "Wed", "Thu"), 3)]
TABLE = "\n".join([HEADER, "| --- | --- |", *ROWS])
PAGE = f"We are open:\n\n{TABLE}\n\nCome in."


def cut(text: str, size: int) -> list[Hit]:
    """A page's chunks."""
    cores = [text[at : at + size] for at in range(0, len(text), size)]
    return [replace(hit("pool", n, 0.5), text=core, index="live") for n, core in enumerate(cores)]


class Index:
    """Knows these chunks."""

    def __init__(self, chunks: Sequence[Hit]) -> None:
        self.there = {chunk.place: chunk for chunk in chunks}
        self.asked: list[ChunkKey] = []

    async def chunks(self, index: str, addresses: Sequence[ChunkKey]) -> list[Hit]:
        assert index == "live"
        self.asked += addresses
        return [self.there[address] for address in addresses if address in self.there]

    async def field(self, *_: object) -> list[Hit]:
        raise AssertionError("pages may be long")


SOURCES: tuple[Source, ...] = (source(1, "Elsewhere."), source(2, PAGE).model_copy(update={"url": "/en/pool"}))


async def found(
    text: str, row: str = ROWS[1], size: int = 30, near: Sequence[Hit] = (), kind: str = "row", header: str = HEADER
) -> tuple[tuple[SourceTable, ...], Index]:
    pieces = cut(text, size)
    chunk = pieces[text.index(row) // size]
    told = unit(row, 0.9, text.index(row), kind=kind, header=header, block=text.index(row.splitlines()[0]))
    findings = Findings([Weighed(chunk, told, 0.9, 0.9, 0, 0, 0, 9)])
    index = Index(pieces)
    return await whole_tables([findings], near, SOURCES, index), index


async def test_the_whole_table_is_put_together_from_the_chunks_around_the_row() -> None:
    [table], index = await found(PAGE)
    assert (table.sources, table.text) == ((2,), TABLE)
    assert len(index.asked) <= 2 * AROUND


async def test_what_was_read_is_not_read_again() -> None:
    tables, index = await found(PAGE, near=cut(PAGE, 30))
    assert tables[0].text == TABLE
    assert not set(index.asked) & set(index.there)


async def test_a_row_that_stands_in_two_tables_brings_its_own() -> None:
    other = f"| Month | Hours |\n| --- | --- |\n{ROWS[1]}"
    [table], _ = await found(f"{other}\n\n{TABLE}", size=1_000)
    assert table.text == TABLE


@pytest.mark.parametrize("beside", ["above", "below"])
async def test_half_a_table_is_none(beside: str) -> None:
    long = [f"| Day {n} | all day |" for n in range(200)]
    rows = [*long, *ROWS] if beside == "above" else [*ROWS, *long]
    assert (await found("\n".join([HEADER, "| --- | --- |", *rows])))[0] == ()


async def test_a_very_long_table_is_none() -> None:
    rows = [f"| Day {n} | {'all day ' * 20} |" for n in range(LONGEST // 100)]
    assert (await found("\n".join([HEADER, "| --- | --- |", *ROWS, *rows]), size=LONGEST))[0] == ()


async def test_another_revision_of_the_page_is_none_of_it() -> None:
    pieces = cut(PAGE, 30)
    newer = [replace(piece, revision=2) for piece in pieces if piece.ord > PAGE.index(ROWS[1]) // 30]
    assert (await found(PAGE, near=newer))[0] == ()


async def test_nothing_is_read_where_no_row_may_be_quoted() -> None:
    tables, index = await found(PAGE, row="Come in.", kind="prose", header="")
    assert (tables, index.asked) == ((), [])
