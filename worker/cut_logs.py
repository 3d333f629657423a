"""Tells of messages that were deleted from a topic before a stage had read them: nobody else would ever know.

Where a stage has got to lies before the oldest message that is kept, and Kafka takes the stage there without a word. A
moment later nothing shows it any more, so it is noted for `pagewire status`, too.
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
from pipelines.operate.cut_logs import KEPT, sentence, what_to_do
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
    gone: int  # offsets; of a compacted topic there were not as many messages


class CutLogs:
    """Remembers what was told."""

    def __init__(self, prefix: str, bus: Producer) -> None:
        self._kept = {prefix + topic.name: topic for topic in KEPT}
        self._bus = bus
        self._told: dict[tuple[str, TopicPartition], int] = {}
        self._unsent: list[PauseNote] = []

    async def look(self, client: Broker, groups: Iterable[str]) -> None:
        """Warn of what these groups have lost since the last look. Raises: Retryable."""
        for group in groups:
            committed = {tp: at for tp, at in (await client.committed(group)).items() if tp.topic in self._kept}
            cuts = self.looked(group, committed, await client.begins(committed))
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
        with suppress(Retryable):  # what cannot be sent now is at the next look
            while self._unsent:
                await self._bus.send(PAUSES, CUTS_KEY, self._unsent[0])
                del self._unsent[0]

    def looked(
        self, group: str, committed: Mapping[TopicPartition, int], begins: Mapping[TopicPartition, int]
    ) -> list[Cut]:
        """What is gone and was not told yet, given where the group would go on and where its partitions begin."""
        found = []
        for tp in sorted(committed):
            # Asked after `committed`: the group may have got on meanwhile, which makes the number smaller, never wrong.
            if begins[tp] > max(committed[tp], self._told.get((group, tp), 0)):
                found.append(Cut(group, tp, begins[tp] - max(committed[tp], self._told.get((group, tp), 0))))
                self._told[group, tp] = begins[tp]
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


async def tell_at_start(cuts: CutLogs, stages: Iterable[Stage], settings: WorkerSettings) -> None:
    """Before the stages take up their work: a moment later they stand behind the gap."""
    groups = [group_id(settings, stage.name, stage.lane) for stage in stages]
    try:
        async with broker(settings) as client:
            await cuts.look(client, groups)
    except Retryable as err:  # no reason not to work
        log.warning("not known whether messages were deleted before they were read", error=str(err))
