"""A record comes to its end whatever its handler does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from prometheus_client import REGISTRY

from pipelines.runtime.dead_letters import DeadLetter, from_headers, original_headers
from pipelines.runtime.errors import Permanent, Retryable, SettingsError
from pipelines.runtime.record import LANE_HEADER, LANES, Headers, Lane, Record, in_lane, lane_of
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Handler, Sender, Stage
from schemas.base import Message, WireError
from schemas.topics import ANSWERS, CHANGES, CHUNKS, RECEIPTS, Topic
from tests import skipping_time
from worker import guard as module
from worker.guard import Guard
from worker.in_flight import RecordInFlight


class Note(Message):
    """Any message."""

    text: str = ""


@dataclass
class FakeBus:
    """Confirms at once, or fails as told."""

    failures: list[BaseException] = field(default_factory=list)
    hangs: bool = False
    sent: list[tuple[Topic, str, str | None]] = field(default_factory=list)
    messages: list[tuple[Message, str | None]] = field(default_factory=list)  # and their partition keys
    lanes: list[Lane] = field(default_factory=list)
    buried: list[tuple[Topic, bytes | None, bytes | None, Headers]] = field(default_factory=list)

    async def send(
        self,
        topic: Topic,
        key: str,
        message: Message,
        *,
        partition_key: str | None = None,
        trace_id: str | None = None,
        lane: Lane | None = None,
    ) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        self.sent.append((topic, key, trace_id))
        self.messages.append((message, partition_key))
        assert lane is not None
        self.lanes.append(lane)

    async def send_all(
        self, topic: Topic, key: str, messages: Sequence[Message], *, trace_id: str | None, lane: Lane | None
    ) -> None:
        for message in messages:
            await self.send(topic, key, message, trace_id=trace_id, lane=lane)

    async def send_bytes(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, *, partition: int | None = None
    ) -> None:
        if self.failures:
            raise self.failures.pop()
        self.buried.append((topic, key, value, headers))


OUTAGE = 12 * 3600.0  # seconds
RECORD = Record("p.cms.changes", 1, 7, b"key", b"value", (("own", b"1"),), timestamp_ms=5, fresh=True)


@dataclass
class Bench:
    """A guard with a clock that only its waits move."""

    bus: FakeBus = field(default_factory=FakeBus)
    tries: int = 3
    retry_for: float = 100.0
    try_timeout: float = 30.0
    waits: list[float] = field(default_factory=list)
    patient: bool = True
    on_dead: Callable[[Record, DeadLetter, Sender], Awaitable[None]] | None = None

    async def run(self, handler: Handler, monkeypatch: pytest.MonkeyPatch, record: Record = RECORD) -> RecordInFlight:
        now = 0.0

        async def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds
            self.waits.append(seconds)
            await asyncio.sleep(0)

        monkeypatch.setattr(module, "monotonic", lambda: now)
        stage = Stage("test", {CHANGES: handler}, on_dead=self.on_dead, patient=self.patient)
        policy = RetryPolicy(self.tries, self.retry_for)
        guard = Guard(stage, CHANGES, handler, self.bus, policy, self.try_timeout, sleep)
        work = RecordInFlight(record, b"key")
        await guard(work)
        return work

    @property
    def letter(self) -> DeadLetter:
        ((_, _, _, headers),) = self.bus.buried
        return from_headers(headers)


def failing(*errors: BaseException) -> tuple[Handler, list[Record]]:
    """A handler that raises these, one a try, then succeeds; and the records it was given."""
    given: list[Record] = []
    left = list(errors)

    async def handler(record: Record, sender: Sender) -> None:
        given.append(record)
        if left:
            raise left.pop(0)

    return handler, given


async def test_success_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    handler, given = failing()
    await bench.run(handler, monkeypatch)
    assert given == [RECORD]
    assert (bench.waits, bench.bus.buried) == ([], [])


async def test_a_second_try_knows_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    handler, given = failing(Retryable("later"))
    await Bench().run(handler, monkeypatch)
    assert given == [RECORD, replace(RECORD, attempt=2, fresh=False)]


async def test_a_service_that_is_away_is_waited_for_and_waits_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tries=2, retry_for=300)
    handler, given = failing(*[Retryable("away")] * 12)
    await bench.run(handler, monkeypatch)
    assert len(given) == 13
    assert bench.bus.buried == []
    for failures, wait in enumerate(bench.waits, start=1):
        longest = min(15.0, 0.2 * 2 ** (failures - 1))
        assert longest / 2 <= wait <= longest


@pytest.mark.parametrize(
    "error", [Retryable("Elasticsearch is away"), SettingsError("OPENAI_API_KEY"), KeyError("odd")]
)
async def test_an_outage_of_half_a_day_buries_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tries=6, retry_for=900)
    elapsed = 0.0

    async def handler(record: Record, sender: Sender) -> None:
        nonlocal elapsed
        elapsed = sum(bench.waits)
        if elapsed < OUTAGE:
            raise error

    await bench.run(handler, monkeypatch)
    assert OUTAGE <= elapsed < OUTAGE + 15  # and its end is noticed within the longest wait
    assert bench.bus.buried == []


async def test_where_a_visitor_waits_waiting_ends_in_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(retry_for=60, patient=False)
    handler, given = failing(*[Retryable("away")] * 1000)
    await bench.run(handler, monkeypatch)
    assert bench.letter.code == "unavailable"
    assert bench.letter.attempts == len(given)
    assert 60 <= sum(bench.waits) < 60 + 15


@pytest.mark.parametrize(("error", "code"), [(Permanent("no"), "refused"), (WireError("not a Note"), "bad-message")])
async def test_the_hopeless_is_buried_at_once(error: Exception, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    handler, given = failing(error)
    await bench.run(handler, monkeypatch)
    assert len(given) == 1
    ((topic, key, value, headers),) = bench.bus.buried
    assert (topic.name, key, value) == ("cms.changes.dlq", b"key", b"value")
    assert original_headers(headers) == RECORD.headers
    letter = bench.letter
    assert (letter.stage, letter.topic, letter.partition, letter.offset, letter.timestamp_ms) == (
        "test",
        "p.cms.changes",
        1,
        7,
        5,
    )
    assert (letter.code, letter.message, letter.attempts) == (code, str(error), 1)


async def test_where_a_visitor_waits_the_unexplained_is_tried_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tries=3, patient=False)
    # A service that is away in between does not count as one of the tries.
    handler, given = failing(KeyError("x"), Retryable("away"), asyncio.CancelledError(), KeyError("y"))
    await bench.run(handler, monkeypatch)
    assert len(given) == 4
    assert bench.letter.code == "unexplained"
    assert bench.letter.error_class == "builtins.KeyError"


async def test_a_try_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tries=2, try_timeout=0.01, patient=False)

    async def handler(record: Record, sender: Sender) -> None:
        await asyncio.Event().wait()

    await bench.run(handler, monkeypatch)
    assert bench.letter.attempts == 2
    assert "0.01 s" in bench.letter.message


async def test_a_swallowed_limit_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tries=1, try_timeout=0.01, patient=False)

    async def handler(record: Record, sender: Sender) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    await bench.run(handler, monkeypatch)
    assert bench.letter.attempts == 1


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_limit_that_strikes_in_a_send_is_an_outage_of_kafka(
    at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tries=1, try_timeout=0.01)
    bench.bus.hangs = True

    async def handler(record: Record, sender: Sender) -> None:
        bench.bus.hangs = record.attempt < 5
        await (sender.send_all(CHUNKS, "k", [Note()]) if at_once else sender.send(CHUNKS, "k", Note()))

    await bench.run(handler, monkeypatch)
    assert bench.bus.buried == []
    assert bench.bus.sent == [(CHUNKS, "k", RECORD.trace_id)]


async def test_a_dead_letter_is_written_before_the_record_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(bus=FakeBus(failures=[Retryable("no Kafka"), OSError("no network"), TimeoutError()]))
    handler, _ = failing(Permanent("no"))
    await bench.run(handler, monkeypatch)
    assert len(bench.waits) == 3
    assert bench.letter.code == "refused"


async def test_on_dead_comes_after_the_dead_letter_and_cannot_do_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Record, str, int]] = []
    bench = Bench()

    async def on_dead(record: Record, letter: DeadLetter, sender: Sender) -> None:
        told.append((record, letter.code, len(bench.bus.buried)))
        await sender.send(CHUNKS, "k", Note())
        raise ZeroDivisionError

    bench.on_dead = on_dead
    handler, _ = failing(Permanent("no"))
    await bench.run(handler, monkeypatch)
    assert told == [(RECORD, "refused", 1)]
    assert bench.bus.sent == [(CHUNKS, "k", RECORD.trace_id)]


def test_whoever_is_told_of_a_dead_letter_cannot_hold_up_what_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    async def on_dead(record: Record, letter: DeadLetter, sender: Sender) -> None:
        await asyncio.Event().wait()

    async def buried() -> float:
        handler, _ = failing(Permanent("no"))
        begun = asyncio.get_running_loop().time()
        await Bench(on_dead=on_dead).run(handler, monkeypatch)
        return asyncio.get_running_loop().time() - begun

    assert skipping_time.run(buried()) < 60


async def test_a_message_goes_out_as_its_handler_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(record: Record, sender: Sender) -> None:
        await sender.send(CHUNKS, "k", Note(text="a"))
        await sender.send(CHUNKS, "k#1", Note(text="b"), partition_key="k")

    bench = Bench()
    await bench.run(handler, monkeypatch)
    assert bench.bus.messages == [(Note(text="a"), None), (Note(text="b"), "k")]


async def test_odd_bytes_and_signs_stop_no_record_from_coming_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are no UTF-8, errors that quote half a character: what cannot be told is told as well as can be."""
    bench = Bench()
    handler, given = failing(Retryable("later"), Permanent("half of \ud83d"))
    odd = replace(RECORD, key=b"\xff\xfe", headers=(("own", None), ("odd", b"\xff")))
    await bench.run(handler, monkeypatch, odd)
    ((_, key, value, headers),) = bench.bus.buried
    assert (key, value, original_headers(headers)) == (odd.key, odd.value, odd.headers)
    assert bench.letter.message == "half of ?"
    assert len(given) == 2


async def test_a_cancellation_nobody_asked_for_is_an_error_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(bus=FakeBus(failures=[asyncio.CancelledError()]))

    async def on_dead(record: Record, letter: DeadLetter, sender: Sender) -> None:
        raise asyncio.CancelledError

    bench.on_dead = on_dead
    handler, _ = failing(Permanent("no"))
    await bench.run(handler, monkeypatch)
    assert bench.letter.code == "refused"


@pytest.mark.parametrize("lane", LANES)
async def test_what_comes_of_a_record_stays_in_its_lane_or_takes_the_one_that_is_named(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(record: Record, sender: Sender) -> None:
        await sender.send(CHUNKS, "k", Note())
        await sender.send(CHUNKS, "k", Note(), lane="bulk")
        await sender.send_all(CHUNKS, "k", [Note()])
        raise Permanent("no")

    async def on_dead(record: Record, letter: DeadLetter, sender: Sender) -> None:
        await sender.send(RECEIPTS, "k", Note())

    bench = Bench(on_dead=on_dead)
    await bench.run(handler, monkeypatch, replace(RECORD, headers=in_lane(RECORD.headers, lane)))
    assert [topic for topic, *_ in bench.bus.sent] == [CHUNKS, CHUNKS, CHUNKS, RECEIPTS]
    assert bench.bus.lanes == [lane, "bulk", lane, lane]
    ((_, _, _, headers),) = bench.bus.buried
    assert lane_of(headers) == lane  # and so a redrive does not overtake saves by accident


@pytest.mark.parametrize(
    ("headers", "lane"),
    [
        ((), "save"),
        (((LANE_HEADER, b"bulk"),), "bulk"),
        (((LANE_HEADER, b"save"),), "save"),
        (((LANE_HEADER, b"fast"),), "save"),  # of a newer version: rather early than never
        (((LANE_HEADER, None),), "save"),
        (((LANE_HEADER, b"bulk"), ("own", b"1"), (LANE_HEADER, b"save")), "save"),
    ],
)
def test_the_last_lane_named_counts(headers: Headers, lane: Lane) -> None:
    assert lane_of(headers) == lane
    assert lane_of(in_lane(headers, "bulk")) == "bulk"
    assert in_lane(in_lane(headers, "bulk"), "save") == tuple(h for h in headers if h[0] != LANE_HEADER)


async def test_what_happens_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, {"stage": "test", "lane": "", **labels}) or 0.0

    def counts() -> list[float]:
        return [
            counted("pagewire_events_total", outcome="ok"),
            counted("pagewire_events_total", outcome="dead"),
            counted("pagewire_retries_total", code="unavailable"),
            counted("pagewire_dead_letters_total", code="refused"),
            counted("pagewire_handler_seconds_count"),
        ]

    before = counts()
    for errors in ((), (Retryable("later"), Permanent("no"))):
        handler, _ = failing(*errors)
        await Bench().run(handler, monkeypatch)
    assert [now - then for now, then in zip(counts(), before, strict=True)] == [1, 1, 1, 1, 3]
    assert counted("pagewire_in_flight") == 0


def test_a_stage_cannot_read_a_topic_without_dead_letters() -> None:
    handler, _ = failing()
    with pytest.raises(ValueError, match=r"answer\.events"):
        Guard(Stage("test", {ANSWERS: handler}), ANSWERS, handler, FakeBus(), RetryPolicy(1, 1.0), 1.0)


async def test_being_cut_off_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    begun = asyncio.Event()

    async def handler(record: Record, sender: Sender) -> None:
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(bench.run(handler, monkeypatch))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert bench.bus.buried == []
