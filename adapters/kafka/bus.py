"""Implements pipelines.runtime.bus: Kafka by topic and stage, without this installation's prefix."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiokafka import TopicPartition

from adapters.kafka.broker import Broker, broker
from adapters.kafka.client import prefixed
from adapters.kafka.log import KafkaLogReader
from adapters.kafka.scan import KafkaLogScan
from adapters.kafka.settings import KafkaSettings
from pipelines.runtime.bus import GroupLag
from pipelines.runtime.stage import STAGES, StageGroup
from schemas.topics import Topic, all_topics


class KafkaBrokerView:
    """Partitions, copies, offsets and lags of our topics and stages."""

    def __init__(self, client: Broker, settings: KafkaSettings) -> None:
        self._client = client
        self._settings = settings

    async def partitions(self, topics: Iterable[Topic]) -> dict[Topic, set[int]]:
        """Partitions of the topics that exist. Raises: Retryable."""
        there = await self._client.topics()
        return {topic: there[name] for topic in topics if (name := prefixed(self._settings, topic)) in there}

    async def short_of_copies(self, topics: Iterable[Topic]) -> list[str]:
        """A message for each topic with fewer copies than configured, or with copies out of sync. Raises: Retryable."""
        there, wanted = await self._client.copies(), self._settings.replication
        found = []
        for name in (prefixed(self._settings, topic) for topic in topics):
            kept, in_sync = there.get(name, (wanted, wanted))
            if kept < wanted:
                found.append(
                    f"topic {name} has {kept} of the {wanted} copies that PAGEWIRE_REPLICATION wants: "
                    "`pagewire topics --repair` adds them"
                )
            elif in_sync < kept:
                found.append(f"topic {name}: only {in_sync} of {kept} copies are in sync; is a broker away?")
        return found

    async def short_of_partitions(self, topics: Iterable[Topic]) -> list[str]:
        """A message where topics have fewer partitions than configured. Raises: Retryable."""
        there, wanted = await self._client.topics(), self._settings.partitions
        few = {
            name: count
            for name in (prefixed(self._settings, topic) for topic in topics)
            if (count := len(there.get(name, range(wanted)))) < wanted
        }
        if not few:
            return []
        fewest = min(few, key=lambda name: few[name])
        others = f" and {len(few) - 1} more have" if len(few) > 1 else " has"
        return [
            f"topic {fewest} ({few[fewest]} partitions){others} fewer than the {wanted} that PAGEWIRE_PARTITIONS "
            f"wants: `pagewire topics --partitions {wanted}` adds them"
        ]

    async def spans(self, topics: Iterable[Topic]) -> dict[Topic, dict[int, tuple[int, int]]]:
        """Begin and end offset per partition; missing topics are left out. Raises: Retryable."""
        names = {prefixed(self._settings, topic): topic for topic in topics}
        return {names[name]: spans for name, spans in (await self._client.spans(names)).items()}

    async def committed(self, group: StageGroup) -> dict[tuple[Topic, int], int]:
        """A stage's committed offsets; partitions without a commit are absent. Raises: Retryable."""
        names = {prefixed(self._settings, topic): topic for topic in all_topics()}
        found = await self._client.committed(group.name(self._settings.topic_prefix))
        return {(names[tp.topic], tp.partition): offset for tp, offset in found.items() if tp.topic in names}

    async def lags(self, groups: Sequence[StageGroup]) -> dict[StageGroup, GroupLag]:
        """Lag and members of each stage. Raises: Retryable."""
        there = await self._client.topics()
        found = await asyncio.gather(*(self._lag(group, there) for group in groups))
        return dict(zip(groups, found, strict=True))

    async def _lag(self, group: StageGroup, there: Mapping[str, Collection[int]]) -> GroupLag:
        name = group.name(self._settings.topic_prefix)
        read = [prefixed(self._settings, topic) for topic in STAGES[group.stage].reads]
        partitions = [TopicPartition(topic, number) for topic in read for number in sorted(there.get(topic, ()))]
        behind, members = await asyncio.gather(self._client.behind(name, partitions), self._client.members(name))
        return GroupLag(lag=sum(behind.values()), members=members)


class KafkaBus:
    """Opens readers, scans and views of Kafka; each is a context manager."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def name(self, topic: Topic) -> str:
        """The broker's name of a topic, as records and dead letters carry it."""
        return prefixed(self._settings, topic)

    def reader(self, topic: Topic) -> KafkaLogReader:
        return KafkaLogReader(self._settings, topic)

    def scan(self, topic: Topic) -> KafkaLogScan:
        return KafkaLogScan(self._settings, topic)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[KafkaBrokerView]:
        async with broker(self._settings) as client:
            yield KafkaBrokerView(client, self._settings)
