"""Ends a worker that has silently stopped working, so that its supervisor starts a new one.

It also ends a worker whose topic was deleted, or deleted and created again: the client would wait for offsets that
never come.

The watchdog reads offsets from the broker, through clients of its own. From the worker it takes only one thing: a
handler within its time limit, or in a paused stage, is no stall. Each partition counts separately: one that does not
move is a stall even if others move. A blocked event loop blocks the watchdog, too: `watch_loop`
uses a thread of faulthandler that needs neither the loop nor the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic

import structlog
from aiokafka import TopicPartition

from adapters.kafka import Broker
from pipelines.runtime.errors import Retryable
from worker.cut_logs import CutLogs
from worker.faust_app import SafeApp
from worker.settings import WorkerLimits, WorkerSettings

log = structlog.get_logger(__name__)

LEAST = 30.0  # seconds of a blocked loop; a busy machine may block us for less
RESETS = 6  # of that timer within its limit
LOOKS_PER_STALL = 6  # looks within the time limit of a stall
NAMED = 5  # partitions in the reason
SURE = 2.0  # seconds after which a missing topic counts as deleted


async def watch_loop(limit: float) -> None:
    """Run for ever; cancel it to end the watch.

    Args:
        limit: seconds of a blocked loop that end the process.
    """
    if sys.__stderr__ is None:  # nowhere to say why
        return
    try:
        while True:
            faulthandler.dump_traceback_later(limit, exit=True, file=sys.__stderr__)
            await asyncio.sleep(limit / RESETS)
    finally:
        faulthandler.cancel_dump_traceback_later()


class WatchedStage:
    """A stage as the watchdog sees it."""

    def __init__(self, app: SafeApp, settings: WorkerSettings) -> None:
        self._app = app
        self.group: str = app.conf.id
        self.topics = [settings.topic_prefix + topic.name for topic in app.stage.routes]

    def assigned(self) -> Collection[TopicPartition]:
        return [TopicPartition(tp.topic, tp.partition) for tp in self._app.consumer.assignment()]

    def busy(self, partition: TopicPartition) -> bool:
        return self._app.in_flight.busy((partition.topic, partition.partition))


class Stall:
    """When a stage stopped moving. Times are monotonic seconds."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: dict[TopicPartition, float] = {}
        self._committed: dict[TopicPartition, int] = {}

    def update(
        self,
        now: float,
        committed: dict[TopicPartition, int],
        behind: Mapping[TopicPartition, int],
        busy: Callable[[TopicPartition], bool],
        *,
        together: bool = False,
    ) -> tuple[list[TopicPartition], float] | None:
        """Partitions that have not moved for longer than the limit, and for how many seconds at most; else None.

        Args:
            together: other workers own the partitions: if one moves, none is stalled.
        """
        moved = {tp for tp in behind if committed.get(tp) != self._committed.get(tp)}
        self._committed = committed
        still = [tp for tp, count in behind.items() if count and tp not in moved and not busy(tp)]
        if together and moved:
            still = []
        self._since = {tp: self._since.get(tp, now) for tp in still}
        late = {tp: now - since for tp, since in self._since.items() if now - since >= self._limit}
        return (sorted(late), max(late.values())) if late else None

    def reset(self) -> None:
        """The broker is away: that is no stall of the worker."""
        self._since = {}


class Ends:
    """The end offsets of the logs at the last look."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, int] = {}

    def update(self, ends: Mapping[TopicPartition, int]) -> str | None:
        """The topic whose log has become shorter, if one has."""
        shorter = next((tp.topic for tp, end in ends.items() if end < self._seen.get(tp, 0)), None)
        self._seen.update(ends)
        return shorter


async def _lost_topic(broker: Broker, stages: Sequence[WatchedStage], ends: Ends) -> str | None:
    """The reason to end because a topic was deleted or cut; None: no topic was."""
    wanted = {name for stage in stages for name in stage.topics}
    there = await broker.topics()
    if not wanted <= there.keys():
        await asyncio.sleep(SURE)
        there = await broker.topics()
    if missing := sorted(wanted - there.keys()):
        return f"topic {', '.join(missing)} was deleted under this worker"
    again = ends.update(await broker.ends(TopicPartition(name, n) for name in wanted for n in there[name]))
    return f"topic {again} was deleted and created again, or cut, under this worker" if again else None


async def watch(stages: Sequence[WatchedStage], settings: WorkerSettings, limits: WorkerLimits, cuts: CutLogs) -> str:
    """Watch until a stage stalls or a topic is gone, and return the reason; cancel it to end it."""
    stalls = [(stage, Stall(limits.stall_timeout)) for stage in stages]
    ends = Ends()
    broker: Broker | None = None
    try:
        while True:
            await asyncio.sleep(limits.stall_timeout / LOOKS_PER_STALL)
            try:
                if broker is None:
                    broker = await _connect(settings)
                if lost := await _lost_topic(broker, stages, ends):
                    return lost
                await cuts.look(broker, [stage.group for stage in stages])
                for stage, stall in stalls:
                    own = set(stage.assigned())
                    together = not own
                    own = own or await _partitions(broker, stage)
                    committed = {tp: at for tp, at in (await broker.committed(stage.group)).items() if tp in own}
                    behind = await broker.behind(stage.group, own)
                    if stalled := stall.update(monotonic(), committed, behind, stage.busy, together=together):
                        still, seconds = stalled
                        where = ", ".join(f"{tp.topic}[{tp.partition}]" for tp in still[:NAMED])
                        waiting = sum(behind[tp] for tp in still)
                        return f"{stage.group}: {waiting} messages wait in {where}, none moved for {seconds:.0f} s"
            except Retryable as err:
                log.warning("watchdog cannot look", error=str(err))
                for _, stall in stalls:
                    stall.reset()
    finally:
        if broker is not None:
            await broker.stop()


async def _partitions(broker: Broker, stage: WatchedStage) -> set[TopicPartition]:
    """All current partitions of the stage's topics."""
    there = await broker.topics()
    return {TopicPartition(name, number) for name in stage.topics for number in there.get(name, ())}


async def _connect(settings: WorkerSettings) -> Broker:
    broker = Broker(settings)
    try:
        await broker.start()
    except BaseException:
        await broker.stop()
        raise
    return broker
