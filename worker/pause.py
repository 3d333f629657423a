"""A stage's pause: while a service is away nobody hammers it, and one record at a time looks whether it is back.

```
 open ── a record fails by a service's fault ──▶ paused ── wait, growing ──▶ one record tries ── passes ──▶ open
   │                                               ▲                           │ fails: the next wait, the next record
   └─ it fails, but others have gone through since: it is alone with its trouble, and waits for itself
```
"Alone" is what tells a service that is away from a record that is bad, whatever the error says of itself: others have
begun and passed since it failed first, and nobody else has failed together with it since then.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from pipelines.runtime import metrics
from pipelines.runtime.errors import Kind

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Trouble:
    """What is wrong, for whoever has to put it right."""

    kind: Kind
    code: str
    message: str
    since: datetime


@dataclass(frozen=True)
class Turn:
    """The right to one try."""

    began: int  # in tries of this stage
    probe: bool = False  # it looks for all others whether the trouble is over


class Pause:
    """One per stage and lane of a process, shared by all its records. On one event loop, no locks; close it."""

    def __init__(
        self,
        stage: str,
        lane: str,
        wait: Callable[[int], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`wait`: seconds until the next look, after so many failed ones."""
        self._labels = (stage, lane)
        self._wait = wait
        self._sleep = sleep
        self._trouble: Trouble | None = None
        self._failures = 0  # of probes, the first failure included
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._pacer: asyncio.Task[None] | None = None
        self._due = False  # the next look may be taken
        self._tick = 0
        self._passed = self._passed_began = self._shared = 0  # ticks: newest pass, its begin, newest shared failure
        self._shown: str | None = None
        self._lonely: set[str] = set()  # sites whose records fail while others' pass

    @property
    def trouble(self) -> Trouble | None:
        """Why the stage is paused. Nothing before a second record has tried in vain: the first may be a hiccup."""
        return self._trouble if self._failures > 1 else None

    @property
    def paused(self) -> bool:
        return self._trouble is not None

    async def turn(self) -> Turn:
        """Return when it is this record's turn to be tried; end it with `passed`, `failed` or `left`."""
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
                return Turn(self._next(), probe=True)
        return Turn(self._next())

    def passed(self, turn: Turn, site: str | None = None) -> None:
        """The record went through."""
        self._passed, self._passed_began = self._next(), max(self._passed_began, turn.began)
        if site is not None:
            self._lonely.discard(site)
        if turn.probe:
            self._open()

    def failed(self, turn: Turn, trouble: Trouble, *, since: int | None, site: str | None = None) -> bool:
        """The record failed by something that may be a service's fault.

        Args:
            since: `began` of its first try that failed; None: it is this one.

        Returns:
            Whether it is alone with that: then the others go on, and it has to wait for itself.
        """
        others_pass = self._passed > self._shared
        if since is not None and others_pass and self._passed_began > since:
            if site is not None:
                self._lonely.add(site)
            if turn.probe:  # in doubt the others may try
                self._open()
            return True
        if site in self._lonely and others_pass and not turn.probe:
            return True
        self._shared = self._next()
        if turn.probe or self._trouble is None:
            self._trouble = (
                trouble
                if self._trouble is None
                else Trouble(trouble.kind, trouble.code, trouble.message, self._trouble.since)
            )
            self._failures += 1
            self._tell()
            self._pacer = asyncio.create_task(self._pace(), name=f"pause of {self._labels[0]}")
        return False

    def left(self, turn: Turn) -> None:
        """The try was cut off, or ended in a way that says nothing of services: somebody else looks."""
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

    def _tell(self) -> None:
        trouble = self.trouble
        if trouble is None:
            return
        self._show(trouble.code)
        if self._failures == 2:
            log.warning(
                "stage paused", stage=self._labels[0], lane=self._labels[1], code=trouble.code, error=trouble.message
            )

    def _show(self, code: str | None) -> None:
        """One gauge at a time: of the reason that there is now."""
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
