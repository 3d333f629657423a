"""Barrier: wait until everything that is in the log by now has gone through the ingest stages, in both lanes.

    end of cms.changes ─▶ chunk is past it ─▶ end of ingest.chunks ─▶ embed is past it
                                                                      ─▶ end of ingest.embeddings ─▶ index is past it

Saves that keep coming do not hold it up: only what was there before is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiokafka import TopicPartition

from adapters.kafka import Broker, broker, group_id, prefixed
from pipelines.runtime.record import LANES
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS
from wiring.settings import Settings

STAGES = (("chunk", CHANGES), ("embed", CHUNKS), ("index", EMBEDDINGS))
PATIENCE = 15.0  # seconds; a save takes one or two, and workers commit every few
POLL = 0.2  # seconds

Ends = Mapping[TopicPartition, int]


class Barrier:
    """Asks the broker."""

    def __init__(self, settings: Settings, patience: float = PATIENCE) -> None:
        self._settings = settings
        self._patience = patience

    async def passed(self) -> dict[int, int] | None:
        """Offsets of cms.changes before which everything is indexed; None when that takes too long to come true.

        Raises:
            Retryable: the broker does not answer.
        """
        async with broker(self._settings) as client:
            topics = await client.topics()
            first: Ends | None = None
            try:
                async with asyncio.timeout(self._patience):
                    for stage, topic in STAGES:
                        name = prefixed(self._settings, topic)
                        partitions = [TopicPartition(name, number) for number in topics.get(name, ())]
                        ends = await client.ends(partitions)
                        first = ends if first is None else first
                        await self._past(client, stage, ends)
            except TimeoutError:
                return None
        return {tp.partition: end for tp, end in (first or {}).items()}

    async def _past(self, client: Broker, stage: str, ends: Ends) -> None:
        """Wait until both lanes of a stage have finished everything before `ends`."""
        for lane in LANES:
            group = group_id(self._settings, stage, lane)
            while True:
                committed = await client.committed(group)
                if all(committed.get(tp, 0) >= end for tp, end in ends.items()):
                    break
                await asyncio.sleep(POLL)
