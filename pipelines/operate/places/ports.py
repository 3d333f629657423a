"""What a site's log needs of who keeps the places (adapters.elastic.places.ElasticPlaces)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.operate.places.spans import Run


@dataclass(frozen=True)
class Covered:
    """Up to where the places of all sites are known: by partition the first offset that is not."""

    ends: Mapping[int, int]
    token: tuple[int, int] | None = None  # which write of this note was read


@dataclass(frozen=True)
class Stretch:
    """A site's places in one partition, from `start` up to, not including, `end`: all there were when they were noted.

    Compaction may have taken some of the records since; none is added.
    """

    site: str
    partition: int
    start: int
    end: int
    runs: Sequence[Run]


class Places(Protocol):
    """Where the records of each site stand, of each topic. All raise Retryable.

    `topic` is the broker's id of a topic, not its name: a topic that was made anew is another one.
    """

    async def covered(self, topic: str) -> Covered:
        """Nothing is covered of a topic of which nothing is known."""
        ...

    def of_site(self, topic: str, site: str, partition: int) -> AsyncGenerator[Stretch, None]:
        """In the order of where they start. They may overlap, and reach beyond what is covered."""
        ...

    async def add(
        self, topic: str, stretches: Sequence[Stretch], covered: Covered, ends: Mapping[int, int]
    ) -> Covered | None:
        """Note the places from `covered` on up to `ends`, then that they are known; returns what is covered now.

        None when somebody else has noted something meanwhile: nothing is wrong, and this call covers nothing.
        """
        ...

    async def put(self, topic: str, stretch: Stretch) -> None:
        """In place of the one that starts there, unless that reaches further by now."""
        ...

    async def forget(self, topic: str) -> None:
        """Nothing is covered any more."""
        ...
