"""Pump: the pieces of an answer, from a model at its own pace to a bus at its own.

strategy ─▶ reader task ─▶ queue, bounded ─▶ neighbouring tokens joined, paced ─▶ the publisher
   ▲                                                │
   └── closed, and with it the model's connection ◀─┴─ stopped, too late, or no reader is left
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from pipelines.query.answer.strategies.base import Piece
from pipelines.query.ports import ModelSlow
from pipelines.runtime.errors import PagewireError
from schemas.answer import Token

WAITING = 256  # pieces that may wait while the broker confirms
# Seconds between two batches: a visitor sees ten a second as a flow, and each costs the log and every reader of it. All
# answers keep the same beat, so that their batches share requests to the log.
PACE = 0.1


class StrategyFailed(Exception):
    """The strategy, and not who publishes its pieces, failed. `failure` says how."""

    def __init__(self, failure: PagewireError) -> None:
        super().__init__(f"{failure.code}: {failure}")
        self.failure = failure


async def pumped(
    pieces: AsyncGenerator[Piece, None], stopped: asyncio.Event, seconds: float
) -> AsyncGenerator[list[Piece], None]:
    """All pieces in order, the first at once, until `stopped` is set; those of a beat together. A fast model or a slow
    bus makes larger tokens.

    Args:
        seconds: the pieces may take.

    Raises: StrategyFailed: what the pieces raise, or ModelSlow.
    """
    waiting: asyncio.Queue[Piece | None] = asyncio.Queue()
    room = asyncio.Semaphore(WAITING)

    async def read() -> None:
        async with aclosing(pieces):
            async for piece in pieces:
                await room.acquire()
                waiting.put_nowait(piece)

    tasks = asyncio.create_task(read(), name="strategy"), asyncio.create_task(stopped.wait(), name="stop")
    reader = tasks[0]
    for task in tasks:
        task.add_done_callback(lambda _: waiting.put_nowait(None))  # wakes us up, whatever ended it
    loop = asyncio.get_running_loop()
    alarm = loop.call_later(max(0.0, seconds), waiting.put_nowait, None)
    try:
        ended, due = False, loop.time()
        while not ended:
            taken = [await waiting.get()]
            if taken[0] is not None:
                await asyncio.sleep(due - loop.time())
            due = (loop.time() // PACE + 1) * PACE
            while not waiting.empty():
                taken.append(waiting.get_nowait())
            batch = [piece for piece in taken if piece is not None]
            ended = len(batch) < len(taken)
            for _ in batch:
                room.release()
            if stopped.is_set():
                return
            if batch:
                yield list(_joined(batch))
        if stopped.is_set():
            return
        if not reader.done():
            raise StrategyFailed(ModelSlow(f"no end of the answer after {seconds:.0f} s"))
        try:
            await reader
        except PagewireError as err:
            raise StrategyFailed(err) from err
    finally:
        alarm.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _joined(batch: Iterable[Piece]) -> Iterable[Piece]:
    text = ""
    for piece in batch:
        if isinstance(piece, Token):
            text += piece.text
            continue
        if text:
            yield Token(text=text)
        text = ""
        yield piece
    if text:
        yield Token(text=text)
