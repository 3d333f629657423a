"""Counts that several processes share: each keeps its own and the latest ones of the others.

```
 add(name) ─▶ own counts ─▶ changes() ─▶ a topic ─▶ merge() in all others
                  └────── of(name) = own + the others' ◀──────┘
```
A grow-only counter, kept by process (Shapiro et al., "A comprehensive study of Convergent and Commutative Replicated
Data Types", 2011, 3.1.1): duplicates and any order give the same result. Counts in transit are missing, so several
processes together may exceed a limit for a moment.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from uuid import uuid4

from schemas.worker import Counts

DAY = 86_400  # seconds
KEPT = 1  # periods before and after the current one: clocks differ, and messages take their time


class _Period:
    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        self.unsent: set[str] = set()
        self.others: defaultdict[str, dict[str, int]] = defaultdict(dict)  # process -> name -> count
        self.of_others: Counter[str] = Counter()  # their sum, which every question reads


class SharedCounts:
    """Counts of the current period. One per process and topic.

    Args:
        seconds: of a period; periods begin with 1970 and are UTC's days where these are 86,400.
        now: Unix time; the processes' clocks should agree within a period.
    """

    def __init__(self, seconds: int, now: Callable[[], float] = time.time) -> None:
        self.seconds = seconds
        self._now = now
        self._process = uuid4().hex
        self._periods: defaultdict[int, _Period] = defaultdict(_Period)

    def of(self, name: str) -> int:
        """This period's count, as far as this process knows it."""
        period = self._current()
        return period.own[name] + period.of_others[name]

    def add(self, name: str, count: int = 1) -> None:
        period = self._current()
        period.own[name] += count
        period.unsent.add(name)

    def left(self) -> float:
        """Seconds until the period ends."""
        now = self._now()
        return (now // self.seconds + 1) * self.seconds - now

    def began(self) -> float:
        """Unix time at which the period began."""
        return self._now() // self.seconds * self.seconds

    def changes(self) -> list[Counts]:
        """Changes since the last call, for the other processes. Give unsent ones back by `unsent`."""
        changed = []
        for number, period in self._periods.items():
            if period.unsent:
                counts = {name: period.own[name] for name in period.unsent}
                changed.append(Counts(process=self._process, period=number, seconds=self.seconds, counts=counts))
                period.unsent = set()
        return changed

    def unsent(self, counts: Counts) -> None:
        if counts.period in self._periods:
            self._periods[counts.period].unsent |= counts.counts.keys()

    def merge(self, counts: Counts) -> None:
        """Merge another process's counts. Our own, and those of periods long past or ahead, are ignored."""
        self._current()
        around = abs(counts.period - self._number()) <= KEPT
        if counts.process == self._process or counts.seconds != self.seconds or not around:
            return
        period = self._periods[counts.period]
        known = period.others[counts.process]
        for name, count in counts.counts.items():
            if (more := count - known.get(name, 0)) > 0:
                known[name] = count
                period.of_others[name] += more

    def _number(self) -> int:
        return int(self._now() // self.seconds)

    def _current(self) -> _Period:
        number = self._number()
        if number not in self._periods:
            for old in [each for each in self._periods if abs(each - number) > KEPT]:
                del self._periods[old]
        return self._periods[number]
