"""What a chunk is kept as, in indexes of today and of before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic.pages import PageIndex
from adapters.elastic.parts import WaitingParts
from adapters.elastic.reading import DocumentLookup
from adapters.elastic.writer import Write, WriteOutcome, Writer
from pipelines.runtime.indexes import IndexInfo
from tests.making import change, parts_of
from text.words import ANALYSIS


class Kept:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.writes: list[Write] = []

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        self.writes += writes
        return []


@pytest.mark.parametrize(("analysis", "stems"), [(ANALYSIS, "open hour openi- hours-"), ("", "openi hours")])
async def test_a_chunk_is_analysed_as_its_index_says(analysis: str, stems: str) -> None:
    info = IndexInfo("pagewire-town-000001", "town", "fake", "fake-4", 4, "content-512-20", analysis=analysis)
    kept = Kept()
    index = PageIndex(
        cast(AsyncElasticsearch, None), cast(DocumentLookup, None), cast(Writer, kept), cast(WaitingParts, None), info
    )
    [part] = parts_of(change(), {"content": ["Opening hours"]})
    await index.write(part, None)
    [write] = kept.writes
    assert write.document is not None
    assert write.document["stems"] == stems
