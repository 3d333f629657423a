"""Runs stages in this process, on one event loop, until a signal, and owns all their tasks.

```
 topics exist ─▶ setup ─▶ N apps start ─▶ all have joined their group ─▶ on_ready
                                     SIGTERM, SIGINT ─▶ drain all, stop upstream first, teardown ─▶ 0
      app crash, defect of ours, stall ─▶ stop within limits ─▶ 1       no broker at the start ─▶ 3
```
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence

import structlog
from aiokafka.errors import KafkaConnectionError

from adapters.kafka import KafkaSender, bootstrap_servers, ensure_topics
from adapters.kafka.access import KafkaDenied, forbidden
from adapters.kafka.bus import KafkaBus
from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.runtime import metrics
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.record import Lane
from pipelines.runtime.retry import Pause, patiently
from pipelines.runtime.stage import Stage
from worker.attempts import Attempts
from worker.cut_logs import CutLogs, report_at_start
from worker.faust_app import SafeApp
from worker.guard import Guard
from worker.health import served
from worker.in_flight import InFlight, RecordInFlight
from worker.parking import Parking
from worker.pause import Pause as StagePause
from worker.pause import Trouble, publish_pauses
from worker.settings import LIMITS, WorkerLimits, WorkerSettings
from worker.shares import Shares
from worker.step_limit import step_limits
from worker.watchdog import LEAST, WatchedStage, watch, watch_loop

log = structlog.get_logger(__name__)

Laned = tuple[str, Lane | None]  # a stage's name, and its lane

EXIT_OK = 0
EXIT_CRASHED = 1
EXIT_NO_SERVICE = 3  # docs/reference/commands.md

START_TIMEOUT = 60.0  # seconds to wait for the broker: containers start in any order
START_POLL = 1.0  # seconds
JOIN_TIMEOUT = 180.0  # seconds for all stages to connect: a broker may go and come back meanwhile
TEARDOWN_TIMEOUT = 10.0  # seconds per stage
STOP_TIMEOUT = 15.0  # seconds for all settled apps to leave their groups and close their clients


async def run_stages(
    stages: Sequence[Stage],
    settings: WorkerSettings,
    *,
    limits: WorkerLimits = LIMITS,
    on_ready: Callable[[], None] | None = None,
) -> int:
    """Process the stages' topics until SIGTERM or SIGINT.

    Args:
        stages: upstream first: they are stopped in this order.
        on_ready: called once, when every stage has joined its group on a broker that answers.

    Returns:
        The exit code for the process: 0 stopped by a signal, 1 a failure (a supervisor should start the process
        again), 3 no broker within a minute, or a stage's setup raised Retryable for as long.

    Raises:
        TopicMismatch: a topic has wrong settings. SettingsError: the metrics port is taken.
    """
    pauses: dict[Laned, StagePause] = {
        (stage.name, stage.lane): StagePause(stage.name, stage.lane or "", limits.retry.wait) for stage in stages
    }

    def troubles() -> Iterable[tuple[str, Trouble]]:
        for (name, lane), pause in pauses.items():
            if (trouble := pause.trouble) is not None:
                yield f"{name}-bulk" if lane == "bulk" else name, trouble

    for name, lane in pauses:
        metrics.begin(name, lane or "")
    joined = threading.Event()

    def ready() -> None:
        joined.set()
        if on_ready is not None:
            on_ready()

    with served(settings.host, settings.metrics_port, troubles, joined.is_set):
        return await _run_stages(stages, settings, limits, pauses, ready)


async def _run_stages(
    stages: Sequence[Stage],
    settings: WorkerSettings,
    limits: WorkerLimits,
    pauses: Mapping[Laned, StagePause],
    on_ready: Callable[[], None],
) -> int:
    try:
        await _broker_with_topics(settings)
        sender = KafkaSender(settings)
        await sender.start()
    except Retryable as err:
        log.critical("no broker", kafka=bootstrap_servers(settings), error=str(err))
        return EXIT_NO_SERVICE
    process = _Process(stages, settings, limits, sender, pauses)
    try:
        with step_limits():
            return await process.run(on_ready)
    finally:
        await sender.stop()


class _Process:
    """The running stages, their tasks, and the first failure of one."""

    def __init__(
        self,
        stages: Sequence[Stage],
        settings: WorkerSettings,
        limits: WorkerLimits,
        sender: KafkaSender,
        pauses: Mapping[Laned, StagePause],
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._sender = sender
        self._stages = stages
        self._broken: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
        self._started = asyncio.Event()
        self._set_up: list[Stage] = []
        self._bus = KafkaBus(settings)
        self._letters = OpenLetters(self._bus)
        self._cuts = CutLogs(settings.topic_prefix, sender)
        self._attempts = Attempts(settings.home / "attempts")
        self._pauses = pauses
        self._parkings: dict[Laned, Parking] = {}
        self._apps = [SafeApp(stage, settings, limits, self._in_flight, self._fail) for stage in stages]

    async def run(self, on_ready: Callable[[], None]) -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, stop.set)
        tasks: list[asyncio.Task[str | None]] = [
            asyncio.create_task(self._start(on_ready), name="start"),
            asyncio.create_task(self._watch(), name="watchdog"),
            asyncio.create_task(self._publish_pauses(), name="pauses"),
            asyncio.create_task(watch_loop(self._standstill()), name="watch of the loop"),
            *(asyncio.create_task(self._attend(app), name=f"parking of {app.conf.id}") for app in self._apps),
            *(asyncio.create_task(self._share(app), name=f"shares of {app.conf.id}") for app in self._apps),
            *(asyncio.create_task(_crash(app), name=f"crash of {app.conf.id}") for app in self._apps),
        ]
        asked = asyncio.create_task(stop.wait(), name="signal")
        for task in tasks:
            task.add_done_callback(self._ended)
        try:
            await asyncio.wait((asked, self._broken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for owned in (*tasks, asked):
                owned.cancel()
            await asyncio.wait((*tasks, asked))
        code = EXIT_OK
        if self._broken.done():
            reason, code = self._broken.result()
            log.critical("worker broke", reason=reason)
        else:
            log.info("stopping", groups=[app.conf.id for app in self._apps])
            self._broken.cancel()
        clean = await self._stop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(signum)
        if not clean:
            # Faust's threads are not daemons: they would keep the process alive.
            log.critical("worker did not stop in time")
            sys.stderr.flush()
            os._exit(EXIT_CRASHED)
        return code

    def _standstill(self) -> float:
        """Seconds of a blocked loop that end the process: few where visitors wait."""
        visitors_wait = not all(stage.patient for stage in self._stages)
        return LEAST if visitors_wait else max(LEAST, self._limits.stall_timeout)

    def _in_flight(self, app: SafeApp) -> InFlight:
        stage, wait = app.stage, self._limits.retry.wait
        pause = self._pauses[stage.name, stage.lane]
        parking = None
        if stage.patient:
            parking = Parking(stage, self._letters, self._bus, wait, lambda: _partitions(app))
            self._parkings[stage.name, stage.lane] = parking
        guards = {
            self._settings.topic_prefix + topic.name: Guard(
                stage,
                topic,
                handler,
                self._sender,
                self._limits.retry,
                self._limits.try_timeout,
                pause=pause,
                parking=parking,
                attempts=self._attempts,
            )
            for topic, handler in app.stage.routes.items()
        }

        async def work(item: RecordInFlight) -> None:
            await guards[item.record.topic](item)

        return InFlight(
            window=self._limits.window,
            at_once=app.stage.at_once,
            order_key=app.stage.order_key,
            work=work,
            finished=lambda record: app.consumer.finished(record),
            failed=self._fail,
            opened=self._attempts.adopt,
            early_anywhere=(lambda: any(app.in_flight.early_runs for app in self._apps))
            if stage.lane == "bulk"
            else None,
            records=max(self._limits.records, 2 * (app.stage.at_once or 0)),
            bytes=self._limits.bytes,
        )

    def _fail(self, err: BaseException) -> None:
        if isinstance(err, PagewireError):  # from a setup: no defect of ours, so no traceback
            self._broke(str(err), EXIT_NO_SERVICE if isinstance(err, Retryable) else EXIT_CRASHED)
            return
        log.critical("defect in the worker", exc_info=err)
        self._broke(repr(err))

    def _broke(self, reason: str, code: int = EXIT_CRASHED) -> None:
        if not self._broken.done():
            self._broken.set_result((reason, code))

    def _ended(self, task: asyncio.Task[str | None]) -> None:
        if task.cancelled():
            return
        if err := task.exception():
            self._fail(err)
        elif reason := task.result():
            self._broke(reason)

    async def _start(self, on_ready: Callable[[], None]) -> None:
        for stage in self._stages:
            self._set_up.append(stage)  # first: a setup that fails half-way may have clients to close
            if stage.setup is not None:
                await patiently(stage.setup, _at_start(stage.name))
        await report_at_start(self._cuts, self._stages, self._settings)
        try:
            async with asyncio.timeout(JOIN_TIMEOUT):
                await asyncio.gather(*(app.start() for app in self._apps))
        except (TimeoutError, KafkaConnectionError) as err:
            raise Retryable(f"the stages could not connect to Kafka: {err!r}") from err
        self._started.set()
        await asyncio.gather(*(app.assigned.wait() for app in self._apps))
        log.info("ready", groups=[app.conf.id for app in self._apps])
        on_ready()

    async def _attend(self, app: SafeApp) -> None:
        await self._started.wait()
        if (parking := self._parkings.get((app.stage.name, app.stage.lane))) is not None:
            await parking.attend(app.in_flight)

    async def _share(self, app: SafeApp) -> None:
        await self._started.wait()
        # One site shares with no other, and early records cost a second read of the log.
        if app.stage.lane == "bulk" and len(self._settings.sites) > 1:
            await Shares(app.stage, self._bus, lambda: _partitions(app), lambda: app.consumer).attend(app.in_flight)

    async def _publish_pauses(self) -> None:
        await self._started.wait()
        await publish_pauses(self._pauses, self._sender)

    async def _watch(self) -> str:
        await self._started.wait()
        return await watch(
            [WatchedStage(app, self._settings) for app in self._apps], self._settings, self._limits, self._cuts
        )

    async def _stop(self) -> bool:
        """Stop all apps; returns whether all ended in time."""
        # All drain and commit concurrently, within the limits of one.
        settled = await asyncio.gather(
            *(app.consumer.settle(for_good=True) for app in self._apps), return_exceptions=True
        )
        for err in filter(None, settled):
            log.error("not settled; unfinished work will be repeated", error=repr(err))
        clean = True
        deadline = asyncio.get_running_loop().time() + STOP_TIMEOUT
        for app in self._apps:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            clean &= await _within(left, app.stop(), f"stop of {app.conf.id}")
        for pause in self._pauses.values():
            await pause.aclose()
        clean &= await _within(TEARDOWN_TIMEOUT, self._letters.aclose(), "the look at the dead letters")
        for stage in self._set_up:
            if stage.teardown is not None:
                clean &= await _within(TEARDOWN_TIMEOUT, _ending(stage.teardown), f"teardown of {stage.name}")
        self._attempts.close()  # we have cancelled the unfinished tries ourselves
        return clean


def _at_start(name: str | None = None) -> Pause:
    """Retry for START_TIMEOUT from now on. `name`: of the waiting stage, to log each wait.

    A refusal by Kafka is logged in any case, once, because it does not end by itself.
    """
    deadline = asyncio.get_running_loop().time() + START_TIMEOUT
    told: set[str] = set()

    def pause(err: Retryable, failures: int) -> float | None:
        if asyncio.get_running_loop().time() + START_POLL > deadline:
            return None
        if name is not None:
            log.warning("waiting for a service", stage=name, error=str(err))
        elif isinstance(err, KafkaDenied) and err.code not in told:
            told.add(err.code)
            log.warning("waiting for a service", error=str(err))
        return START_POLL

    return pause


def _partitions(app: SafeApp) -> set[tuple[str, int]]:
    return {(tp.topic, tp.partition) for tp in app.consumer.assignment()}


async def _crash(app: SafeApp) -> str:
    await app._crashed.wait()
    if (said := forbidden(app.crash_reason)) is not None:
        return f"{app.conf.id}: {said}"
    return f"{app.conf.id}: Faust crashed: {app.crash_reason!r}"


async def _ending(teardown: Callable[[], Awaitable[None]]) -> None:
    await teardown()


async def _within(seconds: float, ending: Coroutine[object, object, object], what: str) -> bool:
    # Not wait_for: Faust swallows the cancellation.
    task = asyncio.create_task(ending, name=what)
    await asyncio.wait((task,), timeout=seconds)
    if not task.done():
        task.cancel()
        log.error("not stopped in time", what=what, seconds=round(seconds, 1))
        return False
    if task.cancelled() or task.exception() is not None:
        log.error("not stopped cleanly", what=what, error=repr(None if task.cancelled() else task.exception()))
        return False
    return True


async def _broker_with_topics(settings: WorkerSettings) -> None:
    created = await patiently(lambda: ensure_topics(bootstrap_servers(settings), settings), _at_start())
    if created:
        log.info("topics created", topics=created)
