"""What each of several gateways reads of the answers, when all of them have as many readers.

gateways, here without HTTP ─▶ query.requests      a writer in this process ─▶ answer.events ─▶ gateways ─▶ readers

All of them share one process, so the delays are upper bounds; the bytes are those of the records that a gateway's tail
was handed, keys and values, as they are before compression.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from secrets import token_urlsafe
from time import perf_counter

from adapters.kafka import KafkaSender
from adapters.kafka import shared_tail as tails
from adapters.kafka.log import LogReader
from adapters.kafka.shared_tail import SharedTail
from bench.report import percentile, report
from bench.servers import servers
from bench.system import home
from pipelines.conversations.ask import Asker
from pipelines.runtime.record import Record
from schemas.answer import AnswerEvent, Done, Event, Token
from schemas.query import Question
from schemas.topics import ANSWERS
from wiring.settings import Settings

SITE = "transport"
TEXT = "about as many words as a model writes in a tenth of a second "
MARGIN = 1.3  # times its fair part, that a gateway may read
SHARED_WITHIN = 120.0  # seconds


@dataclass
class Gateway:
    """One gateway's end of the answers."""

    asker: Asker
    tail: SharedTail
    read: list[int] = field(default_factory=list)  # bytes of each record


def main(gateways: int, streams: int, events: int, interval: float) -> None:
    """Shares of the bytes, and milliseconds from the call that writes an event until its reader has it."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, gateways, streams, events, interval))


async def _run(settings: Settings, gateways: int, streams: int, events: int, interval: float) -> None:
    async with servers(settings) as configured, AsyncExitStack() as stack:
        sender = await stack.enter_async_context(KafkaSender(configured))
        made = [await _gateway(stack, configured, sender) for _ in range(gateways)]
        await _settled(made)
        for gateway in made:
            gateway.read.clear()
        streaming = [
            _stream(gateway, sender, events, interval, n * interval / streams)
            for gateway in made
            for n in range(streams)
        ]
        delays = [delay for each in await asyncio.gather(*streaming) for delay in each]
    written = _written(streams * gateways, events)
    fair = written / gateways
    lines = [(f"gateway {n}", sum(gateway.read) / 2**20, sum(gateway.read) / fair) for n, gateway in enumerate(made, 1)]
    report(
        "transport",
        f"{gateways} gateways, {streams} streams each, {events} events a stream, one every {interval * 1000:.0f} ms",
        ("", "MiB read", "times its fair part"),
        lines,
        delay_ms={q: round(percentile(delays, q), 1) for q in (50, 99)},
        partitions=settings.partitions,
    )
    print(f"delay p50 {percentile(delays, 50):.0f} ms, p99 {percentile(delays, 99):.0f} ms")
    print(f"at most {MARGIN} times its fair part: {all(line[2] <= MARGIN for line in lines)}")


async def _gateway(stack: AsyncExitStack, settings: Settings, sender: KafkaSender) -> Gateway:
    read: list[int] = []
    made: list[SharedTail] = []

    def tail(deliver: Callable[[Record], None]) -> SharedTail:
        def counted(record: Record) -> None:
            read.append(_bytes(record))
            deliver(record)

        made.append(SharedTail(settings, ANSWERS, counted, shared=True))
        return made[0]

    asker = Asker(sender, await stack.enter_async_context(LogReader(settings, ANSWERS)), tail)
    stack.push_async_callback(asker.aclose)
    await asker.start()
    return Gateway(asker, made[0], read)


async def _settled(gateways: list[Gateway]) -> None:
    """All have their share, and nothing else is followed any more."""
    async with asyncio.timeout(SHARED_WITHIN):
        while not _apart([gateway.tail.own for gateway in gateways]):  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.1)
    await asyncio.sleep(tails.LINGER + tails.SETTLING)


def _apart(shares: Sequence[frozenset[int]]) -> bool:
    return all(shares) and sum(map(len, shares)) == len(frozenset().union(*shares))


async def _stream(gateway: Gateway, sender: KafkaSender, events: int, interval: float, after: float) -> list[float]:
    """One answer, from its question to its end: the delays of its events."""
    await asyncio.sleep(after)
    now = datetime.now(UTC)
    question = Question(
        request_id=gateway.asker.new_id(),
        conversation_id=token_urlsafe(16),
        site=SITE,
        lang="en",
        question="?",
        asked_at=now,
        deadline=now + timedelta(minutes=10),
    )
    sent: list[float] = []
    delays: list[float] = []
    put = partial(_put, sender, question.request_id)

    async def write() -> None:
        for seq in range(events):
            sent.append(perf_counter())
            await put(seq, Token(text=TEXT))
            await asyncio.sleep(max(0.0, interval - (perf_counter() - sent[-1])))
        await put(events, Done())

    async with aclosing(gateway.asker.ask(question)) as answer:
        await anext(answer)
        writing = asyncio.create_task(write(), name="writer")
        async for followed in answer:
            if isinstance(followed.event.event, Token):
                delays.append((perf_counter() - sent[followed.event.seq]) * 1000)
        await writing
    return delays


async def _put(sender: KafkaSender, request_id: str, seq: int, event: Event) -> None:
    await sender.send(ANSWERS, request_id, AnswerEvent(request_id=request_id, site=SITE, seq=seq, event=event))


def _bytes(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")


def _written(streams: int, events: int) -> int:
    """Bytes of all answers together."""
    request_id = token_urlsafe(16)
    said: list[Event] = [*(Token(text=TEXT) for _ in range(events)), Done()]
    one = [AnswerEvent(request_id=request_id, site=SITE, seq=n, event=event).encode() for n, event in enumerate(said)]
    return streams * sum(len(request_id) + len(value) for value in one)
