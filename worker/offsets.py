"""Which offset may be committed: the lowest fetched one that is not finished. No gap arithmetic.

Counting what was fetched, instead of assuming that offsets have no holes, makes compaction, transaction
markers, a truncated head and a new group the same case; and a record that gets lost between the fetch and
the handler blocks the commit instead of being skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

Partition = TypeVar("Partition", bound=Hashable)


class OffsetBook(Generic[Partition]):
    """Fetched, finished and committed offsets per partition."""

    def __init__(self) -> None:
        self._fetched: dict[Partition, deque[int]] = {}
        self._finished: dict[Partition, set[int]] = {}
        self._next: dict[Partition, int] = {}
        self._committed: dict[Partition, int] = {}
        self._read: dict[Partition, int] = {}  # behind the last one fetched
        self._early: dict[Partition, set[int]] = {}

    def fetched(self, partition: Partition, offsets: Iterable[int]) -> set[int]:
        """Note offsets in the order they came from the broker; returns those that are at work already, or finished."""
        early: set[int] = set()
        queue = self._fetched.setdefault(partition, deque())
        for offset in offsets:
            if queue and offset <= queue[-1]:  # the position went back: all that follows is fetched again
                self.forget([partition])
                early.clear()
                queue = self._fetched.setdefault(partition, deque())
            self._gone(partition, self._read.get(partition, offset), offset)
            queue.append(offset)
            self._read[partition] = offset + 1
            if self.is_early(partition, offset):
                early.add(offset)
        self._advance(partition)
        return early

    def read_to(self, partition: Partition) -> int | None:
        """Where the next fetch begins; None: nothing was fetched of it yet."""
        return self._read.get(partition)

    def early(self, partition: Partition, offset: int) -> None:
        """It is at work before it is fetched (shares.py); `fetched` says so then."""
        self._early.setdefault(partition, set()).add(offset)

    def is_early(self, partition: Partition, offset: int) -> bool:
        """Whether it is noted so, and not committed yet."""
        return offset in self._early.get(partition, ())

    def finished(self, partition: Partition, offset: int) -> None:
        """Its effects are there; offsets that are not awaited (partition lost meanwhile) are ignored."""
        queue = self._fetched.get(partition)
        if not self.is_early(partition, offset) and (not queue or offset < queue[0]):
            return
        self._finished.setdefault(partition, set()).add(offset)
        self._advance(partition)

    def _gone(self, partition: Partition, start: int, end: int) -> None:
        """What was early and is compacted away is not awaited."""
        if start < end and (early := self._early.get(partition)):
            gone = {offset for offset in early if start <= offset < end}
            early -= gone
            self._finished.get(partition, set()).difference_update(gone)

    def _advance(self, partition: Partition) -> None:
        queue, finished = self._fetched.get(partition), self._finished.get(partition, set())
        early = self._early.get(partition, set())
        while queue and queue[0] in finished:
            finished.discard(queue[0])
            early.discard(queue[0])
            self._next[partition] = queue.popleft() + 1

    def committable(self, partition: Partition) -> int | None:
        """The offset to commit (where a successor would begin), None when that is committed already."""
        offset = self._next.get(partition)
        if offset is None or offset == self._committed.get(partition):
            return None
        return offset

    def committed(self, partition: Partition, offset: int) -> None:
        """The broker has it."""
        self._committed[partition] = offset

    def partitions(self) -> tuple[Partition, ...]:
        return tuple(self._fetched)

    def forget(self, partitions: Iterable[Partition]) -> None:
        """Not ours any more, or read again from an earlier position."""
        for partition in partitions:
            books: tuple[dict[Partition, Any], ...] = (
                self._fetched,
                self._finished,
                self._next,
                self._committed,
                self._read,
                self._early,
            )
            for book in books:
                book.pop(partition, None)
