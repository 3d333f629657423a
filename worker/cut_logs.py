"""Reports messages that were deleted from a topic before a stage had read them.

If a group's offset lies before the oldest kept message, Kafka moves the group there silently, and nothing shows the
loss afterwards. So it is logged, and noted in `worker.pauses` for `pagewire status`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from aiokafka import TopicPartition

from adapters.kafka import Broker, group_id
from adapters.kafka.broker import broker
from pipelines.operate.status import KEPT, sentence, what_to_do
from pipelines.runtime.bus import Producer
from pipelines.runtime.errors import Retryable
from pipelines.runtime.stage import Stage
from schemas.topics import PAUSES
from schemas.worker import CUTS_KEY, PauseNote
from worker.settings import WorkerSettings

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Cut:
    """Messages of a partition that a group has not read and never will."""

    group: str
    partition: TopicPartition
    gone: int  # offsets; a compacted topic has fewer messages than offsets


class CutLogs:
    """Reports each cut once."""

    def __init__(self, prefix: str, bus: Producer) -> None:
        self._kept = {prefix + topic.name: topic for topic in KEPT}
        self._bus = bus
        self._reported: dict[tuple[str, TopicPartition], int] = {}
        self._unsent: list[PauseNote] = []

    async def look(self, client: Broker, groups: Iterable[str]) -> None:
        """Warn of messages that these groups have lost since the last call. Raises: Retryable."""
        for group in groups:
            committed = {tp: at for tp, at in (await client.committed(group)).items() if tp.topic in self._kept}
            cuts = self.new_cuts(group, committed, await client.begins(committed))
            for cut in cuts:
                log.error(
                    "messages were deleted before they were read",
                    group=cut.group,
                    topic=cut.partition.topic,
                    partition=cut.partition.partition,
                    gone=cut.gone,
                    do=what_to_do(self._kept[cut.partition.topic]),
                )
            self._note(group, cuts)
        with suppress(Retryable):  # unsent notes go with the next call
            while self._unsent:
                await self._bus.send(PAUSES, CUTS_KEY, self._unsent[0])
                del self._unsent[0]

    def new_cuts(
        self, group: str, committed: Mapping[TopicPartition, int], begins: Mapping[TopicPartition, int]
    ) -> list[Cut]:
        """Cuts not reported yet, given the group's committed offsets and the partitions' first ones."""
        found = []
        for tp in sorted(committed):
            # Read after `committed`: the group may have progressed meanwhile, so the count is never too large.
            if begins[tp] > max(committed[tp], self._reported.get((group, tp), 0)):
                found.append(Cut(group, tp, begins[tp] - max(committed[tp], self._reported.get((group, tp), 0))))
                self._reported[group, tp] = begins[tp]
        return found

    def _note(self, group: str, cuts: Iterable[Cut]) -> None:
        missed: dict[str, dict[int, int]] = {}
        for cut in cuts:
            missed.setdefault(cut.partition.topic, {})[cut.partition.partition] = cut.gone
        now = datetime.now(UTC)
        for name, gone in missed.items():
            self._unsent.append(
                PauseNote(
                    worker=f"{socket.gethostname()}:{os.getpid()}",
                    stage=group,
                    code="log-cut",
                    reason=sentence(group, self._kept[name], name, gone),
                    since=now,
                    at=now,
                )
            )


async def report_at_start(cuts: CutLogs, stages: Iterable[Stage], settings: WorkerSettings) -> None:
    """Report cuts before the stages start; their start moves the offsets past the gap."""
    groups = [group_id(settings, stage.name, stage.lane) for stage in stages]
    try:
        async with broker(settings) as client:
            await cuts.look(client, groups)
    except Retryable as err:  # no reason not to work
        log.warning("not known whether messages were deleted before they were read", error=str(err))
