"""Long work for a site in the background: one gateway does it, all show it, one run of a kind per site at a time.

    start ─▶ state of the site ◀── last, stop
                 ▲ claimed by replacing the state, valid for LEASE, renewed every BEAT
    task ────────┘ the work: its progress, at its end the result

If a gateway dies, its claim ends with the lease; the run is shown as broken off, and another one may begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Generic, Literal, TypeVar

import structlog
from pydantic import AwareDatetime, Field

from pipelines.operate.states import Kind, State, States
from pipelines.runtime.errors import PagewireError, Permanent, Retryable
from schemas.base import SiteId, Wire
from schemas.evaluation import ArmProgress, EvaluationPlan

log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=30)
BEAT = 5.0  # seconds between two writes of the progress
END_TRIES = 60  # to write the end, a beat apart: five minutes
LAST_NOTE = 5.0  # seconds for the last write when the gateway ends
STOPPED = "stopped"

RunState = Literal["running", "broken-off", "done", "failed"]
Changes = dict[str, object]
"""Fields of a run with their new values."""


class SiteRun(Wire):
    """A run that is at work on a site, or the last one of its kind."""

    site: SiteId
    by: str = Field(description="Name of the key that began it.")
    began_at: AwareDatetime
    until: AwareDatetime = Field(description="When it counts as broken off, unless it says something before.")
    ended_at: AwareDatetime | None = None
    code: str = Field(default="", description="Why it failed, as in problem documents.")
    error: str = ""

    def state(self, now: datetime) -> RunState:
        if self.ended_at is not None:
            return "failed" if self.code else "done"
        return "running" if now < self.until else "broken-off"


RunType = TypeVar("RunType", bound=SiteRun)
Work = Callable[[Callable[[Changes], None]], Awaitable[Changes]]
"""Does the work; is given what takes its progress, and returns its result."""


class AlreadyRunning(Permanent):
    """A run of this kind is at work on the site."""

    code = "already-running"


class SiteRuns(Generic[RunType]):
    """One per gateway and kind; close it before the servers' clients.

    Args:
        now: the gateways' common time.
        busy: what is raised when one is at work already.
    """

    def __init__(
        self,
        states: States,
        kind: Kind,
        shape: type[RunType],
        now: Callable[[], datetime],
        busy: type[Permanent] = AlreadyRunning,
    ) -> None:
        self.states = states
        self.kind: Kind = kind
        self.shape = shape
        self.now = now
        self._busy = busy
        self._tasks: set[asyncio.Task[None]] = set()

    async def last(self, site: str) -> RunType | None:
        """The last run; None: there was none. Raises: Retryable."""
        found = await self.states.get(self.kind, site)
        return self.shape.stored(found.value) if found else None

    def claim(self) -> tuple[datetime, datetime]:
        """When a run begins that begins now, and until when it is claimed."""
        now = self.now()
        return now, now + LEASE

    async def start(self, run: RunType, work: Work) -> RunType:
        """Begin; returns at once. Raises: Permanent: `busy`: one runs, here or at another gateway. Retryable."""
        before = await self.states.get(self.kind, run.site)
        if before is not None and self.shape.stored(before.value).state(self.now()) == "running":
            raise self._busy(f"{self.kind}: one of site {run.site} is at work already; try again when it is done")
        claim = await self.states.replace(self.kind, run.site, run, before)
        if claim is None:
            raise self._busy(f"{self.kind}: one of site {run.site} has just been begun elsewhere")
        noting = _Noting(self, run, claim)
        task = asyncio.create_task(_work(noting, work), name=f"{self.kind} {run.site}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    async def stop(self, site: str) -> bool:
        """Have the run that is at work stop within a beat, whichever gateway does it. False: none is. Raises:
        Retryable."""
        while (found := await self.states.get(self.kind, site)) is not None:
            run = self.shape.stored(found.value)
            if run.state(self.now()) != "running":
                return False
            stopping = run.model_copy(update={"code": STOPPED, "error": "somebody stopped it"})
            if await self.states.replace(self.kind, site, stopping, found) is not None:
                return True
        return False

    async def aclose(self) -> None:
        """Stop the running work of this gateway."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _work(noting: _Noting[RunType], work: Work) -> None:
    working = asyncio.ensure_future(work(noting.progressed))
    beating = asyncio.create_task(noting.beat())
    try:
        await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await noting.end(_outcome(noting.kind, working))
        elif noting.stopped:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await noting.end({})
        # Else the claim is lost, or could not be renewed for too long.
    except asyncio.CancelledError:
        with suppress(PagewireError, TimeoutError):
            async with asyncio.timeout(LAST_NOTE):
                await noting.end({"code": STOPPED, "error": "the gateway that did it has ended"})
        raise
    finally:
        for task in (working, beating):
            task.cancel()
        await asyncio.gather(working, beating, return_exceptions=True)


class _Noting(Generic[RunType]):
    """Writes the state of one run, which renews its claim."""

    def __init__(self, runs: SiteRuns[RunType], run: RunType, claim: State) -> None:
        self.kind = runs.kind
        self.run = run
        self.stopped = False  # by somebody
        self._states = runs.states
        self._shape = runs.shape
        self._now = runs.now
        self._claim = claim
        self._writing = asyncio.Lock()

    def progressed(self, changes: Changes) -> None:
        self.run = self.run.model_copy(update=changes)

    async def beat(self) -> None:
        """Renew until the claim is lost, or somebody stops the run."""
        while True:
            await asyncio.sleep(BEAT)
            try:
                if not await self._note({"until": self._now() + LEASE}) or self.stopped:
                    return
            except Retryable as err:
                log.warning("a run's progress cannot be noted", kind=self.kind, site=self.run.site, error=str(err))
                if self._now() > self.run.until:
                    return

    async def end(self, outcome: Changes) -> None:
        """Write the end, with retries; after minutes without success the run is shown as broken off."""
        for _ in range(END_TRIES):
            try:
                if not await self._note(outcome | {"ended_at": self._now()}):
                    log.warning("a run's end is not noted: another has begun", kind=self.kind, site=self.run.site)
                return
            except Retryable as err:
                log.warning("a run's end cannot be noted", kind=self.kind, site=self.run.site, error=str(err))
                await asyncio.sleep(BEAT)

    async def _note(self, update: Changes) -> bool:
        """False: another run has the claim."""
        async with self._writing:
            noted = self.run.model_copy(update=update)
            claim = await self._states.replace(self.kind, noted.site, noted, self._claim)
            if claim is None:  # somebody stops it; or our own last write, whose answer was lost
                now = await self._states.get(self.kind, noted.site)
                kept = self._shape.stored(now.value) if now else None
                if now is None or kept is None or kept.began_at != noted.began_at:
                    return False
                if kept.code == STOPPED and not noted.code:
                    self.stopped = True
                    noted = noted.model_copy(update={"code": kept.code, "error": kept.error})
                claim = await self._states.replace(self.kind, noted.site, noted, now)
            if claim is None:
                return False
            self.run, self._claim = noted, claim
            return True


def _outcome(kind: Kind, working: asyncio.Future[Changes]) -> Changes:
    error = working.exception()
    if error is None:
        return working.result()
    if isinstance(error, PagewireError):
        return {"code": error.code, "error": str(error)}
    log.error("a run has failed", kind=kind, exc_info=error)
    return {"code": "internal", "error": "an unexpected error; the gateway's log knows more"}


class EvaluationRunning(AlreadyRunning):
    """An evaluation of the site is at work."""

    code = "evaluation-running"


class EvaluationRun(SiteRun):
    """The evaluation that is at work on a site, or the last one."""

    plan: EvaluationPlan
    note: str = ""
    step: str = Field(default="", description="What it is at: `asking` or `judging`, done of total.")
    arm: str = Field(default="", description="The arm that it is at.")
    done: int = 0
    total: int = 0
    calls: int = Field(default=0, description="Calls of the model for the answers so far.")
    judge_calls: int = 0
    arms: tuple[ArmProgress, ...] = ()
    spent: str = Field(default="", description="Which budget was spent before all was asked: `calls`, `judge_calls`.")


class LastEvaluation(Wire):
    """The answer of `GET .../evaluation-run`."""

    state: RunState | None = Field(description="Null: there was none yet. `broken-off`: its gateway died.")
    run: EvaluationRun | None


EvaluationRuns = SiteRuns[EvaluationRun]
