"""Watermark of the index: waits until all current changes have passed the ingest stages, in both lanes.

    end of cms.changes ─▶ chunk is past it ─▶ end of ingest.chunks ─▶ embed is past it
                                                                      ─▶ end of ingest.embeddings ─▶ index is past it

Later saves do not delay it: it waits only for the changes that were in the log at the begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pipelines.runtime.bus import BrokerView, Bus
from pipelines.runtime.stages import INGEST, StageEntry
from schemas.topics import Topic

PATIENCE = 15.0  # seconds; a save takes one or two, and workers commit often
POLL = 0.2  # seconds


class IndexedWatermark:
    """Reads offsets from the broker."""

    def __init__(self, bus: Bus, patience: float = PATIENCE) -> None:
        self._bus = bus
        self._patience = patience

    async def passed(self) -> dict[int, int] | None:
        """Offsets of cms.changes before which all changes are indexed; None after PATIENCE.

        Raises:
            Retryable: the broker does not answer.
        """
        first: Mapping[int, int] | None = None
        async with self._bus.view() as view:
            try:
                async with asyncio.timeout(self._patience):
                    for stage in INGEST:
                        topic = stage.reads[0]
                        spans = (await view.spans([topic])).get(topic, {})
                        ends = {partition: end for partition, (_, end) in spans.items()}
                        first = ends if first is None else first
                        await _past(view, stage, topic, ends)
            except TimeoutError:
                return None
        return dict(first or {})


async def _past(view: BrokerView, stage: StageEntry, topic: Topic, ends: Mapping[int, int]) -> None:
    """Wait until all lanes of a stage have finished everything before `ends`."""
    for group in stage.groups:
        while True:
            committed = await view.committed(group)
            if all(committed.get((topic, partition), 0) >= end for partition, end in ends.items()):
                break
            await asyncio.sleep(POLL)
