"""Brings one record to its end, whatever its handler does: tries, waits, dead letter.

```
 try (time limit) ─ok──────────────────────────────────────────▶ finished
   │ Retryable, or a send the broker did not confirm: wait, again, for `retry_for` seconds ─┐
   │ unexplained error, timeout: wait, again, `tries` times ────────────────────────────────┤
   │ Permanent, WireError ──────────────────────────────────────────────────────────────────┴▶ dead letter ─▶ finished
```
A dead letter that cannot be written is tried for ever: the record is not acknowledged before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import Protocol

import structlog

from pipelines.runtime import metrics
from pipelines.runtime.dead_letters import DeadLetter, describe, to_headers
from pipelines.runtime.errors import PagewireError, Permanent, Retryable
from pipelines.runtime.record import Headers, Lane, Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Handler, Sender, Stage
from pipelines.worker.in_flight import Work
from schemas.base import Message, WireError
from schemas.topics import Topic, dead_letter_topic

log = structlog.get_logger(__name__)

ON_DEAD_TIMEOUT = 10.0  # seconds; telling others of a dead letter is a courtesy, not a duty
LOG_EVERY = 10  # failed tries of a record
SEND_TIMEOUT = 30.0  # seconds until an unconfirmed dead letter is sent again


class Bus(Protocol):
    """What the guard needs of Kafka; adapters.kafka.KafkaSender fits."""

    async def send(
        self,
        topic: Topic,
        key: str,
        message: Message,
        *,
        partition_key: str | None = None,
        trace_id: str | None = None,
        lane: Lane = "save",
    ) -> None: ...

    async def send_bytes(self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers) -> None: ...


class RecordSender:
    """The Sender a handler gets: sends carry the trace and the lane of its record."""

    def __init__(self, bus: Bus, record: Record) -> None:
        self._bus = bus
        self._trace_id = record.trace_id
        self._lane = record.lane
        self.cut_off = False  # whether the time limit struck while the broker's confirmation was awaited

    async def send(self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None) -> None:
        try:
            await self._bus.send(
                topic, key, message, partition_key=partition_key, trace_id=self._trace_id, lane=self._lane
            )
        except asyncio.CancelledError:
            self.cut_off = True
            raise


class _TimedOut(Exception):
    """The handler did not end within its time."""


class Guard:
    """Works on the records of one route of a stage."""

    def __init__(
        self,
        stage: Stage,
        topic: Topic,
        handler: Handler,
        bus: Bus,
        policy: RetryPolicy,
        try_timeout: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not topic.dead_letters:
            raise ValueError(f"stage {stage.name} reads {topic.name}, which has no dead letter topic")
        self._stage = stage
        self._lane = stage.lane or ""  # to Prometheus, an empty label is none
        self._handler = handler
        self._dead_letters = dead_letter_topic(topic)
        self._bus = bus
        self._policy = policy
        self._try_timeout = stage.try_timeout or try_timeout
        self._sleep = sleep

    async def __call__(self, work: Work) -> None:
        """Return when the record is worked on or its dead letter is confirmed; raises CancelledError only."""
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
        ):
            failure = await self._try_until_settled(work)
            if failure is None:
                metrics.EVENTS.labels(self._stage.name, self._lane, "ok").inc()
                return
            await self._bury(work, failure)
            metrics.EVENTS.labels(self._stage.name, self._lane, "dead").inc()

    async def _try_until_settled(self, work: Work) -> DeadLetter | None:
        unexplained = attempt = 0
        first_failed: tuple[float, datetime] | None = None
        while True:
            attempt += 1
            record = replace(work.record, attempt=attempt, fresh=work.record.fresh and attempt == 1)
            # A grace beyond the limit: the watchdog must not take a try that is just being cut off for a hang.
            work.busy_until = monotonic() + 2 * self._try_timeout
            try:
                await self._try_once(record)
                return None
            except (Exception, asyncio.CancelledError) as err:
                if _cut_off(work, err):
                    raise
                error = err
            now = monotonic()
            first_failed = first_failed or (now, datetime.now(UTC))
            if isinstance(error, Retryable):
                give_up = now - first_failed[0] >= self._policy.retry_for
            elif isinstance(error, Permanent | WireError):
                give_up = True
            else:
                unexplained += 1
                give_up = unexplained >= self._policy.tries
            if give_up:
                return describe(record, self._stage.name, error, attempt, first_failed[1])
            wait = self._policy.wait(attempt)
            code = error.code if isinstance(error, PagewireError) else type(error).__name__
            metrics.RETRIES.labels(self._stage.name, self._lane, code).inc()
            # An outage fails every record in the window again and again: some lines of it are enough.
            tell = log.warning if attempt % LOG_EVERY == 1 else log.debug
            tell("try failed", attempt=attempt, again_in=round(wait, 2), code=code, error=str(error))
            work.busy_until = monotonic() + wait + self._try_timeout
            await self._sleep(wait)

    async def _try_once(self, record: Record) -> None:
        sender = RecordSender(self._bus, record)
        with metrics.SECONDS.labels(self._stage.name, self._lane).time():
            limit = asyncio.timeout(self._try_timeout)
            try:
                async with limit:
                    await self._handler(record, sender)
            except TimeoutError:
                if not limit.expired():
                    raise  # the handler's own
        # Asked here too, not only on TimeoutError: a handler may swallow the cut-off and return.
        if limit.expired():
            if sender.cut_off:
                raise Retryable(f"Kafka did not confirm a message within {self._try_timeout:g} s")
            raise _TimedOut(f"no end after {self._try_timeout:g} s")

    async def _bury(self, work: Work, letter: DeadLetter) -> None:
        record = work.record
        headers = to_headers(record.headers, letter)
        failures = 0
        while True:
            work.busy_until = monotonic() + 2 * SEND_TIMEOUT
            try:
                async with asyncio.timeout(SEND_TIMEOUT):
                    await self._bus.send_bytes(self._dead_letters, record.key, record.value, headers)
                break
            except (Exception, asyncio.CancelledError) as err:
                if _cut_off(work, err):
                    raise
                failures += 1
                wait = self._policy.wait(failures)
                log.error("dead letter not written", again_in=round(wait, 2), error=repr(err))
                work.busy_until = monotonic() + wait + SEND_TIMEOUT
                await self._sleep(wait)
        metrics.DEAD_LETTERS.labels(self._stage.name, self._lane, letter.code).inc()
        log.error("dead letter", code=letter.code, error=letter.message, attempts=letter.attempts)
        await self._tell(work, letter)

    async def _tell(self, work: Work, letter: DeadLetter) -> None:
        if self._stage.on_dead is None:
            return
        sender: Sender = RecordSender(self._bus, work.record)
        try:
            async with asyncio.timeout(ON_DEAD_TIMEOUT):
                await self._stage.on_dead(work.record, letter, sender)
        except (Exception, asyncio.CancelledError) as err:
            if _cut_off(work, err):
                raise
            log.error("on_dead failed", error=repr(err))


def _cut_off(work: Work, err: BaseException) -> bool:
    """Whether it is we who are cancelled; else something the handler awaited was, which is an error like others."""
    task = asyncio.current_task()
    return isinstance(err, asyncio.CancelledError) and (work.abandoned or (task is not None and task.cancelling() > 0))
