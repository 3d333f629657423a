"""Decides which offset may be committed: the lowest fetched one that is not finished.

The book counts fetched offsets and does not assume that offsets have no holes. So compaction, transaction markers, a
truncated head and a new group are one case, and a record that gets lost between the fetch and the handler blocks the
commit instead of being skipped.
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
        """Note offsets in the broker's order; returns those that are at work already, or finished."""
        early: set[int] = set()
        queue = self._fetched.setdefault(partition, deque())
        for offset in offsets:
            if queue and offset <= queue[-1]:  # the position went back: all later records are fetched again
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
        """The offset of the next fetch; None before the first one."""
        return self._read.get(partition)

    def early(self, partition: Partition, offset: int) -> None:
        """Note a record that starts before it is fetched (shares.py); `fetched` returns it then."""
        self._early.setdefault(partition, set()).add(offset)

    def is_early(self, partition: Partition, offset: int) -> bool:
        """Whether it was noted as early, and is not committed yet."""
        return offset in self._early.get(partition, ())

    def finished(self, partition: Partition, offset: int) -> None:
        """Its effects are durable; unknown offsets (of a revoked partition) are ignored."""
        queue = self._fetched.get(partition)
        if not self.is_early(partition, offset) and (not queue or offset < queue[0]):
            return
        self._finished.setdefault(partition, set()).add(offset)
        self._advance(partition)

    def _gone(self, partition: Partition, start: int, end: int) -> None:
        """Forget early offsets that were compacted away."""
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
        """The offset to commit, at which a successor would begin; None when it is committed already."""
        offset = self._next.get(partition)
        if offset is None or offset == self._committed.get(partition):
            return None
        return offset

    def committed(self, partition: Partition, offset: int) -> None:
        """The broker has confirmed this offset."""
        self._committed[partition] = offset

    def partitions(self) -> tuple[Partition, ...]:
        return tuple(self._fetched)

    def forget(self, partitions: Iterable[Partition]) -> None:
        """Drop partitions that were revoked, or are read again from an earlier position."""
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
