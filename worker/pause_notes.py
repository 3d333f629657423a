"""Publishes to `worker.pauses` which stages of this process are paused, for `pagewire status` on any machine."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime

import structlog

from pipelines.runtime.bus import Producer
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Lane
from schemas.topics import PAUSES
from schemas.worker import PAUSES_KEY, PauseNote
from worker.pause import Pause, Trouble

log = structlog.get_logger(__name__)

LOOK_EVERY = 1.0  # seconds
REPEAT_EVERY = 30.0  # seconds; readers drop a note after NOTE_TTL (pipelines.operate.status)
MAX_REASON = 1_000  # characters

Stages = Mapping[tuple[str, Lane | None], Pause]


async def publish_pauses(stages: Stages, bus: Producer) -> None:
    """Run for ever; cancel it to end it."""
    worker = f"{socket.gethostname()}:{os.getpid()}"
    said: dict[tuple[str, Lane | None], tuple[Trouble, float]] = {}
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK_EVERY)
        for (stage, lane), pause in stages.items():
            trouble, before = pause.trouble, said.get((stage, lane))
            if trouble is None and before is None:
                continue
            if trouble is not None and before is not None and before[0] == trouble and loop.time() < before[1]:
                continue
            shown = trouble or (before and before[0])
            assert shown
            note = PauseNote(
                worker=worker,
                stage=stage,
                lane=lane,
                code=shown.code,
                reason=shown.message[:MAX_REASON],
                since=shown.since,
                at=datetime.now(UTC),
                over=trouble is None,
            )
            try:
                await bus.send(PAUSES, PAUSES_KEY, note)
            except Retryable as err:  # sent again at the next look
                log.debug("pause not published", error=str(err))
                continue
            if trouble is None:
                del said[stage, lane]
            else:
                said[stage, lane] = trouble, loop.time() + REPEAT_EVERY
