"""Knows which sites' records wait in a partition's log behind the fetched ones, and which site is next.

```
 what was fetched │ town town town town ... town │ museum museum │ town │ ...     the log
                  └─ runs, by site: town 200-99,999 and 100,002, museum 100,000-100,001
```
A run is two offsets, however long it is: an uninterrupted import of a million pages takes no more memory than a page.
Other lanes' records in between do not end a run.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Partition = TypeVar("Partition", bound=Hashable)

# Early records of a site in a partition, at most: a crash repeats them.
EARLY = 1_000
EARLY_OF_ALL = 20 * EARLY  # ... and of all together, some 4 MiB
RUNS = 50_000  # of all partitions together, some 10 MiB; records behind them wait their turn


@dataclass
class _Run:
    next: int  # the first offset that is not at work
    last: int


@dataclass(frozen=True)
class OffsetRange:
    """Offsets of the next records of a site: from `start` up to, not including, `end`."""

    site: str
    start: int
    end: int


class Backlog(Generic[Partition]):
    """The runs by partition and site. It reads no log itself."""

    def __init__(self) -> None:
        self._known: dict[Partition, int] = {}  # the offset up to which the log was scanned
        self._runs: defaultdict[Partition, dict[str, deque[_Run]]] = defaultdict(dict)
        self._newest: dict[Partition, str] = {}  # the site of the last run
        self._taken: defaultdict[Partition, dict[str, deque[int]]] = defaultdict(dict)
        self._served: dict[str, int] = {}  # the last turn of each site
        self._turns = 0
        self._count = 0

    @property
    def full(self) -> bool:
        return self._count >= RUNS

    def scan_from(self, partition: Partition, position: int) -> int:
        """The offset to scan the log from, now that all records before `position` are fetched."""
        if position < self._known.get(partition, position):
            self._pass(partition, position)
        return max(position, self._known.get(partition, 0))

    def note(self, partition: Partition, offset: int, site: str) -> None:
        """Add a record of our lane; call it in the order of the log."""
        self._known[partition] = offset + 1
        runs = self._runs[partition].setdefault(site, deque())
        if runs and self._newest.get(partition) == site:
            runs[-1].last = offset
            return
        self._newest[partition] = site
        runs.append(_Run(offset, offset))
        self._count += 1

    def scanned(self, partition: Partition, until: int) -> None:
        """All records of our lane before `until` were noted."""
        self._known[partition] = max(until, self._known.get(partition, 0))

    def turn(self, partition: Partition, served: Collection[str], room: int) -> OffsetRange | None:
        """The next records of the site that has waited longest, at most its part of `room`; None: no site waits.

        Args:
            served: sites that need no turn, because the fetched records are theirs.
            room: records that may start.
        """
        runs, taken = self._runs[partition], self._taken[partition]
        waiting = [site for site in runs if site not in served and len(taken.get(site, ())) < EARLY]
        if not waiting or room <= 0 or sum(map(len, taken.values())) >= EARLY_OF_ALL:
            return None
        site = min(waiting, key=lambda site: (self._served.get(site, 0), runs[site][0].next))
        run = runs[site][0]
        share = max(1, room // len(waiting))
        return OffsetRange(site, run.next, min(run.last + 1, run.next + share))

    def took(self, partition: Partition, stretch: OffsetRange, offsets: Collection[int]) -> None:
        """These offsets of the stretch are at work; its other records belong to other sites."""
        self._turns += 1
        self._served[stretch.site] = self._turns
        self._taken[partition].setdefault(stretch.site, deque()).extend(offsets)
        self._cut(partition, stretch.site, stretch.end)

    def forget(self, partition: Partition) -> None:
        """Drop a partition that was revoked, is read again from before, or has no waiting records."""
        self._count -= sum(map(len, self._runs.pop(partition, {}).values()))
        for known in (self._known, self._newest, self._taken):
            known.pop(partition, None)
        if not self._known:
            self._served.clear()

    def _pass(self, partition: Partition, position: int) -> None:
        for site in list(self._runs[partition]):
            self._cut(partition, site, position)
        taken = self._taken[partition]
        for site in list(taken):
            while taken[site] and taken[site][0] < position:
                taken[site].popleft()
            if not taken[site]:
                del taken[site]

    def _cut(self, partition: Partition, site: str, start: int) -> None:
        """Drop the offsets before `start`."""
        runs = self._runs[partition].get(site, deque())
        while runs and runs[0].last < start:
            runs.popleft()
            self._count -= 1
        if runs:
            runs[0].next = max(runs[0].next, start)
            return
        self._runs[partition].pop(site, None)
        if self._newest.get(partition) == site:
            del self._newest[partition]
