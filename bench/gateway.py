"""What an event of an answer costs the gateway that hands it on, and how late it comes, while many read at once.

this process ─▶ answer.events ─▶ gateway, a process of its own ─SSE─▶ readers, in this process
          nobody answers: the events of each answer are written by us, at one pace

The gateway's CPU is its process's own while events flow: without the beginnings and ends of the answers, and less what
it takes with nothing to do. Delays are those of the log, the gateway and this process together, from the call that
writes to the reader. Writer and readers are as cheap as we can make them (whole batches, bare sockets): they share the
machine with what is measured, and so does Kafka. What both cost stands beside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import psutil
from aiokafka import AIOKafkaProducer

from adapters.kafka import connection, partition_of, prefixed
from bench.profiled import table
from bench.report import percentile, report
from bench.servers import servers
from bench.system import home
from bench.transport import TEXT
from gateway.edge.keys import admin_key
from schemas.answer import AnswerEvent, Done, Event, Token
from schemas.topics import ANSWERS
from wiring.settings import Settings

SITE = "gateway"
TICK = 0.02  # seconds between two batches of events: the answers are spread over them
BATCH_BYTES = 512 * 1024
WARM_UP = 20  # events of each answer before the measurement
START = 120.0  # seconds for the gateway to start, and for all questions to be taken
TIMEOUT = 600.0  # seconds for everything that is waited for
SETTLED = 3.0  # seconds after the last question
IDLE = 6.0  # seconds in which the gateway is watched with nothing to do
ASKING = 50  # questions at once
HOT = 25  # lines of a profile
BUDGET = 25.0  # microseconds for an event
LATE = 150.0  # milliseconds at p99

_ACCEPTED = re.compile(rb'"request_id":"([^"]+)"')
_PIECE = re.compile(rb'data: \{"text":"([0-9.]+) ')


class Reader(asyncio.Protocol):
    """One stream, read to its end by what reads least: no HTTP client, only frames looked through."""

    def __init__(self, question: bytes) -> None:
        self._question = question
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self.request_id = ""
        loop = asyncio.get_running_loop()
        self.asked: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self.delays: list[float] = []  # milliseconds, of each event

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._question)

    def data_received(self, data: bytes) -> None:
        now = perf_counter()
        whole, end, self._rest = (self._rest + data).rpartition(b"\n\n")
        if not self.asked.done():
            if not end:
                return
            found = _ACCEPTED.search(whole)
            assert found is not None, whole
            self.request_id = found[1].decode()
            self.asked.set_result(None)
        self.delays += [(now - float(sent)) * 1000 for sent in _PIECE.findall(whole)]
        if b"\nevent: done\n" in whole:
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        for waiting in (self.asked, self.done):
            if not waiting.done():
                waiting.set_exception(error or ConnectionError("the gateway hung up"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@dataclass
class Spent:
    """Seconds of CPU: the gateway's in its own code and in the kernel, this process's, and all of the machine."""

    own: float
    kernel: float
    here: float
    machine: float

    @classmethod
    def so_far(cls, gateway: psutil.Process) -> Spent:
        there, here, machine = gateway.cpu_times(), psutil.Process().cpu_times(), psutil.cpu_times()
        busy = sum(machine[:8]) - machine.idle - machine.iowait
        return cls(there.user, there.system, here.user + here.system, busy)

    def since(self, before: Spent) -> Spent:
        return Spent(
            self.own - before.own, self.kernel - before.kernel, self.here - before.here, self.machine - before.machine
        )


def main(streams: int, events: int, interval: float, profile: bool) -> None:
    """Microseconds of the gateway's CPU for an event, and milliseconds of delay."""
    with home([SITE]) as settings:
        asyncio.run(_run(settings, streams, events, interval, profile))


async def _run(settings: Settings, streams: int, events: int, interval: float, profile: bool) -> None:
    os.environ["PAGEWIRE_QUESTION_TIMEOUT"] = str(TIMEOUT)
    async with AsyncExitStack() as stack:
        configured = await stack.enter_async_context(servers(settings))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pagewire-bench-")))
        file = folder / "profile" if profile else None
        producer = await stack.enter_async_context(
            AIOKafkaProducer(**connection(configured), compression_type="lz4", max_batch_size=BATCH_BYTES)
        )
        gateway, url = await stack.enter_async_context(_gateway(file))
        readers = await _asked(stack, settings, url, streams)
        topic = prefixed(configured, ANSWERS)
        writer = Writer(producer, topic, len(await producer.partitions_for(topic)), readers)
        idle = await _idle(gateway)
        await writer.write(0, WARM_UP, interval)
        await _seen(readers, WARM_UP)
        before, began = Spent.so_far(gateway), perf_counter()
        if profile:
            gateway.send_signal(signal.SIGUSR1)
        await writer.write(WARM_UP, events, interval)
        await _seen(readers, WARM_UP + events)
        seconds = perf_counter() - began
        spent = Spent.so_far(gateway).since(before)
        spent.own -= idle.own * seconds / IDLE
        spent.kernel -= idle.kernel * seconds / IDLE
        if profile:
            gateway.send_signal(signal.SIGUSR2)
        await writer.finish()
        await asyncio.wait_for(asyncio.gather(*(reader.done for reader in readers)), TIMEOUT)
        _report(readers, events, interval, spent, seconds)
        if file is not None:
            hot = table(file, streams * events, HOT)
            report("gateway-profile", "own time, profiled", ("where", "calls an event", "us an event"), hot)


def _report(readers: Sequence[Reader], events: int, interval: float, spent: Spent, seconds: float) -> None:
    assert all(len(reader.delays) == WARM_UP + events for reader in readers), "a stream was not whole"
    delays = [delay for reader in readers for delay in reader.delays[WARM_UP:]]
    told = len(delays)
    of_gateway = spent.own + spent.kernel
    parts = (of_gateway, spent.own, spent.kernel, spent.here, spent.machine - of_gateway - spent.here)
    costs = [part / told * 1e6 for part in parts]
    late = [percentile(delays, q) for q in (50, 99)]
    report(
        "gateway",
        f"{len(readers)} streams through one gateway, {events} events each, one every {interval * 1000:.0f} ms",
        (
            "streams",
            "CPU us an event",
            "its code",
            "kernel",
            "writer and readers",
            "all else",
            "delay p50 ms",
            "delay p99 ms",
        ),
        [(len(readers), *costs, *late)],
        events_a_second=round(told / seconds),
        load=os.getloadavg(),
    )
    print(f"{told / seconds:,.0f} events a second; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"at most {BUDGET:.0f} us an event: {costs[0] <= BUDGET}; at most {LATE:.0f} ms: {late[1] <= LATE}")


@asynccontextmanager
async def _gateway(profile: Path | None) -> AsyncIterator[tuple[psutil.Process, str]]:
    """A gateway, and its URL."""
    run = ["-m", "bench.profiled", str(profile)] if profile else ["-m", "cli.main"]
    child = await asyncio.create_subprocess_exec(sys.executable, *run, "gateway", stdout=asyncio.subprocess.PIPE)
    try:
        assert child.stdout is not None
        said = (await asyncio.wait_for(child.stdout.readline(), START)).decode().split()
        assert said[:1] == ["ready"], f"the gateway did not start: {said}"
        yield psutil.Process(child.pid), said[1]
    finally:
        with suppress(ProcessLookupError):
            child.terminate()
        await child.wait()


async def _asked(stack: AsyncExitStack, settings: Settings, url: str, streams: int) -> list[Reader]:
    """Readers who all wait for the events of their answer."""
    key, _ = admin_key(settings)
    address = urlsplit(url)
    assert address.hostname
    assert address.port
    there = address.hostname, address.port
    at_once = asyncio.Semaphore(ASKING)

    async def ask(number: int) -> Reader:
        body = json.dumps({"question": f"What does a library card cost in the year {number}?"})
        request = (
            f"POST /v1/sites/{SITE}/chat HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {key.get_secret_value()}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
        async with at_once:
            _, reader = await asyncio.get_running_loop().create_connection(lambda: Reader(request), *there)
            stack.callback(reader.close)
            await reader.asked
        return reader

    async with asyncio.timeout(START):
        return list(await asyncio.gather(*map(ask, range(streams))))


class Writer:
    """Writes the events of all answers, a batch for each partition at a time.

    Not by our own sender: it waits for each, and the pace would be Kafka's.
    """

    def __init__(self, producer: AIOKafkaProducer, topic: str, partitions: int, readers: Sequence[Reader]) -> None:
        self._producer = producer
        self._topic = topic
        self._partitions = partitions
        self._readers = readers

    async def write(self, first: int, events: int, interval: float) -> None:
        """So many events of each, the `first` of them on, one every `interval` seconds, or as fast as it goes."""
        turns, sent = max(1, round(interval / TICK)), []
        began = perf_counter()
        for number in range(events * turns):
            await asyncio.sleep(max(0.0, began + number * interval / turns - perf_counter()))
            seq, turn = divmod(number, turns)
            tokens = [
                (reader, first + seq, Token(text=f"{perf_counter():.6f} {TEXT}"))
                for reader in self._readers[turn::turns]
            ]
            sent += await self._send(tokens)
        await asyncio.gather(*sent)

    async def finish(self) -> None:
        await asyncio.gather(*await self._send([(reader, len(reader.delays), Done()) for reader in self._readers]))

    async def _send(self, events: Sequence[tuple[Reader, int, Event]]) -> list[asyncio.Future[object]]:
        """What confirms them. `events`: whose, their number, and what they say."""
        batches: dict[int, Any] = {}
        for reader, seq, event in events:
            key = reader.request_id.encode()
            partition = partition_of(key, self._partitions)
            if partition not in batches:
                batches[partition] = self._producer.create_batch()
            message = AnswerEvent(request_id=reader.request_id, site=SITE, seq=seq, event=event)
            added = batches[partition].append(key=key, value=message.encode(), timestamp=None)
            assert added is not None, "a batch is full"
        return [await self._producer.send_batch(batch, self._topic, partition=n) for n, batch in batches.items()]


async def _seen(readers: Sequence[Reader], events: int) -> None:
    async with asyncio.timeout(TIMEOUT):
        while any(len(reader.delays) < events for reader in readers):  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.05)


async def _idle(gateway: psutil.Process) -> Spent:
    """In `IDLE` seconds, while all wait and nothing comes."""
    await asyncio.sleep(SETTLED)
    before = Spent.so_far(gateway)
    await asyncio.sleep(IDLE)
    return Spent.so_far(gateway).since(before)
