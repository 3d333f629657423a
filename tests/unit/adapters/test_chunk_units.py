"""Units in a chunk's document: they come back as they were, and an index learns of them before they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import AsyncElasticsearch, NotFoundError
from orjson import dumps, loads

from adapters.elastic import chunk_units
from adapters.elastic.indexes import added_mapping
from adapters.elastic.pages import PageIndex
from adapters.elastic.parts import WaitingParts
from adapters.elastic.reading import DocumentLookup
from adapters.elastic.writer import Write, WriteOutcome, Writer
from pipelines.runtime.indexes import IndexGone, IndexInfo
from schemas.ingest import ChunkUnit, EmbeddedChunk, PageEmbeddings
from tests.making import change, parts_of

ROW = ChunkUnit(start=7, text="| 5 | 6 |", kind="row", headings=("Fees", "Cards"), header="| a | b |", block=2)
PLAIN = ChunkUnit(start=0, text="Open daily.", kind="prose", block=0)


def chunk(*units: ChunkUnit) -> EmbeddedChunk:
    vector = np.ones(4, np.float32)
    rows = bytes(n % 256 for n in range(4 * len(units)))
    return EmbeddedChunk(
        field="content", ord=0, text="x", embed_hash="h", vector=vector, units=units, unit_vectors=rows
    )


def test_units_come_back_as_they_were() -> None:
    said, vectors = chunk_units.read(loads(dumps({"units": chunk_units.stored(chunk(ROW, PLAIN))})))
    assert [ChunkUnit(**unit) for unit in said] == [ROW, PLAIN]
    assert said[0]["headings"] == ("Fees", "Cards")
    assert vectors == bytes(range(8))


def test_a_document_from_before_has_none() -> None:
    assert chunk_units.read({"text": "x"}) == ([], b"")


def test_a_write_weighs_what_its_units_do() -> None:
    def weight(*units: ChunkUnit) -> int:
        return Write("i", "1", 1, {"text": "x", "units": chunk_units.stored(chunk(*units))}).chars

    assert Write("i", "1", 1, {"text": "x"}).chars < weight(PLAIN) < weight(PLAIN, ROW)
    assert weight(*[ROW] * 1_000) > len(dumps(chunk_units.stored(chunk(*[ROW] * 1_000))))


class Mappings:
    """Elasticsearch, which knows of one index or has lost it."""

    def __init__(self, gone: bool = False) -> None:
        self.gone = gone
        self.added: list[tuple[str, Mapping[str, Any]]] = []
        self.indices = self

    async def put_mapping(self, *, index: str, properties: Mapping[str, Any]) -> None:
        if self.gone:
            raise NotFoundError("gone", ApiResponseMeta(404, "1.1", HttpHeaders(), 0.1, NodeConfig("http", "h", 1)), {})
        self.added.append((index, properties))


class Written200:
    async def write(self, writes: list[Write]) -> list[WriteOutcome]:
        return [WriteOutcome(write.id, 200) for write in writes]


def index(es: Mappings, *, mapped: bool) -> PageIndex:
    info = IndexInfo("pagewire-town-000001", "town", "fake", "fake-4", 4, "content-1000-20", mapped=mapped)
    return PageIndex(
        cast(AsyncElasticsearch, es),
        cast(DocumentLookup, None),
        cast(Writer, Written200()),
        cast(WaitingParts, None),
        info,
    )


def part(*units: ChunkUnit) -> PageEmbeddings:
    [made] = parts_of(change(1))
    return made.model_copy(update={"chunks": (chunk(*units),)})


async def test_an_index_from_before_is_told_of_what_it_lacks() -> None:
    es = Mappings()
    await index(es, mapped=False).write(part(ROW), None)
    assert es.added == [("pagewire-town-000001", added_mapping())]
    assert added_mapping()["units"] == {"type": "object", "enabled": False}


async def test_an_index_that_knows_them_is_told_nothing() -> None:
    es = Mappings()
    await index(es, mapped=True).write(part(ROW), None)
    assert es.added == []


async def test_an_index_that_is_gone_is_said_to_be() -> None:
    with pytest.raises(IndexGone):
        await index(Mappings(gone=True), mapped=False).write(part(ROW), None)
