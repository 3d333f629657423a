"""Ask: a question goes into the log, and its answer is followed out of it.

    ask ─▶ query.requests ─▶ rephrase ─▶ retrieve ─▶ answer ─▶ answer.events ─▶ follow ─▶ visitor

A position names a place in `answer.events`: `partition.offset.attempt`. Whoever holds one can go on from there at any
gateway: what was missed is read from the log, the rest comes as it is written.

Two workers may write one answer for a while: one that was given up does not know it yet. Later attempts win, and
within an attempt the sequence decides (`Order`), so that a reader never sees a piece twice or out of its place.

An answer's events stand in one partition, unless the topic got partitions meanwhile: its worker may have heard of them
earlier or later than the gateway, or in the middle of the answer. So offsets are remembered by partition, and what is
missing in the partition of a position is looked for in the one where its request's events would go now.

A gateway reads its own share of the partitions only, and gives requests ids whose events fall into it. Where a reader
comes with an answer that another gateway has asked for, its partition is followed as long as they listen.
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

ID_BYTES = 16  # 128 bits: whoever holds a request id may read its answer, so nobody must guess one
ID_TRIES = 10_000  # until one falls into our share: a hundred times as many as there may be gateways
ENDS = (Answered, Failed)  # all of an answer, or that there is none
BUFFERED = 250  # events kept for a slow reader, about as many KB; past that it goes on from the log


class BadPosition(Permanent):
    """Not a position of this request's answer."""

    code = "bad-position"


class UnknownAnswer(Permanent):
    """No such answer for who asks for it."""

    code = "unknown-answer"


class Position(NamedTuple):
    """The last event a reader has seen."""

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
    """An answer event and where the reader stands after it (opaque, goes into the SSE id)."""

    position: str
    event: AnswerEvent | WrittenToken
    more: bool = False  # the next one is here as well, and nothing will be waited for before it


class Order:
    """Which of an answer's events a reader sees, in the order of the log.

    Of the newest attempt, the next in sequence; others repeat what was seen, or belong to a second writer. The events
    that end an answer hold all of it, or say that there is none: the first of them is taken wherever its writer was.
    """

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self._next: int | None = None  # None: the first that comes
        self._ended = False

    def takes(self, event: AnswerEvent | WrittenToken) -> bool:
        """Whether `event` is the next one; if so, what follows it is expected from now on."""
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
    """What the tail has delivered for one request and its reader has not taken yet."""

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
        """Returns when there is one to take."""
        if not self._records:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    def take(self) -> list[Record]:
        """All there are."""
        taken, self._records = self._records, []
        return taken


class Asker:
    """Asks and follows. One per process: start it first, close it last."""

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
        """An id for a request, whose events fall into our share; if it takes too long to find one, anywhere."""
        own = self._tail.own
        for _ in range(ID_TRIES):
            request_id = secrets.token_urlsafe(ID_BYTES)
            if not own or self._tail.partition_of(request_id) in own:
                break
        return request_id

    async def here(self, request_id: str) -> str:
        """A position before every event of an answer that nobody has asked for yet. Raises: Retryable."""
        partition = self._tail.partition_of(request_id)
        async with self._tail.following((partition,)):
            return str(self._here(partition))

    def _here(self, partition: int) -> Position:
        return Position(partition, self._tail.position(partition) - 1, 1)

    async def stop(self, site: str, request_id: str) -> None:
        """Tell whoever writes this answer of `site` that nobody wants more of it; it ends with what is there.

        Raises:
            Retryable: the broker does not take it.
        """
        await self._sender.send(STOPS, request_id, Stop(request_id=request_id, site=site))

    async def ask(self, question: Question) -> AsyncGenerator[Followed, None]:
        """Put the question into the log and follow its answer, from `accepted` to `done`.

        Raises:
            Retryable: the broker does not take it.
        """
        request_id = question.request_id
        partition = self._tail.partition_of(request_id)
        async with self._listening(request_id, partition) as listener:
            start = self._here(partition)
            # Whoever has to look for what is written of it need not look for the beginning.
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
        """Follow on after `position`, on any gateway; after `""` from the first event that is kept.

        Raises:
            BadPosition: no position.
            UnknownAnswer: it is another site's, which its first event tells.
            Retryable: the log cannot be read; its partition is not known here yet.
        """
        start = self._place(request_id, position)
        async with self._listening(request_id, start.partition) as listener:
            listener.overrun = True  # what came before is in the log only
            records = self._records(request_id, _from(start), listener)
            async with aclosing(_in_order(site, records, start)) as events:
                async for followed in events:
                    yield followed

    async def recorded(self, site: str, request_id: str, position: str) -> AsyncGenerator[Followed, None]:
        """What the log holds after `position` now, without waiting for more. Raises: as `resume`."""
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
        """Where the answer began, and where its events would go now."""
        return self._tail.following({partition, self._tail.partition_of(request_id)})

    async def _records(
        self, request_id: str, start: dict[int, int], listener: _Listener
    ) -> AsyncGenerator[list[Record], None]:
        """Records of the request from `start` (by partition) on, each once: what the listener missed from the log, the
        rest as it comes, those together that are there together.
        """
        while True:
            if listener.overrun:
                listener.overrun = False
                # Everything from here on reaches the listener, so log and tail meet without a gap.
                async with aclosing(self._backlog(request_id, start)) as backlog:
                    async for records in backlog:
                        yield records
            await listener.ready()
            if listener.overrun:  # while we waited: what is there is not the next
                continue
            new: list[Record] = []
            for record in listener.take():
                if record.offset >= start.get(record.partition, 0):
                    start[record.partition] = record.offset + 1
                    new.append(record)
            if new:
                yield new

    async def _backlog(self, request_id: str, start: dict[int, int]) -> AsyncGenerator[list[Record], None]:
        """Records of the request in the log, from `start` on, which is moved on; its present partition comes last."""
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
    """Where to read on, by partition: at the event that was seen last, for if it was the final one, nothing follows."""
    return {seen.partition: max(0, seen.offset)}


async def _in_order(
    site: str, batches: AsyncGenerator[list[Record], None], seen: Position
) -> AsyncGenerator[Followed, None]:
    """The events after the one that was seen, to the final one. Raises: UnknownAnswer: they are not the site's."""
    order = Order(seen.attempt)
    async with aclosing(batches):
        async for records in batches:
            told: list[Followed] = []
            over = False
            for record in records:
                event = read_event(record.value)
                if event.site not in (None, site):
                    raise UnknownAnswer("no such answer on this site")
                if not order.takes(event):
                    continue
                if record.partition != seen.partition or record.offset > seen.offset:
                    if told:
                        told[-1].more = not _ends(event)  # an answer's end is kept before it is handed on
                    told.append(Followed(str(Position(record.partition, record.offset, event.attempt)), event))
                if over := event.final:
                    break
            for followed in told:
                yield followed
            if over:
                return
