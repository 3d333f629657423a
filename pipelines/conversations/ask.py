"""Sends a question to the log and follows its answer.

    ask ─▶ query.requests ─▶ rephrase ─▶ retrieve ─▶ answer ─▶ answer.events ─▶ follow ─▶ visitor

A position is a place in `answer.events`: `partition.offset.attempt`. A reader can continue from it at any gateway:
missed events are read from the log, later ones arrive as they are written.

Two workers may write one answer for a while, when one has lost its partition and does not know yet. The later attempt
wins, and within an attempt the sequence decides (`Order`), so that a reader never sees a piece twice or out of order.

An answer's events are in one partition, unless partitions were added to the topic: the worker may see them earlier or
later than the gateway, also in the middle of an answer. So offsets are kept by partition, and the events after a
position are read from its partition and from the one to which the request's events go now.

A gateway reads only its own share of the partitions, and makes request ids whose events fall into it. For an answer
that another gateway has requested, it follows the partition as long as a reader listens.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.conversations.replay import Replay
from pipelines.runtime.bus import LogReader, MakeSharedTail
from pipelines.runtime.errors import Permanent
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Sender
from schemas.answer import Accepted, Answered, AnswerEvent, Failed, WrittenToken, read_event
from schemas.query import LogPlace, Question, Stop
from schemas.topics import REQUESTS, STOPS

ID_BYTES = 16  # 128 bits: a request id gives access to its answer, so it must not be guessable
ID_TRIES = 10_000  # until an id falls into our share: a hundred times as many as there may be gateways
ENDS = (Answered, Failed)  # the whole answer, or its failure
BUFFERED = 250  # events kept for a slow reader, about as many KB; beyond that it continues from the log


class BadPosition(Permanent):
    """Not a position of this request's answer."""

    code = "bad-position"


class UnknownAnswer(Permanent):
    """The answer does not exist, or belongs to another visitor."""

    code = "unknown-answer"


class Position(NamedTuple):
    """The position of the last event that a reader has seen."""

    partition: int
    offset: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.partition}.{self.offset}.{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Raises: BadPosition."""
        match = re.fullmatch(r"(\d{1,6})\.(-1|\d{1,18})\.(\d{1,6})", text, re.ASCII)
        if match is None:
            raise BadPosition(f"not a position in an answer: {text[:80]!r}")
        return cls(*map(int, match.groups()))


@dataclass(slots=True)
class Followed:
    """An answer event and the reader's position after it (opaque, goes into the SSE id)."""

    position: str
    event: AnswerEvent | WrittenToken
    more: bool = False  # the next event is available without a wait


class Order:
    """Selects the events that a reader sees, in the order of the log.

    It takes the next event in sequence of the newest attempt; others are repetitions, or come from a second writer. The
    event that ends an answer contains all of it, or its failure: the first one is taken, whatever its sequence.
    """

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self._next: int | None = None  # None: any first event
        self._ended = False

    def takes(self, event: AnswerEvent | WrittenToken) -> bool:
        """Whether `event` is the next one; if so, the one after it is expected then."""
        ends = _ends(event)
        if event.attempt < self.attempt or (event.attempt == self.attempt and not self._follows(event, ends)):
            return False
        self.attempt, self._next, self._ended = event.attempt, event.seq + 1, ends
        return True

    def _follows(self, event: AnswerEvent | WrittenToken, ends: bool) -> bool:
        return event.final or (not self._ended and (ends or self._next in (None, event.seq)))


def _ends(event: AnswerEvent | WrittenToken) -> bool:
    return isinstance(event, AnswerEvent) and isinstance(event.event, ENDS)


class _Listener:
    """Records of one request that the tail has delivered and the reader has not taken yet."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._waiting: asyncio.Future[None] | None = None
        self.overrun = False

    def deliver(self, record: Record) -> None:
        if len(self._records) >= BUFFERED:
            self._records.clear()
            self.overrun = True
        self._records.append(record)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def ready(self) -> None:
        """Return when there is a record to take."""
        if not self._records:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    def take(self) -> list[Record]:
        taken, self._records = self._records, []
        return taken


class Asker:
    """Sends questions and follows answers. One per process: start it first, close it last."""

    def __init__(self, sender: Sender, reader: LogReader, make_tail: MakeSharedTail) -> None:
        self._sender = sender
        self._tail = make_tail(self._deliver)
        self._replay = Replay(reader, self._tail.position)
        self._listeners: dict[bytes, set[_Listener]] = {}

    async def start(self) -> None:
        """Raises: Retryable: no broker."""
        await self._tail.start()

    async def aclose(self) -> None:
        await self._replay.aclose()
        await self._tail.aclose()

    def new_id(self) -> str:
        """A request id whose events fall into our share; after too many tries, one of any partition."""
        own = self._tail.own
        for _ in range(ID_TRIES):
            request_id = secrets.token_urlsafe(ID_BYTES)
            if not own or self._tail.partition_of(request_id) in own:
                break
        return request_id

    async def here(self, request_id: str) -> str:
        """A position before all events of a future answer. Raises: Retryable."""
        partition = self._tail.partition_of(request_id)
        async with self._tail.following((partition,)):
            return str(self._here(partition))

    def _here(self, partition: int) -> Position:
        return Position(partition, self._tail.position(partition) - 1, 1)

    async def stop(self, site: str, request_id: str) -> None:
        """Request that the worker stops writing this answer of `site`; the answer ends with the text so far.

        Raises: Retryable: the broker does not take it.
        """
        await self._sender.send(STOPS, request_id, Stop(request_id=request_id, site=site))

    async def ask(self, question: Question) -> AsyncGenerator[Followed, None]:
        """Put the question into the log and follow its answer, from `accepted` to `done`.

        Raises: Retryable: the broker does not take it.
        """
        request_id = question.request_id
        partition = self._tail.partition_of(request_id)
        async with self._listening(request_id, partition) as listener:
            start = self._here(partition)
            # A reader of the log starts at the question, not at the begin of the partition.
            begins = LogPlace(partition=partition, offset=start.offset + 1)
            question = question.model_copy(update={"begins": begins})
            await self._sender.send(REQUESTS, question.conversation_id, question)
            accepted = Accepted(request_id=request_id, conversation_id=question.conversation_id)
            yield Followed(str(start), AnswerEvent(request_id=request_id, site=question.site, seq=0, event=accepted))
            records = self._records(request_id, _from(start), listener)
            async with aclosing(_in_order(question.site, records, start)) as events:
                async for followed in events:
                    yield followed

    async def resume(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        """Continue after `position`, on any gateway; after `""` from the first event that is kept.

        Raises:
            BadPosition: no position.
            UnknownAnswer: it belongs to another site, by its first event.
            Retryable: the log cannot be read, or its partition is not known here yet.
        """
        start = self._place(request_id, position)
        async with self._listening(request_id, start.partition) as listener:
            listener.overrun = True  # earlier events are in the log only
            records = self._records(request_id, _from(start), listener)
            async with aclosing(_in_order(site, records, start)) as events:
                async for followed in events:
                    yield followed

    async def recorded(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        """The events in the log after `position`, without waiting for more. Raises: as `resume`."""
        start = self._place(request_id, position)
        async with self._following(request_id, start.partition):
            records = self._backlog(request_id, _from(start))
            async with aclosing(_in_order(site, records, start)) as events:
                async for followed in events:
                    yield followed

    def _place(self, request_id: str, position: str) -> Position:
        if not position:
            return Position(self._tail.partition_of(request_id), -1, 1)
        return Position.parse(position)

    def _following(self, request_id: str, partition: int) -> AbstractAsyncContextManager[None]:
        """Follow the partition in which the answer began, and the one to which its events go now."""
        return self._tail.following({partition, self._tail.partition_of(request_id)})

    async def _records(
        self, request_id: str, start: dict[int, int], listener: _Listener
    ) -> AsyncGenerator[list[Record], None]:
        """Records of the request from `start` (by partition), each once: those that the listener missed from the log,
        the others as they arrive, in batches.
        """
        while True:
            if listener.overrun:
                listener.overrun = False
                # All later records reach the listener, so there is no gap between log and tail.
                async with aclosing(self._backlog(request_id, start)) as backlog:
                    async for records in backlog:
                        yield records
            await listener.ready()
            if listener.overrun:  # while we waited: the buffered records are not the next ones
                continue
            new: list[Record] = []
            for record in listener.take():
                if record.offset >= start.get(record.partition, 0):
                    start[record.partition] = record.offset + 1
                    new.append(record)
            if new:
                yield new

    async def _backlog(self, request_id: str, start: dict[int, int]) -> AsyncGenerator[list[Record], None]:
        """Records of the request in the log, from `start`, which is advanced; the current partition is last."""
        start.setdefault(self._tail.partition_of(request_id), 0)
        for partition in list(start):
            async with aclosing(self._replay.of_key(request_id.encode(), partition, start[partition])) as backlog:
                async for record in backlog:
                    start[partition] = record.offset + 1
                    yield [record]

    @asynccontextmanager
    async def _listening(self, request_id: str, partition: int) -> AsyncIterator[_Listener]:
        key = request_id.encode()
        listener = _Listener()
        self._listeners.setdefault(key, set()).add(listener)
        try:
            async with self._following(request_id, partition):
                yield listener
        finally:
            listeners = self._listeners[key]
            listeners.discard(listener)
            if not listeners:
                del self._listeners[key]

    def _deliver(self, record: Record) -> None:
        for listener in self._listeners.get(record.key or b"", ()):
            listener.deliver(record)


def _from(seen: Position) -> dict[int, int]:
    """The offset to continue from, by partition: that of the last seen event, which may be the final one."""
    return {seen.partition: max(0, seen.offset)}


async def _in_order(
    site: str, batches: AsyncGenerator[list[Record], None], seen: Position
) -> AsyncGenerator[Followed, None]:
    """The events after the last seen one, up to the final one. Raises: UnknownAnswer: they belong to another site."""
    order = Order(seen.attempt)
    async with aclosing(batches):
        async for records in batches:
            events: list[Followed] = []
            over = False
            for record in records:
                event = read_event(record.value)
                if event.site not in (None, site):
                    raise UnknownAnswer("no such answer on this site")
                if not order.takes(event):
                    continue
                if record.partition != seen.partition or record.offset > seen.offset:
                    if events:
                        events[-1].more = not _ends(event)  # the end of an answer is stored before it is passed on
                    events.append(Followed(str(Position(record.partition, record.offset, event.attempt)), event))
                if over := event.final:
                    break
            for followed in events:
                yield followed
            if over:
                return
