"""Dead letters for operators: list, show, edit, redrive, drop.

```
                     ┌ list, show: scans, one batch in memory at a time
 <topic>.dlq ─▶ Letters ─ redrive, edit ─▶ <topic>, the message's old partition ─ confirmed ─▶ mark in <topic>.dlq
                     └ drop ──────────────────────────────────────────────────────────────▶ mark in <topic>.dlq
```
The topic is a log: a letter never changes, and a mark behind it holds its outcome. A crash between the message and its
mark leaves the letter open; redriving it once more is harmless, because every stage accepts a message twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from heapq import heappush, heappushpop

from more_itertools import chunked

from pipelines.ingest.ports import KnownPages
from pipelines.operate.dead_letters.open_letters import BURYING, OpenLetters
from pipelines.operate.dead_letters.view import checked, compare, detail, letter_id, summary
from pipelines.runtime.bus import Bus, LogReader, Producer
from pipelines.runtime.dead_letters import DeadLetter, Mark, UnreadableLetter, entry, mark_headers, redrive_headers
from pipelines.runtime.errors import Permanent
from pipelines.runtime.record import Lane, Record, in_lane
from schemas.letters import (
    Action,
    DeadLetterCounts,
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterList,
    DeadLetterSummary,
    OpenLetterCount,
)
from schemas.topics import Topic, dead_letter_topic

DEFAULT_LIMIT = 100  # letters of a list
AT_ONCE = 50  # letters handled side by side


class UnknownLetter(Permanent):
    """There is no such dead letter."""

    code = "unknown-letter"


class LetterHandled(Permanent):
    """The letter was redriven, edited or dropped before."""

    code = "letter-handled"


class LetterUnreadable(Permanent):
    """The letter does not name its origin: it can only be dropped."""

    code = "letter-unreadable"


@dataclass(frozen=True)
class _FoundLetter:
    """A letter and its place."""

    topic: Topic  # the one it came from
    record: Record
    entry: DeadLetter | UnreadableLetter
    mark: Mark | None = None

    @property
    def summary(self) -> DeadLetterSummary:
        return summary(self.topic, self.record, self.entry, self.mark)


_Batch = Sequence[_FoundLetter | tuple[str, Mark]]  # letters, and marks with the id of the letter they settle


class Letters:
    """One per process. Methods raise Retryable when the broker does not answer."""

    def __init__(
        self, bus: Bus, producer: Producer, pages: KnownPages, changes: LogReader, letters: OpenLetters
    ) -> None:
        """`pages` and `changes` (cms.changes) give the last good revision; `letters` belongs to the caller."""
        self._bus = bus
        self._producer = producer
        self._pages = pages
        self._changes = changes
        self._letters = letters
        self._partitions: dict[Topic, set[int]] = {}
        self._describing = asyncio.Lock()

    async def list(
        self, filter: DeadLetterFilter, limit: int = DEFAULT_LIMIT, *, handled: bool = False
    ) -> DeadLetterList:
        """The newest open letters that match the filter; `handled`: also settled ones."""
        newest = _Newest(limit)
        async with aclosing(self._scan(filter, handled=handled)) as batches:
            async for batch in batches:
                for found in batch:
                    if isinstance(found, _FoundLetter):
                        newest.add(found.summary)
                    else:
                        newest.settle(*found)
        return DeadLetterList(total=newest.total, letters=newest.letters())

    async def show(self, id: str, *, full: bool = False) -> DeadLetterDetail:
        """A letter with its headers, its value, and the effect of its change on the page.

        Args:
            full: vectors and undecodable values in full length, for an editor.

        Raises: UnknownLetter.
        """
        found = await self._find(id)
        diff = await compare(found.topic, found.record, self._pages, self._changes)
        return detail(found.topic, found.record, found.entry, found.mark, diff, full=full)

    async def redrive(self, id: str, value: bytes | None = None) -> DeadLetterSummary:
        """Send the message again to the topic where it failed; `value`: with this JSON instead of its own.

        Raises:
            UnknownLetter, LetterHandled, LetterUnreadable.
            BadValue: names the fields; nothing was sent.
        """
        found = await self._find_open(id)
        return (await self._redrive(found, value)).summary

    async def drop(self, id: str) -> DeadLetterSummary:
        """Settle the letter without sending its message. Raises: see `redrive`."""
        return (await self._settle(await self._find_open(id), "dropped")).summary

    def redrive_all(self, filter: DeadLetterFilter) -> AsyncGenerator[DeadLetterCounts, None]:
        """Redrive the open letters that match the filter; yields the count so far after every few."""
        return self._handle_all(filter, partial(self._redrive, lane="bulk"))

    def drop_all(self, filter: DeadLetterFilter) -> AsyncGenerator[DeadLetterCounts, None]:
        """As `redrive_all`."""
        return self._handle_all(filter, lambda found: self._settle(found, "dropped"))

    async def open_counts(self) -> Sequence[OpenLetterCount]:
        """Open letters by topic, stage and code."""
        await self._letters.look()
        return self._letters.counts()

    async def _handle_all(
        self, filter: DeadLetterFilter, handle: Callable[[_FoundLetter], Awaitable[object]]
    ) -> AsyncGenerator[DeadLetterCounts, None]:
        done = refused = 0
        async with aclosing(self._scan(filter, handled=False)) as batches:
            async for batch in batches:
                letters = [found for found in batch if isinstance(found, _FoundLetter)]
                for some in chunked(letters, AT_ONCE):
                    results = await asyncio.gather(*map(handle, some), return_exceptions=True)
                    for error in (r for r in results if isinstance(r, BaseException)):
                        if not isinstance(error, Permanent):
                            raise error
                        refused += 1
                    done += sum(not isinstance(r, BaseException) for r in results)
                    yield DeadLetterCounts(handled=done, refused=refused)

    async def _scan(self, filter: DeadLetterFilter, *, handled: bool) -> AsyncGenerator[_Batch, None]:
        """Letters that match the filter, and all marks, batch by batch."""
        topics = [topic for topic in BURYING if filter.topic in (None, topic.name)]
        await self._letters.look(topics)
        for topic in topics:
            since, until = self._letters.stretch(topic)
            if not (handled or until):
                continue
            async with self._bus.scan(dead_letter_topic(topic)) as scan:
                if handled:
                    since, until = {}, await scan.ends()
                async for batch in scan.read(since=since, until=until):
                    yield tuple(self._fitting(topic, batch, filter, handled))

    def _fitting(
        self, topic: Topic, batch: Iterable[Record], filter: DeadLetterFilter, handled: bool
    ) -> Iterator[_FoundLetter | tuple[str, Mark]]:
        for record in batch:
            if not (handled or self._letters.is_open(topic, record.partition, record.offset)):
                continue
            found = self._read(topic, record)
            if isinstance(found, Mark):
                yield letter_id(topic, record.partition, found.settles), found
            elif filter.fits((letter := _FoundLetter(topic, record, found)).summary):
                yield letter

    def _read(self, topic: Topic, record: Record) -> DeadLetter | Mark | UnreadableLetter:
        found = entry(record)
        if isinstance(found, DeadLetter) and found.topic != self._bus.name(topic):
            return UnreadableLetter(f"its headers say that it came from {found.topic[:200]!r}")
        return found

    async def _find(self, id: str) -> _FoundLetter:
        """The letter and its mark, if it has one, anywhere behind it."""
        topic, partition, offset = parse_letter_id(id)
        letter: _FoundLetter | None = None
        async with self._bus.scan(dead_letter_topic(topic)) as scan:
            until = {partition: (await scan.ends()).get(partition, 0)}
            async for batch in scan.read(since={partition: offset}, until=until):
                for record in batch:
                    found = self._read(topic, record)
                    if isinstance(found, Mark):
                        if letter is not None and found.settles == offset:
                            return replace(letter, mark=found)
                    elif record.offset == offset:
                        letter = _FoundLetter(topic, record, found)
                if letter is None:
                    break
        if letter is None:
            raise UnknownLetter(f"no dead letter {id}: never there, or past its 14 days")
        return letter

    async def _find_open(self, id: str) -> _FoundLetter:
        found = await self._find(id)
        if found.mark is not None:
            raise LetterHandled(f"{id} was {found.mark.action} at {found.mark.at:%Y-%m-%d %H:%M:%S} UTC")
        return found

    async def _redrive(self, found: _FoundLetter, value: bytes | None = None, lane: Lane | None = None) -> _FoundLetter:
        """`lane`: redrives of many letters use the bulk lane, behind editors' saves; None: the message's own."""
        topic, record, letter = found.topic, found.record, found.entry
        if isinstance(letter, UnreadableLetter):
            raise LetterUnreadable(f"{found.summary.id}: {letter.why}; it can only be dropped")
        if not await self._has_partition(topic, letter.partition) or (topic.compacted and record.key is None):
            place = f"partition {letter.partition} of {topic.name} with key {found.summary.key!r}"
            raise LetterUnreadable(f"{found.summary.id}: it cannot have been in {place}; it can only be dropped")
        sent = record.value if value is None else checked(topic, record.key, value)
        # A page's parts are partitioned by the page, so the key alone does not give the partition.
        headers = redrive_headers(record.headers, letter)
        if lane is not None:
            headers = in_lane(headers, lane)
        await self._producer.send_bytes(topic, record.key, sent, headers, partition=letter.partition)
        return await self._settle(found, "redriven" if value is None else "edited")

    async def _settle(self, found: _FoundLetter, action: Action) -> _FoundLetter:
        mark = Mark(found.record.offset, action, datetime.now(UTC))
        await self._producer.send_bytes(
            dead_letter_topic(found.topic),
            found.record.key,
            b"",
            mark_headers(mark),
            partition=found.record.partition,
        )
        return replace(found, mark=mark)

    async def _has_partition(self, topic: Topic, number: int) -> bool:
        async with self._describing:
            if number not in self._partitions.get(topic, ()):  # partitions may have been added since the last look
                async with self._bus.view() as view:
                    self._partitions[topic] = (await view.partitions([topic])).get(topic, set())
            return number in self._partitions[topic]


class _Newest:
    """The newest letters, `limit` at most, and the count of all."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._order: list[tuple[datetime, int, str]] = []  # a heap: the oldest one kept is first
        self._kept: dict[str, DeadLetterSummary] = {}

    def add(self, letter: DeadLetterSummary) -> None:
        self.total += 1
        if self._limit == 0:
            return
        place = (letter.last_failed_at, self.total, letter.id)
        self._kept[letter.id] = letter
        if len(self._order) < self._limit:
            heappush(self._order, place)
        else:
            del self._kept[heappushpop(self._order, place)[2]]

    def settle(self, id: str, mark: Mark) -> None:
        letter = self._kept.get(id)
        if letter is not None and letter.state in ("open", "parked"):
            self._kept[id] = letter.model_copy(update={"state": mark.action, "handled_at": mark.at})

    def letters(self) -> tuple[DeadLetterSummary, ...]:
        return tuple(self._kept[id] for _, _, id in sorted(self._order, reverse=True))


def parse_letter_id(id: str) -> tuple[Topic, int, int]:
    """Undo `letter_id`: topic, partition, offset. Raises: UnknownLetter: no letter can have this id."""
    match = re.fullmatch(r"(.+)/([0-9]{1,9})/([0-9]{1,18})", id)
    topic = next((topic for topic in BURYING if match and topic.name == match[1]), None)
    if match is None or topic is None:
        raise UnknownLetter(f"no dead letter {id!r}: an id is TOPIC/PARTITION/OFFSET, such as cms.changes/0/17")
    return topic, int(match[2]), int(match[3])
