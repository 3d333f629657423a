"""Places of a site's records in a topic: what stores them, and which spans of a partition to read to get some of them.

    own records   x x   x                         x        x x
    runs          ───   ─                         ─        ───
    spans         ───────                         ─        ───    small gaps are read, too

The arithmetic is pure: offsets in, offsets out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

Run = tuple[int, int]  # the first and the last offset of consecutive records
Span = tuple[int, int]  # from an offset up to, not including, another

# A span of its own costs a round trip, in which a broker can send some 32 records of 3 kB.
SEEK = 32  # records


def runs_of(offsets: Iterable[int]) -> list[Run]:
    """Offsets in ascending order, as runs."""
    runs: list[Run] = []
    for offset in offsets:
        if runs and offset <= runs[-1][1] + 1:
            runs[-1] = runs[-1][0], max(offset, runs[-1][1])
        else:
            runs.append((offset, offset))
    return runs


def union(runs: Iterable[Run]) -> list[Run]:
    """Runs in ascending order, none touching another."""
    found: list[Run] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def within(runs: Iterable[Run], start: int, stop: int) -> list[Run]:
    """The parts of the runs from `start` up to, not including, `stop`."""
    return [(max(first, start), min(last, stop - 1)) for first, last in runs if last >= start and first < stop]


def count(runs: Iterable[Run]) -> int:
    """How many offsets the runs have."""
    return sum(last - first + 1 for first, last in runs)


def holds(runs: Sequence[Run], offset: int) -> bool:
    """Whether one of these runs, as `union` gives them, has the offset."""
    at = bisect_right(runs, offset, key=lambda run: run[0])
    return at > 0 and offset <= runs[at - 1][1]


def spans_for(runs: Sequence[Run]) -> list[Span]:
    """The spans to read for these runs, as `union` gives them.

    The smallest gaps are included as long as that at most doubles the records to read. If one span over all runs is
    still faster, it is used instead.
    """
    if not runs:
        return []
    slack = count(runs)
    gaps = sorted((after[0] - before[1] - 1, at) for at, (before, after) in enumerate(pairwise(runs)))
    bridged = set()
    for gap, at in gaps:
        slack -= gap
        if slack < 0:
            break
        bridged.add(at)
    spans: list[Span] = []
    for at, (first, last) in enumerate(runs):
        if at - 1 in bridged:
            spans[-1] = spans[-1][0], last + 1
        else:
            spans.append((first, last + 1))
    width = runs[-1][1] + 1 - runs[0][0]
    return [(runs[0][0], runs[-1][1] + 1)] if len(spans) * SEEK >= width else spans


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
