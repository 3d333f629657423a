"""Ask: a question goes into the log, and its answer is followed out of it.

    ask ─▶ query.requests ─▶ rephrase ─▶ retrieve ─▶ answer ─▶ answer.events ─▶ follow ─▶ visitor

A position names a place in `answer.events`: `partition.offset.attempt`. Whoever holds one can go on from there at any
gateway: what was missed is read from the log, the rest comes as it is written.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pipelines.runtime.errors import Permanent
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Sender
from schemas.answer import Accepted, AnswerEvent
from schemas.query import Question
from schemas.topics import REQUESTS

BUFFERED = 1_000  # events kept for a slow reader; past that it goes on from the log
STRETCH = 5_000  # records of all answers in a partition read from the log at once


class BadPosition(Permanent):
    """Not a position of this request's answer."""

    code = "bad-position"


class Position(NamedTuple):
    """The last event a reader has seen."""

    partition: int
    offset: int
    attempt: int

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> Position:
        """Raises: BadPosition."""
        match = re.fullmatch(r"(\d{1,6})\.(-1|\d{1,18})\.(\d{1,6})", text, re.ASCII)
        if match is None:
            raise BadPosition(f"not a position in an answer: {text[:80]!r}")
        return cls(*map(int, match.groups()))


@dataclass(frozen=True)
class Followed:
    """An answer event and where the reader stands after it (opaque, goes into the SSE id)."""

    position: str
    event: AnswerEvent


class Tail(Protocol):
    """Follows `answer.events` (adapters.kafka_log.LogTail)."""

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...

    def partition_of(self, key: str) -> int: ...

    def position(self, partition: int) -> int:
        """The offset of the next record that will be delivered."""
        ...


class Reader(Protocol):
    """Reads stretches of `answer.events` (adapters.kafka_log.LogReader)."""

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]: ...


class _Listener:
    """What the tail has delivered for one request and its reader has not taken yet."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque()
        self._arrived = asyncio.Event()
        self.overrun = False

    def deliver(self, record: Record) -> None:
        if len(self._records) >= BUFFERED:
            self._records.clear()
            self.overrun = True
        self._records.append(record)
        self._arrived.set()

    async def take(self) -> Record:
        while not self._records:
            self._arrived.clear()
            await self._arrived.wait()
        return self._records.popleft()


class Asker:
    """Asks and follows. One per process: start it first, close it last."""

    def __init__(self, sender: Sender, reader: Reader, make_tail: Callable[[Callable[[Record], None]], Tail]) -> None:
        self._sender = sender
        self._reader = reader
        self._tail = make_tail(self._deliver)
        self._listeners: dict[bytes, set[_Listener]] = {}

    async def start(self) -> None:
        """Raises: Retryable: no broker."""
        await self._tail.start()

    async def aclose(self) -> None:
        await self._tail.aclose()

    async def ask(self, question: Question) -> AsyncGenerator[Followed, None]:
        """Put the question into the log and follow its answer, from `accepted` to `done`.

        Raises:
            Retryable: the broker does not take it.
        """
        request_id = question.request_id
        partition = self._tail.partition_of(request_id)
        with self._listening(request_id) as listener:
            start = Position(partition, self._tail.position(partition) - 1, 1)
            await self._sender.send(REQUESTS, question.conversation_id, question)
            accepted = Accepted(request_id=request_id, conversation_id=question.conversation_id)
            yield Followed(str(start), AnswerEvent(request_id=request_id, seq=0, event=accepted))
            async with aclosing(self._follow(request_id, start, listener)) as events:
                async for followed in events:
                    yield followed

    async def resume(self, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        """Follow on after `position`, on any gateway; after `""` from the first event that is kept.

        Raises:
            BadPosition: not a position of this request.
            Retryable: the log cannot be read.
        """
        partition = self._tail.partition_of(request_id)
        start = Position.parse(position) if position else Position(partition, -1, 1)
        if start.partition != partition:
            raise BadPosition("that event belongs to another answer")
        with self._listening(request_id) as listener:
            listener.overrun = True  # what came before is in the log only
            async with aclosing(self._follow(request_id, start, listener)) as events:
                async for followed in events:
                    yield followed

    async def _follow(self, request_id: str, seen: Position, listener: _Listener) -> AsyncGenerator[Followed, None]:
        key = request_id.encode()
        # From the event that was seen last, not the one after it: if it was the final one, nothing follows.
        async with aclosing(self._records(seen.partition, max(0, seen.offset), listener)) as records:
            async for record in records:
                if record.key != key:
                    continue
                event = AnswerEvent.decode(record.value)
                if event.attempt < seen.attempt:
                    continue  # a worker that was given up writes on for a while
                if record.offset > seen.offset:
                    seen = Position(seen.partition, record.offset, event.attempt)
                    yield Followed(str(seen), event)
                if event.final:
                    return

    async def _records(self, partition: int, start: int, listener: _Listener) -> AsyncGenerator[Record, None]:
        """Records from `start` on, each once: out of the log what the listener has missed, the rest as it comes."""
        while True:
            if listener.overrun:
                listener.overrun = False
                # Everything from here on reaches the listener, so log and tail meet without a gap.
                here = self._tail.position(partition)
                while start < here:
                    end = min(start + STRETCH, here)
                    for record in await self._reader.read(partition, start, end):
                        yield record
                    start = end
            record = await listener.take()
            # Overrun while we waited: this one is not the next, but it is in the log as well.
            if not listener.overrun and record.offset >= start:
                start = record.offset + 1
                yield record

    @contextmanager
    def _listening(self, request_id: str) -> Iterator[_Listener]:
        key = request_id.encode()
        listener = _Listener()
        self._listeners.setdefault(key, set()).add(listener)
        try:
            yield listener
        finally:
            listeners = self._listeners[key]
            listeners.discard(listener)
            if not listeners:
                del self._listeners[key]

    def _deliver(self, record: Record) -> None:
        for listener in self._listeners.get(record.key or b"", ()):
            listener.deliver(record)
