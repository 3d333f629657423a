"""The map of all stages: the topics that each reads, and its lanes. Consumer groups follow from it.

cms.changes ─▶ chunk ─▶ ingest.chunks ─▶ embed ─▶ ingest.embeddings ─▶ index      in both lanes
rebuild.orders ─▶ rebuild      in the bulk lane
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
    ORDERS,
    OUTCOMES,
    RECEIPTS,
    REPHRASED,
    REQUESTS,
    RETRIEVED,
    VERDICTS,
    Topic,
)


class StageGroup(NamedTuple):
    """A stage in a lane: one consumer group."""

    stage: str
    lane: Lane | None = None

    def name(self, prefix: str) -> str:
        """The name of the consumer group; only that of the bulk lane has a suffix."""
        return f"{prefix}pagewire-{self.stage}" + ("-bulk" if self.lane == "bulk" else "")


@dataclass(frozen=True)
class StageEntry:
    """One line of the map."""

    name: str
    reads: tuple[Topic, ...]  # the main topic first
    lanes: tuple[Lane, ...] = ()  # one consumer group for each; none: one for all

    @property
    def groups(self) -> tuple[StageGroup, ...]:
        return tuple(StageGroup(self.name, lane) for lane in self.lanes) or (StageGroup(self.name),)


INGEST = (
    StageEntry("chunk", (CHANGES,), lanes=LANES),
    StageEntry("embed", (CHUNKS,), lanes=LANES),
    StageEntry("index", (EMBEDDINGS, RECEIPTS), lanes=LANES),
)
# Not between a save and its receipt: it fills indexes that are not live yet.
REBUILD = StageEntry("rebuild", (ORDERS,), lanes=("bulk",))
QUERY = (
    StageEntry("rephrase", (REQUESTS,)),
    StageEntry("retrieve", (REPHRASED,)),
    StageEntry("answer", (RETRIEVED,)),
    StageEntry("judge", (OUTCOMES,)),
    StageEntry("log", (OUTCOMES, VERDICTS)),
)
STAGES: dict[str, StageEntry] = {entry.name: entry for entry in (*INGEST, REBUILD, *QUERY)}


def all_groups() -> Iterator[tuple[StageGroup, StageEntry]]:
    """Every consumer group, upstream first, the lane of saves before the bulk lane."""
    for lane in LANES:
        yield from ((group, entry) for entry in (*INGEST, REBUILD) for group in entry.groups if group.lane == lane)
    yield from ((group, entry) for entry in QUERY for group in entry.groups)
