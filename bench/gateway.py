"""What an event of an answer costs the gateway that hands it on, and how late it comes, while many read at once.

this process ─▶ answer.events ─▶ gateway, a process of its own ─SSE─▶ readers, in this process
          nobody answers: the events of each answer are written by us, at one pace

The gateway's CPU is its process's own while events flow: without the beginnings and ends of the answers, and less what
it takes with nothing to do. Delays are those of the log, the gateway and this process together, from the call that
writes to the reader.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import aiohttp
import psutil
from aiokafka import AIOKafkaProducer

from adapters.kafka import connection, prefixed
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
WARM_UP = 20  # events of each answer before the measurement
START = 120.0  # seconds for the gateway to start, and for all questions to be taken
TIMEOUT = 600.0  # seconds for everything that is waited for
SETTLED = 3.0  # seconds after the last question
IDLE = 6.0  # seconds in which the gateway is watched with nothing to do
ASKING = 50  # questions at once
HOT = 25  # lines of a profile
BUDGET = 25.0  # microseconds for an event

_ACCEPTED = re.compile(rb'"request_id":"([^"]+)"')
_PIECE = re.compile(rb'data: \{"text":"([0-9.]+) ')


@dataclass
class Reader:
    """One stream, read to its end."""

    topic: str
    request_id: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    delays: list[float] = field(default_factory=list)  # milliseconds, of each event

    async def read(self, session: aiohttp.ClientSession, url: str, question: dict[str, object]) -> None:
        rest = b""
        async with session.post(url, json=question) as response:
            response.raise_for_status()
            async for chunk in response.content.iter_any():
                now = perf_counter()
                whole, end, rest = (rest + chunk).rpartition(b"\n\n")
                if not self.asked.is_set() and end:
                    found = _ACCEPTED.search(whole)
                    assert found is not None, whole
                    self.request_id = found[1].decode()
                    self.asked.set()
                self.delays += [(now - float(sent)) * 1000 for sent in _PIECE.findall(whole)]


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
        producer = await stack.enter_async_context(AIOKafkaProducer(**connection(configured), linger_ms=5))
        gateway, url = await stack.enter_async_context(_gateway(file))
        readers = [Reader(prefixed(configured, ANSWERS)) for _ in range(streams)]
        reading = await _asked(stack, settings, url, readers)
        idle = await _idle(gateway)
        await _write(producer, readers, 0, WARM_UP, interval)
        await _seen(readers, WARM_UP)
        before, began = gateway.cpu_times(), perf_counter()
        if profile:
            gateway.send_signal(signal.SIGUSR1)
        await _write(producer, readers, WARM_UP, events, interval)
        await _seen(readers, WARM_UP + events)
        seconds = perf_counter() - began
        after = gateway.cpu_times()
        own = after.user - before.user - idle[0] * seconds
        kernel = after.system - before.system - idle[1] * seconds
        if profile:
            gateway.send_signal(signal.SIGUSR2)
        await _finish(producer, readers)
        await asyncio.wait_for(reading, TIMEOUT)
        _report(readers, events, interval, (own, kernel), seconds)
        if file is not None:
            hot = table(file, streams * events, HOT)
            report("gateway-profile", "own time, profiled", ("where", "calls an event", "us an event"), hot)


def _report(
    readers: Sequence[Reader], events: int, interval: float, spent: tuple[float, float], seconds: float
) -> None:
    """`spent`: seconds of the gateway in its own code and in the kernel."""
    assert all(len(reader.delays) == WARM_UP + events for reader in readers), "a stream was not whole"
    delays = [delay for reader in readers for delay in reader.delays[WARM_UP:]]
    told = len(delays)
    own, kernel = (part / told * 1e6 for part in spent)
    line = (len(readers), own + kernel, own, kernel, percentile(delays, 50), percentile(delays, 99))
    report(
        "gateway",
        f"{len(readers)} streams through one gateway, {events} events each, one every {interval * 1000:.0f} ms",
        ("streams", "CPU us an event", "its code", "kernel", "delay p50 ms", "delay p99 ms"),
        [line],
        events_a_second=round(told / seconds),
        load=os.getloadavg(),
    )
    print(f"{told / seconds:,.0f} events a second; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"at most {BUDGET:.0f} us an event: {line[1] <= BUDGET}")


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


async def _asked(
    stack: AsyncExitStack, settings: Settings, url: str, readers: Sequence[Reader]
) -> asyncio.Future[list[None]]:
    """When this returns, all are waiting for the events of their answer."""
    key, _ = admin_key(settings)
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {key.get_secret_value()}"}
    session = await stack.enter_async_context(
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None), headers=headers
        )
    )
    at_once = asyncio.Semaphore(ASKING)

    async def ask(number: int, reader: Reader) -> None:
        question: dict[str, object] = {"question": f"What does a library card cost in the year {number}?"}
        async with at_once:
            reading = asyncio.ensure_future(reader.read(session, f"{url}/v1/sites/{SITE}/chat", question))
            waiting = asyncio.ensure_future(reader.asked.wait())
            await asyncio.wait((reading, waiting), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        await reading

    asking = asyncio.gather(*(ask(number, reader) for number, reader in enumerate(readers)))
    async with asyncio.timeout(TIMEOUT):
        for reader in readers:
            waiting = asyncio.ensure_future(reader.asked.wait())
            await asyncio.wait((waiting, asking), return_when=asyncio.FIRST_COMPLETED)
            assert not asking.done(), asking.exception()
    return asking


async def _write(
    producer: AIOKafkaProducer, readers: Sequence[Reader], first: int, events: int, interval: float
) -> None:
    """So many events of each, the `first` of them on, one every `interval` seconds, or as fast as it goes."""
    turns, sent = max(1, round(interval / TICK)), []
    began = perf_counter()
    for number in range(events * turns):
        await asyncio.sleep(max(0.0, began + number * interval / turns - perf_counter()))
        seq, turn = divmod(number, turns)
        said = Token(text=f"{perf_counter():.6f} {TEXT}")
        sent += [await _send(producer, reader, first + seq, said) for reader in readers[turn::turns]]
    await asyncio.gather(*sent)


async def _finish(producer: AIOKafkaProducer, readers: Sequence[Reader]) -> None:
    await asyncio.gather(*[await _send(producer, reader, len(reader.delays), Done()) for reader in readers])


async def _send(producer: AIOKafkaProducer, reader: Reader, seq: int, event: Event) -> Awaitable[object]:
    """What confirms it. Not by our own sender: it waits for each, and the pace would be Kafka's."""
    message = AnswerEvent(request_id=reader.request_id, site=SITE, seq=seq, event=event)
    sent: Awaitable[object] = await producer.send(reader.topic, message.encode(), reader.request_id.encode())
    return sent


async def _seen(readers: Sequence[Reader], events: int) -> None:
    async with asyncio.timeout(TIMEOUT):
        while any(len(reader.delays) < events for reader in readers):  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.05)


async def _idle(gateway: psutil.Process) -> tuple[float, float]:
    """Seconds of CPU a second, in its own code and in the kernel, while all wait and nothing comes."""
    await asyncio.sleep(SETTLED)
    before = gateway.cpu_times()
    await asyncio.sleep(IDLE)
    after = gateway.cpu_times()
    return (after.user - before.user) / IDLE, (after.system - before.system) / IDLE
