"""Sizing: the vendors' formulas by hand, and a document that says what the command says."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from bench.sizing import GB, Sizing, Units, markdown, sizing, vector_bytes, workers_for_all, workers_for_saves

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "scale.md"
UNIT = Units(384, 3000, 200, 300, 2500, rebuild_rate=1000, audit_rate=5000)
A_MILLION = 1_000_000


@pytest.mark.parametrize(
    ("dims", "int8", "bbq"),
    [(384, 384 + 4 + 4 * 16, 48 + 14 + 4 * 16), (1024, 1024 + 4 + 4 * 16, 128 + 14 + 4 * 16)],
)
def test_a_vector_takes_what_elastic_says(dims: int, int8: int, bbq: int) -> None:
    assert vector_bytes(dims) == (int8, bbq)


def test_a_million_chunks_by_hand() -> None:
    found = sizing(A_MILLION, UNIT)
    assert found.vectors_int8 == 452e6
    assert found.cache == 2 * 452e6
    assert (found.index, found.shards, found.nodes) == (3 * GB, 1, 2)
    assert found.disk == 3 * GB * 2 * 3  # copies, indexes
    assert (found.changes, found.chunk_topic, found.embeddings) == (0.6 * GB, 0.9 * GB, 7.5 * GB)
    assert (found.rebuild, found.audit) == (1000, 200)


def test_shards_follow_bytes_or_documents_whichever_are_more() -> None:
    assert sizing(100 * A_MILLION, UNIT).shards == 6  # 300 GB in shards of 50
    tiny = replace(UNIT, index_bytes=1)
    assert sizing(1000 * A_MILLION, tiny).shards == 6  # 1,040 million documents, 200 million each


def test_partitions_follow_the_largest_topic() -> None:
    assert sizing(A_MILLION, UNIT).partitions == 4
    assert sizing(100 * A_MILLION, UNIT).partitions == 10  # 250 GB of embeddings, 25 each


def test_ten_times_the_chunks_need_ten_times_the_bytes_and_the_time() -> None:
    one, ten = sizing(100 * A_MILLION, UNIT), sizing(1000 * A_MILLION, UNIT)
    for field in fields(Sizing):
        assert getattr(ten, field.name) == pytest.approx(10 * getattr(one, field.name), rel=0.1), field.name


def test_workers() -> None:
    assert workers_for_all(8_640_000, rate=100) == 1  # a day has 86,400 seconds
    assert workers_for_all(8_640_001, rate=100) == 2
    assert workers_for_saves(100, rate=1000) == 1
    assert workers_for_saves(100, rate=100) > workers_for_saves(100, rate=200)


def test_the_document_shows_what_the_command_prints() -> None:
    """`python -m bench sizing --markdown` writes this part of docs/reference/scale.md."""
    assert markdown() in DOCUMENT.read_text(encoding="utf-8")
