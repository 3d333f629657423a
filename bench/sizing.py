"""What an installation of any size needs, computed from measured unit costs and the vendors' own formulas.

    Units (one chunk, measured) ─▶ sizing ─▶ Sizing (a million chunks, a billion)

Pure: the tables in docs/reference/scale.md are printed by `bench sizing --markdown`, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated

import typer

from bench.report import numbers, report

GB = 10**9
DAY = 24 * 3600  # seconds

# Elastic Docs, "Tune approximate kNN search", section "Ensure data nodes have enough memory": bytes a vector takes in
# memory, outside the heap, ...
INT8_EXTRA = 4  # int8: num_dimensions + 4
BBQ_EXTRA = 14  # bbq: num_dimensions / 8 + 14
LINKS = 4 * 16  # ... and its links in the graph: 4 * HNSW.m; m is 16 by default
# Elastic Docs, "Size your shards", section "General sizing guidelines": 10 to 50 GB, below 200 million documents.
SHARD_BYTES = 50 * GB
SHARD_DOCUMENTS = 200_000_000
REPLICAS = 1
NODE_CACHE = 32 * GB  # what a data node of 64 GB has for the page cache beside a heap of 31 GB
INDEXES = 3  # while a rebuild runs: the live one, the one before it, the candidate
TOPIC_COPIES = 3  # replication in production
PARTITION_BYTES = 25 * GB  # ours: what a broker copies within minutes when another one is lost
PAGE = 25  # chunks a page: a head record for so many
AUDIT_ROW = 80  # bytes of a temporary file per chunk (pipelines.operate.audit.index_diff)
BUSY = 0.7  # share of its time a worker may work, so that a queue stays short
DEFAULT_PARTITIONS = 4
EDIT_EMBEDDINGS = 3.2  # of a one-sentence edit of a long page, mean (`python -m bench edits`)
LITE_RATE = 4.7  # chunks per second of an embed worker with the bundled model on two cores (`python -m bench ingest`)
RATES = (LITE_RATE, 100, 1000)  # the others stand for a GPU, or an endpoint; not measured
CHUNKS = (1_000_000, 100_000_000, 1_000_000_000)
SAVES = (1, 10, 100)  # a second


@dataclass(frozen=True)
class Units:
    """What one chunk costs: bytes on disk of one copy, chunks per second of one process."""

    dims: int
    index_bytes: float
    changes_bytes: float
    chunks_bytes: float
    embeddings_bytes: float
    rebuild_rate: float  # from embeddings
    audit_rate: float


# Two shared cores with Kafka, Elasticsearch and the command on them, and other work beside it (load 6 to 10): a quiet
# machine rebuilds about twice as fast. 100,000 chunks of 384 dimensions, 10,000 of 1,024.
MEASURED = (
    Units(384, 2955, 226, 231, 2375, rebuild_rate=228, audit_rate=9282),
    Units(1024, 6195, 228, 232, 5837, rebuild_rate=77, audit_rate=3479),
)


@dataclass(frozen=True)
class Sizing:
    """What so many chunks need: bytes, seconds."""

    vectors_int8: float  # in memory, one copy
    vectors_bbq: float
    cache: float  # page cache of all copies, int8
    nodes: int
    index: float  # on disk, one copy
    shards: int  # primaries
    disk: float  # all copies of all indexes while a rebuild runs
    changes: float  # on disk, all copies
    chunk_topic: float
    embeddings: float
    partitions: int
    rebuild: float  # from embeddings, one process
    audit: float  # one process
    audit_disk: float


def vector_bytes(dims: int) -> tuple[float, float]:
    """In memory, per vector with its links: int8_hnsw (what our indexes use), bbq_hnsw."""
    return dims + INT8_EXTRA + LINKS, dims / 8 + BBQ_EXTRA + LINKS


def sizing(chunks: int, unit: Units) -> Sizing:
    """What one site of so many chunks needs; several sites add up."""
    int8, bbq = vector_bytes(unit.dims)
    copies = 1 + REPLICAS
    index = chunks * unit.index_bytes
    documents = chunks * (1 + 1 / PAGE)
    cache = chunks * int8 * copies
    largest = chunks * max(unit.changes_bytes, unit.chunks_bytes, unit.embeddings_bytes)
    return Sizing(
        vectors_int8=chunks * int8,
        vectors_bbq=chunks * bbq,
        cache=cache,
        nodes=max(copies, ceil(cache / NODE_CACHE)),
        index=index,
        shards=max(ceil(index / SHARD_BYTES), ceil(documents / SHARD_DOCUMENTS)),
        disk=index * copies * INDEXES,
        changes=chunks * unit.changes_bytes * TOPIC_COPIES,
        chunk_topic=chunks * unit.chunks_bytes * TOPIC_COPIES,
        embeddings=chunks * unit.embeddings_bytes * TOPIC_COPIES,
        partitions=max(DEFAULT_PARTITIONS, ceil(largest / PARTITION_BYTES)),
        rebuild=chunks / unit.rebuild_rate,
        audit=chunks / unit.audit_rate,
        audit_disk=chunks * AUDIT_ROW,
    )


def workers_for_all(chunks: int, rate: float) -> int:
    """Embed workers of `rate` chunks a second that embed everything within a day; at least as many partitions."""
    return ceil(chunks / (rate * DAY))


def workers_for_saves(saves: float, rate: float) -> int:
    """Embed workers of `rate` chunks a second for so many one-sentence edits a second; at least as many partitions."""
    return ceil(saves * EDIT_EMBEDDINGS / (rate * BUSY))


Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # title, columns, lines


def tables(chunks: Sequence[int], measured: Sequence[Units]) -> Iterator[Table]:
    """One table per model, and one for embed workers."""
    for unit in measured:
        found = [sizing(count, unit) for count in chunks]
        lines = [(about, *(say(getattr(one, field)) for one in found)) for about, field, say in FIGURES]
        yield f"{unit.dims} dimensions", ("", *(f"{count:,} chunks" for count in chunks)), lines
    columns = ("chunks/s of one", *(f"{count:,} in a day" for count in chunks), *(f"{n} edits/s" for n in SAVES))
    lines = [
        (
            f"{rate:,g}{' (measured)' if rate == LITE_RATE else ''}",
            *(f"{workers_for_all(count, rate):,}" for count in chunks),
            *(f"{workers_for_saves(saves, rate):,}" for saves in SAVES),
        )
        for rate in RATES
    ]
    yield "Embed workers", columns, lines


def markdown(chunks: Sequence[int] = CHUNKS, measured: Sequence[Units] = MEASURED) -> str:
    """The tables as docs/reference/scale.md has them."""
    return "\n".join(
        f"### {title}\n\n" + "\n".join([_row(columns), _row(["---"] * len(columns)), *map(_row, lines)]) + "\n"
        for title, columns, lines in tables(chunks, measured)
    )


def main(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes.")] = ",".join(map(str, CHUNKS)),
    dims: Annotated[str, typer.Option(help="Comma-separated lengths of vectors, as measured.")] = "384,1024",
    as_markdown: Annotated[bool, typer.Option("--markdown", help="As in docs/reference/scale.md.")] = False,
) -> None:
    """What a site of any size needs: memory, disk, shards, partitions, workers, hours. Computed, nothing is run."""
    wanted = [unit for unit in MEASURED if unit.dims in numbers(dims)]
    if as_markdown:
        print(markdown(numbers(chunks), wanted), end="")
        return
    for title, columns, lines in tables(numbers(chunks), wanted):
        report(f"sizing-{title.lower().replace(' ', '-')}", title, columns, lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bytes(count: float) -> str:
    """Powers of ten, two digits."""
    return _in_units(count, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")))


def _time(seconds: float) -> str:
    return _in_units(seconds, ((DAY, "days"), (3600, "h"), (60, "min"), (1, "s")))


def _in_units(value: float, units: Sequence[tuple[float, str]]) -> str:
    size, name = next((unit for unit in units if value >= unit[0]), units[-1])
    return f"{float(f'{value / size:.2g}'):,g} {name}"


def _count(value: float) -> str:
    return f"{value:,}"


FIGURES: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("vectors and links in memory, int8_hnsw", "vectors_int8", _bytes),
    ("... bbq_hnsw, for comparison", "vectors_bbq", _bytes),
    (f"page cache for all copies ({REPLICAS} replica)", "cache", _bytes),
    (f"data nodes with {NODE_CACHE / GB:g} GB of page cache", "nodes", _count),
    ("index on disk, one copy", "index", _bytes),
    ("primary shards", "shards", _count),
    (f"disk for all copies while a rebuild runs ({INDEXES} indexes)", "disk", _bytes),
    (f"cms.changes on disk, {TOPIC_COPIES} copies", "changes", _bytes),
    (f"ingest.chunks, {TOPIC_COPIES} copies", "chunk_topic", _bytes),
    (f"ingest.embeddings, {TOPIC_COPIES} copies", "embeddings", _bytes),
    ("partitions of each", "partitions", _count),
    ("rebuild from embeddings, its one process", "rebuild", _time),
    ("audit, its one process", "audit", _time),
    ("temporary file of the audit", "audit_disk", _bytes),
)
