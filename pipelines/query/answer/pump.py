"""Pump: passes the pieces of an answer from the model to the bus, each of which has its own pace.

strategy ─▶ reader task ─▶ queue, bounded ─▶ neighbouring tokens joined, paced ─▶ the publisher
   ▲                                                │
   └── closed, with the model's connection ◀────────┴─ stopped, too late, or no consumer left
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
# Seconds between two batches: ten a second look fluent, and each batch costs the log and its readers. All answers send
# at the same moments, so that their batches share requests to the log.
PACE = 0.1


class StrategyFailed(Exception):
    """The strategy has failed, as opposed to the consumer of its pieces. `failure`: its error."""

    def __init__(self, failure: PagewireError) -> None:
        super().__init__(f"{failure.code}: {failure}")
        self.failure = failure


async def pumped(
    pieces: AsyncGenerator[Piece, None], stopped: asyncio.Event, seconds: float
) -> AsyncGenerator[list[Piece], None]:
    """Batches of pieces in order, the first at once, until `stopped` is set. Tokens of a batch are joined.

    Args:
        seconds: time limit for all pieces.

    Raises: StrategyFailed: with the error of the pieces, or ModelSlow.
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
