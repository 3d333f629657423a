"""Which dead letters are open: reads the dead letter topics once, then continues at each look.

```
 look ─▶ ends of the topics ─▶ records since the last look: letter ─▶ open      mark ─▶ settled
```
It keeps a place and a kind per open letter in memory, never a message.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from pipelines.operate.dead_letters.view import page_of_key
from pipelines.runtime.bus import BrokerView, Bus
from pipelines.runtime.dead_letters import DeadLetter, Mark, entry
from pipelines.runtime.record import Lane, Record
from schemas.letters import UNREADABLE, OpenLetterCount
from schemas.topics import TOPICS, Topic, dead_letter_topic

BURYING: tuple[Topic, ...] = tuple(topic for topic in TOPICS if topic.dead_letters)


class LetterKind(NamedTuple):
    """The kind of an open letter."""

    stage: str | None
    code: str
    parked: bool = False
    site: str | None = None  # these two of parked letters only
    lane: Lane = "save"


@dataclass
class _Partition:
    """One partition of a dead letter topic, up to `next`."""

    next: int = 0
    open: dict[int, LetterKind] = field(default_factory=dict)  # by offset, ascending


class OpenLetters:
    """One per process, shared by all its users; close it last."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._stack = AsyncExitStack()
        self._broker: BrokerView | None = None
        self._lock = asyncio.Lock()
        self._known: dict[Topic, dict[int, _Partition]] = {topic: {} for topic in BURYING}
        self._kinds: dict[LetterKind, LetterKind] = {}  # one tuple per kind, however many letters are of it

    async def aclose(self) -> None:
        await self._stack.aclose()

    async def look(self, topics: Sequence[Topic] = BURYING) -> None:
        """Read the records since the last look. After a cancellation the next call continues there.

        Raises: Retryable: the broker does not answer.
        """
        async with self._lock:
            letters = {topic: dead_letter_topic(topic) for topic in topics}
            client = await self._connected()
            spans = await client.spans(letters.values())
            for topic, buried in letters.items():
                await self._follow(topic, buried, spans.get(buried, {}))

    def is_open(self, topic: Topic, partition: int, offset: int) -> bool:
        """Whether the letter was open at the last look."""
        part = self._known[topic].get(partition)
        return part is not None and offset in part.open

    def stretch(self, topic: Topic) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """The range from the first open letter to the last (since, until), by partition with open letters."""
        parts = {number: part.open for number, part in self._known[topic].items() if part.open}
        return (
            {number: next(iter(offsets)) for number, offsets in parts.items()},
            {number: next(reversed(offsets)) + 1 for number, offsets in parts.items()},
        )

    def counts(self) -> list[OpenLetterCount]:
        """Open letters by topic, stage and code, as of the last look."""
        return [
            OpenLetterCount(topic=topic.name, stage=stage, code=code, count=count, parked=parked, site=site)
            for topic, parts in self._known.items()
            for (stage, code, parked, site), count in Counter(
                kind[:4] for part in parts.values() for kind in part.open.values()
            ).items()
        ]

    def parked(self, topic: Topic, stage: str, lane: Lane | None) -> list[tuple[str, tuple[int, int]]]:
        """Site and place (partition, offset) of a stage's parked letters in a lane, the oldest of a partition first."""
        return [
            (kind.site, (number, offset))
            for number, part in self._known[topic].items()
            for offset, kind in part.open.items()
            if kind.parked and kind.site is not None and kind.stage == stage and lane in (None, kind.lane)
        ]

    def partitions(self, topic: Topic) -> frozenset[int]:
        """The partitions of the topic's dead letters, as of the last look."""
        return frozenset(self._known[topic])

    async def _connected(self) -> BrokerView:
        if self._broker is None:
            self._broker = await self._stack.enter_async_context(self._bus.view())
        return self._broker

    async def _follow(self, topic: Topic, buried: Topic, spans: Mapping[int, tuple[int, int]]) -> None:
        parts = self._known[topic]
        for number in set(parts) - set(spans):
            del parts[number]  # the topic was deleted
        for number, (begin, end) in spans.items():
            part = parts.setdefault(number, _Partition())
            if end < part.next:  # deleted and created again
                part = parts[number] = _Partition()
            for offset in [offset for offset in part.open if offset < begin]:
                del part.open[offset]  # past its retention
        until = {number: end for number, (_, end) in spans.items() if parts[number].next < end}
        if not until:
            return
        since = {number: parts[number].next for number in until}
        async with self._bus.scan(buried) as scan:
            async for batch in scan.read(since=since, until=until):
                for record in batch:
                    self._take(parts[record.partition], record)
        for number, end in until.items():
            parts[number].next = end

    def _take(self, part: _Partition, record: Record) -> None:
        found = entry(record)
        if isinstance(found, Mark):
            part.open.pop(found.settles, None)
        else:
            kind = _kind(record, found) if isinstance(found, DeadLetter) else LetterKind(None, UNREADABLE)
            part.open[record.offset] = self._kinds.setdefault(kind, kind)
        part.next = record.offset + 1


def _kind(record: Record, letter: DeadLetter) -> LetterKind:
    if not letter.parked:
        return LetterKind(letter.stage, letter.code)
    address = page_of_key(record.key)
    return LetterKind(letter.stage, letter.code, True, address.site if address else None, record.lane)
