"""The one map of stages: which topics each reads, in which lanes. Consumer groups follow from it.

cms.changes ─▶ chunk ─▶ ingest.chunks ─▶ embed ─▶ ingest.embeddings ─▶ index      in both lanes
query.requests ─▶ rephrase ─▶ query.rephrased ─▶ retrieve ─▶ query.retrieved ─▶ answer ─▶ query.outcomes ─▶ log
query.outcomes ─▶ judge ─▶ query.verdicts ─▶ log
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.runtime.record import LANES, Lane
from schemas.topics import (
    CHANGES,
    CHUNKS,
    EMBEDDINGS,
    OUTCOMES,
    RECEIPTS,
    REPHRASED,
    REQUESTS,
    RETRIEVED,
    VERDICTS,
    Topic,
)


class StageGroup(NamedTuple):
    """A stage in a lane: what one consumer group does."""

    stage: str
    lane: Lane | None = None

    def name(self, prefix: str) -> str:
        """The consumer group; that of saves has the stage's name alone."""
        return f"{prefix}pagewire-{self.stage}" + ("-bulk" if self.lane == "bulk" else "")


@dataclass(frozen=True)
class StageEntry:
    """One line of the map."""

    name: str
    reads: tuple[Topic, ...]  # the first is its own; the others are looked after on the way
    laned: bool = False  # once for saves and once for bulk work

    @property
    def groups(self) -> tuple[StageGroup, ...]:
        return tuple(StageGroup(self.name, lane) for lane in LANES) if self.laned else (StageGroup(self.name),)


INGEST = (
    StageEntry("chunk", (CHANGES,), laned=True),
    StageEntry("embed", (CHUNKS,), laned=True),
    StageEntry("index", (EMBEDDINGS, RECEIPTS), laned=True),
)
QUERY = (
    StageEntry("rephrase", (REQUESTS,)),
    StageEntry("retrieve", (REPHRASED,)),
    StageEntry("answer", (RETRIEVED,)),
    StageEntry("judge", (OUTCOMES,)),
    StageEntry("log", (OUTCOMES, VERDICTS)),
)
STAGES: dict[str, StageEntry] = {entry.name: entry for entry in (*INGEST, *QUERY)}


def all_groups() -> Iterator[tuple[StageGroup, StageEntry]]:
    """Every consumer group, upstream first, the saves' of all stages before the bulk lane's."""
    for lane in LANES:
        yield from ((group, entry) for entry in INGEST for group in entry.groups if group.lane == lane)
    yield from ((group, entry) for entry in QUERY for group in entry.groups)
