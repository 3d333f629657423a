"""A stage's pause: while a service is away, all records wait and one at a time probes the service.

```
 open ── a record fails by a service's fault ──▶ paused ── wait, growing ──▶ one record tries ── passes ──▶ open
   │                                               ▲                           │ fails: the next wait, the next record
   └─ it fails, but others have passed since: it fails alone, and waits alone
```
A record fails alone if others have begun and passed since its first failure, and no other has failed in between. This
distinguishes a bad record from a service that is away, whatever the error says.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from pipelines.runtime import metrics
from pipelines.runtime.bus import Producer
from pipelines.runtime.errors import Kind, Retryable
from pipelines.runtime.record import Lane
from schemas.topics import PAUSES
from schemas.worker import PAUSES_KEY, PauseNote

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Trouble:
    """Why a stage is paused, for operators."""

    kind: Kind
    code: str
    message: str
    since: datetime


@dataclass(frozen=True)
class TryPermit:
    """The right to one try."""

    began: int  # tick of the stage
    probe: bool = False  # its outcome decides for all waiting records


class Pause:
    """One per stage and lane of a process, shared by all its records. On one event loop, no locks; close it."""

    def __init__(
        self,
        stage: str,
        lane: str,
        wait: Callable[[int], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`wait`: seconds until the next probe, after so many failed ones."""
        self._labels = (stage, lane)
        self._wait = wait
        self._sleep = sleep
        self._trouble: Trouble | None = None
        self._failures = 0  # of probes, the first failure included
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._pacer: asyncio.Task[None] | None = None
        self._due = False  # the next probe may start
        self._tick = 0
        self._passed = self._passed_began = self._shared = 0  # ticks: newest pass, its begin, newest shared failure
        self._shown: str | None = None
        self._failing_alone: set[str] = set()  # sites whose records fail while others' pass

    @property
    def trouble(self) -> Trouble | None:
        """Why the stage is paused; None until a second record has failed, since the first failure may be transient."""
        return self._trouble if self._failures > 1 else None

    @property
    def paused(self) -> bool:
        return self._trouble is not None

    async def turn(self) -> TryPermit:
        """Return when the record may be tried; end the turn with `passed`, `failed` or `left`."""
        while self._trouble is not None:
            mine: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting.append(mine)
            self._let_one()
            try:
                probe = await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled() and mine.result():
                    self._look_is_due()
                raise
            if probe:
                return TryPermit(self._next(), probe=True)
        return TryPermit(self._next())

    def passed(self, turn: TryPermit, site: str | None = None) -> None:
        """The record succeeded."""
        self._passed, self._passed_began = self._next(), max(self._passed_began, turn.began)
        if site is not None:
            self._failing_alone.discard(site)
        if turn.probe:
            self._open()

    def failed(self, turn: TryPermit, trouble: Trouble, *, since: int | None, site: str | None = None) -> bool:
        """The record failed, possibly by a service's fault.

        Args:
            since: `began` of its first failed try; None: it is this one.

        Returns:
            Whether it fails alone: the others go on, and it waits alone.
        """
        others_pass = self._passed > self._shared
        if since is not None and others_pass and self._passed_began > since:
            if site is not None:
                self._failing_alone.add(site)
            if turn.probe:  # in doubt, let the others try
                self._open()
            return True
        if site in self._failing_alone and others_pass and not turn.probe:
            return True
        self._shared = self._next()
        if turn.probe or self._trouble is None:
            self._trouble = replace(trouble, since=self._trouble.since) if self._trouble else trouble
            self._failures += 1
            self._report()
            self._pacer = asyncio.create_task(self._pace(), name=f"pause of {self._labels[0]}")
        return False

    def left(self, turn: TryPermit) -> None:
        """The try was cancelled, or its outcome says nothing about services: another record probes."""
        if turn.probe and self._trouble is not None:
            self._look_is_due()

    async def aclose(self) -> None:
        if self._pacer is not None:
            self._pacer.cancel()
            await asyncio.gather(self._pacer, return_exceptions=True)
        self._show(None)

    def _next(self) -> int:
        self._tick += 1
        return self._tick

    async def _pace(self) -> None:
        await self._sleep(self._wait(self._failures))
        self._look_is_due()

    def _look_is_due(self) -> None:
        self._due = True
        self._let_one()

    def _let_one(self) -> None:
        while self._due and self._waiting:
            first = self._waiting.popleft()
            if not first.done():
                self._due = False
                first.set_result(True)

    def _report(self) -> None:
        trouble = self.trouble
        if trouble is None:
            return
        self._show(trouble.code)
        if self._failures == 2:
            log.warning(
                "stage paused", stage=self._labels[0], lane=self._labels[1], code=trouble.code, error=trouble.message
            )

    def _show(self, code: str | None) -> None:
        """Set the gauge of the current reason and remove that of the last one."""
        if self._shown is not None and self._shown != code:
            metrics.PAUSED.remove(*self._labels, self._shown)
        if code is not None:
            metrics.PAUSED.labels(*self._labels, code).set(1)
        self._shown = code

    def _open(self) -> None:
        if (trouble := self.trouble) is not None:
            seconds = (datetime.now(UTC) - trouble.since).total_seconds()
            log.info("stage goes on", stage=self._labels[0], lane=self._labels[1], paused_seconds=round(seconds, 1))
            self._show(None)
        self._trouble, self._failures, self._due = None, 0, False
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            if not one.done():
                one.set_result(False)


LOOK_EVERY = 1.0  # seconds
REPEAT_EVERY = 30.0  # seconds; readers drop a note after NOTE_TTL (pipelines.operate.status)
MAX_REASON = 1_000  # characters

Stages = Mapping[tuple[str, Lane | None], Pause]


async def publish_pauses(stages: Stages, bus: Producer) -> None:
    """Publish to `worker.pauses` which stages of this process are paused, for `pagewire status` on any machine.

    Runs for ever; cancel it to end it.
    """
    worker = f"{socket.gethostname()}:{os.getpid()}"
    said: dict[tuple[str, Lane | None], tuple[Trouble, float]] = {}
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK_EVERY)
        for (stage, lane), pause in stages.items():
            trouble, before = pause.trouble, said.get((stage, lane))
            if trouble is None and before is None:
                continue
            if trouble is not None and before is not None and before[0] == trouble and loop.time() < before[1]:
                continue
            shown = trouble or (before and before[0])
            assert shown
            note = PauseNote(
                worker=worker,
                stage=stage,
                lane=lane,
                code=shown.code,
                reason=shown.message[:MAX_REASON],
                since=shown.since,
                at=datetime.now(UTC),
                over=trouble is None,
            )
            try:
                await bus.send(PAUSES, PAUSES_KEY, note)
            except Retryable as err:  # sent again at the next look
                log.debug("pause not published", error=str(err))
                continue
            if trouble is None:
                del said[stage, lane]
            else:
                said[stage, lane] = trouble, loop.time() + REPEAT_EVERY
