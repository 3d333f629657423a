"""What was read back from a system at rest, in the checker's own words (never in the product's types)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.page import FieldName
from tests.faults.storm.history import Order

Address = tuple[FieldName, int]


@dataclass(frozen=True)
class Logged:
    """One record about a page in one topic. `order` None: nothing that can be read as such."""

    topic: str  # without the prefix
    partition: int
    offset: int
    key: str
    at_ms: int
    order: Order | None
    number: int | None = None  # the change's, from the URL of an upsert
    state: str | None = None  # of a receipt
    superseded: bool = False  # a part's marker

    def __str__(self) -> str:
        said = "unreadable" if self.order is None else f"revision {self.order[0]}{' delete' if self.order[1] else ''}"
        more = " ".join(
            filter(None, (self.state, f"#{self.number}" if self.number else "", "marker" if self.superseded else ""))
        )
        return f"{self.topic}[{self.partition}]@{self.offset} {self.key} {said} {more} ts {self.at_ms}".replace(
            "  ", " "
        )


@dataclass(frozen=True)
class ChunkFound:
    """A chunk's document."""

    id: str
    field: FieldName
    ord: int
    revision: int
    text: str
    vector: tuple[float, ...] = ()


@dataclass(frozen=True)
class HeadFound:
    """A page's head record."""

    revision: int
    state: str
    counts: Mapping[FieldName, int]


@dataclass(frozen=True)
class HitFound:
    """What a visitor's search brought up of a page."""

    mode: str
    revision: int
    field: str
    ord: int


@dataclass(frozen=True)
class Letter:
    """A dead letter."""

    topic: str  # the one it was taken from, without the prefix
    partition: int
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    code: str
    place: tuple[int, int]  # partition and offset in the dead letter topic
    page: str | None = None
    order: Order | None = None

    def __str__(self) -> str:
        return f"dead letter of {self.topic} {self.key!r} code {self.code} order {self.order}"


@dataclass
class PageFound:
    """Everything about one page."""

    changes: list[Logged] = field(default_factory=list)  # cms.changes, in the order of the log
    products: list[Logged] = field(default_factory=list)  # ingest.chunks and ingest.embeddings
    receipts: list[Logged] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    head: HeadFound | None = None
    chunks: list[ChunkFound] = field(default_factory=list)
    hits: list[HitFound] = field(default_factory=list)
    receipt: Mapping[str, Any] | None = None  # as the gateway gives it


@dataclass
class ReadBack:
    """Everything."""

    pages: defaultdict[str, PageFound] = field(default_factory=lambda: defaultdict(PageFound))
    letters: list[Letter] = field(default_factory=list)
