"""While a service is away the stage waits, one record at a time looks; who is alone in failing stops nobody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import REGISTRY
from pydantic import SecretStr

from adapters.elastic.client import ElasticsearchDenied
from adapters.embedders.base import NoVectors
from adapters.embedders.openai_api import OpenAIEmbedder
from pipelines.runtime.dead_letters import from_headers
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.record import Headers, Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Sender, Stage
from schemas.topics import CHUNKS, Topic
from tests import skipping_time
from worker.guard import Guard
from worker.in_flight import InFlight
from worker.pause import Pause, Trouble

POLICY = RetryPolicy(tries=6, retry_for=900)


class Stream:
    """A stage whose records fail as `fails(key, now)` says. Time is skipped."""

    def __init__(self, fails: Callable[[str, float], Exception | None]) -> None:
        self.tries: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.done: dict[str, float] = {}
        self.dead: dict[str, str] = {}
        self.when: list[float] = []  # tries that failed
        self._fails = fails
        self.pause = Pause("embed", "", POLICY.wait)

    async def send_bytes(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, *, partition: int | None = None
    ) -> None:
        self.dead[(key or b"").decode()] = from_headers(headers).code

    async def send(self, *args: object, **options: object) -> None:
        """Nothing is sent on."""

    async def handle(self, record: Record, sender: Sender) -> None:
        key = (record.key or b"").decode()
        now = asyncio.get_running_loop().time() - self.begun
        self.tries[key] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        if (error := self._fails(key, now)) is not None:
            self.when.append(now)
            raise error

    async def work_on(self, *keys: str, until: int | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.begun = loop.time()
        broken: list[BaseException] = []

        def finished(record: Record) -> None:
            self.done[(record.key or b"").decode()] = loop.time() - self.begun

        guard = Guard(Stage("embed", {CHUNKS: self.handle}), CHUNKS, self.handle, self, POLICY, 60.0, pause=self.pause)
        flight = self.flight = InFlight(
            window=16, order_key=lambda r: r.key or b"", work=guard, finished=finished, failed=broken.append
        )
        for offset, key in enumerate(keys):
            flight.put(Record("t", 0, offset, key.encode(), b""))
        while len(self.done) < (until or len(keys)):
            assert not broken
            await asyncio.sleep(0.1)
        await flight.drain(0.0)
        await self.pause.aclose()


def run(stream: Stream, *keys: str, until: int | None = None) -> Stream:
    work: Coroutine[Any, Any, None] = stream.work_on(*keys, until=until)
    skipping_time.run(work)
    return stream


def gauge(reason: str) -> float | None:
    return REGISTRY.get_sample_value("pagewire_paused", {"stage": "embed", "lane": "", "reason": reason})


REVOKED = OpenAIEmbedder("m", base_url="http://localhost", api_key=SecretStr("x"))._refused(401)
DENIED = ElasticsearchDenied("security_exception")


@pytest.mark.parametrize("error", [REVOKED, DENIED, Retryable("away"), NoVectors("HTML"), KeyError("odd")], ids=repr)
def test_a_backlog_waits_out_twenty_minutes_of_a_service_that_fails_everybody(error: Exception) -> None:
    shown: list[float | None] = []

    def fails(key: str, now: float) -> Exception | None:
        code = error.code if isinstance(error, PagewireError) else "unexplained"
        if 30 < now < 1_200:
            shown.append(gauge(code))
        return error if now < 1_200 else None

    stream = run(Stream(fails), *(f"town:en:{n}" for n in range(500)))
    assert stream.dead == {}
    assert max(stream.done.values()) < 1_200 + 60  # all of it, after the mend
    assert sum(1 for at in stream.when if at > 60) < 200  # one look at a time, at most every 7.5 s
    assert set(shown) == {1.0}
    assert gauge("unavailable") is None
    assert stream.pause.trouble is None


def test_who_looks_is_another_record_each_time() -> None:
    stream = run(Stream(lambda key, now: Retryable("away") if now < 300 else None), *map(str, range(40)))
    assert max(stream.tries.values()) - min(stream.tries[str(n)] for n in range(16)) <= 2


def test_a_record_that_fails_alone_is_buried_in_the_end_and_nobody_waits_for_it() -> None:
    def fails(key: str, now: float) -> Exception | None:
        return KeyError("a defect") if key == "bad" else None

    stream = run(Stream(fails), "bad", *map(str, range(2_000)))
    assert stream.dead == {"bad": "unexplained"}
    healthy = sorted(at for key, at in stream.done.items() if key != "bad")
    assert healthy[len(healthy) // 2] < 20  # its own partition waits behind it until it is buried
    assert stream.most_at_once > 8


def test_a_record_that_fails_with_nobody_beside_it_is_not_condemned() -> None:
    """The last that others did was before it came: whether the service is to blame, nobody can tell."""
    stream = Stream(lambda key, now: KeyError("odd") if key == "late" and now < 4_000 else None)
    run(stream, "late")
    assert stream.dead == {}


def test_a_look_that_is_cut_off_is_handed_on() -> None:
    async def scenario() -> list[bool]:
        pause = Pause("embed", "", lambda failures: 1.0)
        trouble = Trouble(Retryable.kind, "unavailable", "away", datetime.now(UTC))
        pause.failed(await pause.turn(), trouble, since=None)
        first, second = (asyncio.create_task(pause.turn()) for _ in range(2))
        await asyncio.sleep(1.5)
        assert (first.done(), second.done()) == (True, False)
        pause.left(first.result())
        turn = await second
        third = asyncio.create_task(pause.turn())
        pause.failed(turn, trouble, since=None)
        fourth = asyncio.create_task(pause.turn())
        await asyncio.sleep(0)
        third.cancel()
        probe = await fourth
        pause.passed(probe)
        await pause.aclose()
        return [turn.probe, probe.probe, (await pause.turn()).probe]

    assert skipping_time.run(scenario()) == [True, True, False]


def test_partitions_that_go_while_a_stage_is_paused_do_not_wait_for_it() -> None:
    async def scenario() -> float:
        stream = Stream(lambda key, now: Retryable("away"))
        working = asyncio.create_task(stream.work_on("a", "b", "c"))
        await asyncio.sleep(60)
        loop, begun = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        await stream.flight.drain(10.0)
        working.cancel()
        await stream.pause.aclose()
        return loop.time() - begun

    assert skipping_time.run(scenario()) < 1
