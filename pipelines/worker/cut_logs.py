"""Tells of messages that were deleted from a topic before a stage had read them: nobody else would ever know.

Where a stage has got to lies before the oldest message that is kept. Kafka takes the stage there without a word,
nothing waits any more, and the receipts of what is gone say `queued` for ever. It comes of a retention that somebody
has put on a topic of ours, or of `kafka-delete-records`.

Only topics that keep their messages for ever are looked at: the others lose what is too old to be wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import structlog
from aiokafka import TopicPartition

from adapters.kafka import Broker, group_id
from adapters.kafka.broker import broker
from pipelines.runtime.errors import Retryable
from pipelines.runtime.stage import Stage
from pipelines.worker.settings import WorkerSettings
from schemas.topics import CHANGES, TOPICS

log = structlog.get_logger(__name__)

SAVE_AGAIN = (
    "what was saved then is not searchable, its receipts stay queued: `pagewire reconcile SITE` for every connector, "
    "`pagewire import` for what has none"
)
REPAIR = "`pagewire audit SITE --repair` sends what is missing through the stages again"


@dataclass(frozen=True)
class Cut:
    """Messages of a partition that a group has not read and never will."""

    group: str
    partition: TopicPartition
    gone: int  # offsets; of a compacted topic there were not as many messages


class CutLogs:
    """Remembers what was told."""

    def __init__(self, prefix: str) -> None:
        self._kept = {prefix + topic.name: topic for topic in TOPICS if topic.retention_ms is None}
        self._told: dict[tuple[str, TopicPartition], int] = {}

    async def look(self, client: Broker, groups: Iterable[str]) -> None:
        """Warn of what these groups have lost since the last look. Raises: Retryable."""
        for group in groups:
            committed = {tp: at for tp, at in (await client.committed(group)).items() if tp.topic in self._kept}
            for cut in self.looked(group, committed, await client.begins(committed)):
                log.error(
                    "messages were deleted before they were read",
                    group=cut.group,
                    topic=cut.partition.topic,
                    partition=cut.partition.partition,
                    gone=cut.gone,
                    do=SAVE_AGAIN if self._kept[cut.partition.topic] is CHANGES else REPAIR,
                )

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


async def tell_at_start(cuts: CutLogs, stages: Iterable[Stage], settings: WorkerSettings) -> None:
    """Before the stages take up their work: a moment later they stand behind the gap."""
    groups = [group_id(settings, stage.name, stage.lane) for stage in stages]
    try:
        async with broker(settings) as client:
            await cuts.look(client, groups)
    except Retryable as err:  # no reason not to work
        log.warning("not known whether messages were deleted before they were read", error=str(err))
