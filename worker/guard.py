"""Brings one record to its end, whatever its handler does: retries, pause, parking, dead letter.

```
 its turn (pause.py) ─▶ try (time limit) ─ok─────────────────────────────────────────────▶ finished
   ▲                      │ the kind of its error (pipelines.runtime.errors) decides:
   │                      ├─ BURY ───────────────────────────────────────────────────────▶ dead letter ─▶ finished
   ├─ the stage waits ────┤─ PAUSE, PAUSE_THEN_BURY
   │                      │    it fails `tries` times alone, while others go through ────▶ parked, or dead letter
   ├─ this record waits ──┤─ AGAIN, and after `retry_for` seconds ───────────────────────▶ parked (parking.py)
   │                      └─ PARK ───────────────────────────────────────────────────────▶ parked ─▶ finished
```
A failed write to the dead letters is repeated for ever: the record is acknowledged only after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from time import monotonic

import structlog

from pipelines.runtime import metrics, tracing
from pipelines.runtime.bus import Producer
from pipelines.runtime.dead_letters import DeadLetter, Mark, describe, kind_of, mark_headers, to_headers
from pipelines.runtime.errors import WAYS, FailureAction, Kind, PagewireError, Retryable
from pipelines.runtime.record import Headers, Lane, Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Handler, Sender, Stage, StageGroup
from pipelines.runtime.try_limit import TryLimit
from schemas.base import Message
from schemas.topics import Topic, dead_letter_topic
from worker.attempts import Attempts, EndsWorker
from worker.in_flight import RecordInFlight
from worker.parking import Parking, site_of
from worker.pause import Pause, Trouble, TryPermit

log = structlog.get_logger(__name__)

ON_DEAD_TIMEOUT = 10.0  # seconds; a record does not depend on its notification
LOG_EVERY = 10  # failed tries of a record
SEND_TIMEOUT = 30.0  # seconds until an unconfirmed dead letter is sent again


class RecordSender:
    """The Sender a handler gets: sends carry the trace and, unless it names another, the lane of its record."""

    def __init__(self, bus: Producer, record: Record) -> None:
        self._bus = bus
        self._trace_id = record.trace_id
        self._lane = record.lane
        self.cut_off = False  # whether the time limit ended the wait for the broker's confirmation

    async def send(
        self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None, lane: Lane | None = None
    ) -> None:
        sending = self._bus.send(
            topic, key, message, partition_key=partition_key, trace_id=self._trace_id, lane=lane or self._lane
        )
        await self._confirmed(sending)

    async def send_all(self, topic: Topic, key: str, messages: Sequence[Message]) -> None:
        await self._confirmed(self._bus.send_all(topic, key, messages, trace_id=self._trace_id, lane=self._lane))

    async def _confirmed(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except asyncio.CancelledError:
            self.cut_off = True
            raise


class _TimedOut(Exception):
    """The handler did not end within its time."""


@dataclass
class _Failing:
    """The failed tries of a record."""

    site: str | None
    attempts: int = 0
    alone: int = 0  # tries that failed while others went through
    first: tuple[float, datetime] | None = None  # time of the first failure: monotonic seconds and UTC
    since: int | None = None  # the stage's tick (pause.py) of its first try that failed by a service's fault
    waits_alone: bool = True  # else it waits with the whole stage


class Guard:
    """Works on the records of one route of a stage."""

    def __init__(
        self,
        stage: Stage,
        topic: Topic,
        handler: Handler,
        bus: Producer,
        policy: RetryPolicy,
        try_timeout: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        pause: Pause | None = None,
        parking: Parking | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        """
        Args:
            pause: shared by all routes of the stage; default: one of its own.
            parking: of the stage; default: records are retried instead of parked.
            attempts: of the process; default: ends of the process are not counted.
        """
        if not topic.dead_letters:
            raise ValueError(f"stage {stage.name} reads {topic.name}, which has no dead letter topic")
        self._stage = stage
        self._lane = stage.lane or ""  # to Prometheus, an empty label is none
        self._group = StageGroup(stage.name, stage.lane)
        self._topic = topic
        self._handler = handler
        self._dead_letters = dead_letter_topic(topic)
        self._bus = bus
        self._policy = policy
        self._try_timeout = stage.try_timeout or try_timeout
        self._sleep = sleep
        self._pause = pause or Pause(stage.name, self._lane, policy.wait, sleep)
        self._parking = parking
        self._attempts = attempts

    async def __call__(self, work: RecordInFlight) -> None:
        """Return when the record is processed, parked or a dead letter; raises CancelledError only."""
        record = work.record
        with (
            structlog.contextvars.bound_contextvars(
                stage=self._stage.name,
                lane=record.lane,
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                key=(record.key or b"").decode("utf-8", "replace"),
                trace_id=record.trace_id,
            ),
            metrics.IN_FLIGHT.labels(self._stage.name, self._lane).track_inprogress(),
            tracing.following(record),
        ):
            letter = await self._try_until_settled(work)
            if letter is None:
                metrics.EVENTS.labels(self._stage.name, self._lane, "ok").inc()
            elif letter.parked:
                await self._park(work, letter)
                metrics.EVENTS.labels(self._stage.name, self._lane, "parked").inc()
            else:
                await self._bury(work, letter)
                metrics.EVENTS.labels(self._stage.name, self._lane, "dead").inc()
            if self._attempts is not None:
                self._attempts.settled(record)
            if record.letter is not None:
                await self._leave_parking(work, stays=letter is not None and letter.parked)

    async def _try_until_settled(self, work: RecordInFlight) -> DeadLetter | None:
        """The letter to write; None: the handler succeeded."""
        failing = _Failing(site_of(work.record))
        if self._attempts is not None and (deaths := self._attempts.deaths(work.record)):
            if self._attempts.must_bury(work.record):
                killer = EndsWorker(f"{deaths} times the process ended while it worked on this message")
                return describe(work.record, self._stage.name, killer, deaths, datetime.now(UTC))
            work.busy_until = inf
            await self._attempts.wait(work.record)
        while True:
            if self._parking is not None and (trouble := self._parking.trouble(work.record)) is not None:
                return describe(
                    work.record, self._stage.name, trouble, failing.attempts, datetime.now(UTC), parked=True
                )
            work.busy_until = inf  # a pause is no stall: a fresh worker would not end it
            work.idle = True
            turn = await self._pause.turn() if self._stage.patient else TryPermit(0)
            work.idle = False
            failing.attempts += 1
            attempt = failing.attempts
            record = replace(work.record, attempt=attempt, fresh=work.record.fresh and attempt == 1)
            try:
                with tracing.processing(record, self._group, self._topic):
                    await self._try_once(work, record)
            except (Exception, asyncio.CancelledError) as err:
                if _is_cancelled(work, err):
                    self._pause.left(turn)
                    raise
                error = err
            else:
                self._pause.passed(turn, failing.site)
                if self._parking is not None:
                    self._parking.passed(record)
                return None
            failing.first = failing.first or (monotonic(), datetime.now(UTC))
            end = self._end_of(record, error, failing, turn)
            if end is not None:
                return end
            code = error.code if isinstance(error, PagewireError) else type(error).__name__
            metrics.RETRIES.labels(self._stage.name, self._lane, code).inc()
            wait = self._policy.wait(attempt) if failing.waits_alone else 0.0
            # An outage fails every record in the window repeatedly: some log lines are enough.
            level = log.warning if attempt % LOG_EVERY == 1 else log.debug
            level("try failed", attempt=attempt, again_in=round(wait, 2), code=code, error=str(error))
            if failing.waits_alone:
                work.busy_until = monotonic() + wait + self._try_timeout
                work.idle = True
                await self._sleep(wait)

    def _end_of(self, record: Record, error: BaseException, failing: _Failing, turn: TryPermit) -> DeadLetter | None:
        """The letter to write after a failed try; None: another try, and `failing` says whether it waits alone."""
        assert failing.first
        kind = kind_of(error)
        way = WAYS[kind]
        spent = monotonic() - failing.first[0] >= self._policy.retry_for
        buried = describe(record, self._stage.name, error, failing.attempts, failing.first[1])
        failing.waits_alone = True
        if not self._stage.patient:
            failing.alone += kind is Kind.UNKNOWN
            spent = failing.alone >= self._policy.tries if kind is Kind.UNKNOWN else spent
            return buried if spent or kind in (Kind.RECORD, Kind.SETTING) else None
        if way in (FailureAction.PAUSE, FailureAction.PAUSE_THEN_BURY):
            trouble = Trouble(kind, buried.code, buried.message, failing.first[1])
            alone = self._pause.failed(turn, trouble, since=failing.since, site=failing.site)
            failing.since = turn.began if failing.since is None else failing.since
            failing.alone += alone
            failing.waits_alone = alone
            if failing.alone < self._policy.tries:
                return None
            return buried if way is FailureAction.PAUSE_THEN_BURY else self._parked(buried, failing)
        self._pause.left(turn)
        if way is FailureAction.BURY:
            return buried
        if way is FailureAction.AGAIN:
            return self._parked(buried, failing) if spent else None
        parked = self._parked(buried, failing)
        if parked is not None and failing.site is not None:
            assert self._parking is not None
            assert isinstance(error, Exception)
            self._parking.site_failed(failing.site, error)
        return parked

    def _parked(self, letter: DeadLetter, failing: _Failing) -> DeadLetter | None:
        """The letter, marked as parked; None: it cannot be parked, so it is retried."""
        return None if self._parking is None or failing.site is None else replace(letter, parked=True)

    async def _try_once(self, work: RecordInFlight, record: Record) -> None:
        def on_progress() -> None:
            # Twice the limit: the watchdog must not take a try that is being cancelled for a hang.
            work.busy_until = monotonic() + 2 * self._try_timeout

        sender = RecordSender(self._bus, record)
        with metrics.SECONDS.labels(self._stage.name, self._lane).time():
            limit = TryLimit(self._try_timeout, on_progress, step=self._stage.step_limit)
            try:
                trying = self._attempts.trying(record) if self._attempts is not None else nullcontext()
                async with trying, limit:
                    await self._handler(record, sender)
            except TimeoutError:
                if not limit.expired():
                    raise  # the handler's own
        # Checked after success, too: a handler may swallow its cancellation and return.
        if limit.expired():
            if sender.cut_off:
                raise Retryable(f"Kafka did not confirm a message within {self._try_timeout:g} s")
            raise _TimedOut(f"no end, and nothing that got on, for {self._try_timeout:g} s")

    async def _bury(self, work: RecordInFlight, letter: DeadLetter) -> None:
        await self._write(work, work.record.value, to_headers(work.record.headers, letter))
        metrics.DEAD_LETTERS.labels(self._stage.name, self._lane, letter.code).inc()
        log.error("dead letter", code=letter.code, error=letter.message, attempts=letter.attempts)
        await self._notify(work, letter)

    async def _park(self, work: RecordInFlight, letter: DeadLetter) -> None:
        record = work.record
        if record.letter is not None:
            return  # it is parked already
        assert self._parking is not None
        await self._write(work, record.value, to_headers(record.headers, letter), self._parking.partition_for(record))
        log.info("parked", code=letter.code, error=letter.message, attempts=letter.attempts)

    async def _leave_parking(self, work: RecordInFlight, *, stays: bool) -> None:
        """Mark the letter of a parked record that was tried, unless it stays parked."""
        assert self._parking is not None
        assert work.record.letter is not None
        if not stays:
            partition, offset = work.record.letter
            await self._write(work, b"", mark_headers(Mark(offset, "returned", datetime.now(UTC))), partition)
        self._parking.left(work.record, stays=stays)

    async def _write(
        self, work: RecordInFlight, value: bytes | None, headers: Headers, partition: int | None = None
    ) -> None:
        """Write to the dead letters; retry for ever."""
        failures = 0
        while True:
            work.busy_until = monotonic() + 2 * SEND_TIMEOUT
            try:
                async with asyncio.timeout(SEND_TIMEOUT):
                    await self._bus.send_bytes(self._dead_letters, work.record.key, value, headers, partition=partition)
                return
            except (Exception, asyncio.CancelledError) as err:
                if _is_cancelled(work, err):
                    raise
                failures += 1
                wait = self._policy.wait(failures)
                log.error("dead letter not written", again_in=round(wait, 2), error=repr(err))
                work.busy_until = monotonic() + wait + SEND_TIMEOUT
                await self._sleep(wait)

    async def _notify(self, work: RecordInFlight, letter: DeadLetter) -> None:
        if self._stage.on_dead is None:
            return
        sender: Sender = RecordSender(self._bus, work.record)
        try:
            async with asyncio.timeout(ON_DEAD_TIMEOUT):
                await self._stage.on_dead(work.record, letter, sender)
        except (Exception, asyncio.CancelledError) as err:
            if _is_cancelled(work, err):
                raise
            log.error("on_dead failed", error=repr(err))


def _is_cancelled(work: RecordInFlight, err: BaseException) -> bool:
    """Whether this task is cancelled; a cancellation inside the handler is an error like others."""
    task = asyncio.current_task()
    return isinstance(err, asyncio.CancelledError) and (work.abandoned or (task is not None and task.cancelling() > 0))
