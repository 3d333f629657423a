"""The store of places, as a site's log uses it (adapters.elastic.places.ElasticPlaces)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.operate.places.spans import Run


@dataclass(frozen=True)
class Covered:
    """How far the places of all sites are known: by partition the first unknown offset."""

    ends: Mapping[int, int]
    token: tuple[int, int] | None = None  # the version of this note


@dataclass(frozen=True)
class NotedRange:
    """A site's places in one partition, from `start` up to, not including, `end`, as of the time of the note.

    Compaction may have removed some of the records since; it adds none.
    """

    site: str
    partition: int
    start: int
    end: int
    runs: Sequence[Run]


class Places(Protocol):
    """Stores the offsets of each site's records in each topic. All methods raise Retryable.

    `topic` is the broker's id of a topic, not its name: it changes when the topic is created anew.
    """

    async def covered(self, topic: str) -> Covered:
        """How far the topic is covered; an unknown topic is not covered at all."""

    def of_site(self, topic: str, site: str, partition: int) -> AsyncGenerator[NotedRange, None]:
        """The site's stretches, ordered by start. They may overlap, and extend beyond the covered range."""

    async def add(
        self, topic: str, stretches: Sequence[NotedRange], covered: Covered, ends: Mapping[int, int]
    ) -> Covered | None:
        """Store the places from `covered` up to `ends`, then the new covered range; returns that range.

        None if another process has written meanwhile: the notes are right, but this call covers nothing.
        """

    async def put(self, topic: str, stretch: NotedRange) -> None:
        """Replace the stretch with the same start, unless that one is longer by now."""

    async def forget(self, topic: str) -> None:
        """Drop the covered range of the topic."""
