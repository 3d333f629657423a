"""`pagewire` that kills itself at a chosen point: `STORM_DIE_AT=POINT:N`, at the N-th time it comes there.

before-effect   a page's documents are about to be written        nothing of it is in the index
mid-batch       half of a page's documents are written            neither head nor removals
after-effect    a page's documents are written                    no removals, no receipt, no acknowledgement
before-send     a result is about to be sent on                   the work is lost, the record is not
after-send      a result is confirmed by the broker               not acknowledged: it will come twice
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from adapters.elastic.writer import Write, WriteOutcome, Writer
from adapters.kafka import KafkaSender
from cli.main import main

POINTS = ("before-effect", "mid-batch", "after-effect", "before-send", "after-send")
VARIABLE = "STORM_DIE_AT"

_left = 0
write = Writer.write


def here(point: str) -> bool:
    """Whether this is the time and the place."""
    global _left
    chosen, _, _ = os.environ[VARIABLE].partition(":")
    if chosen != point:
        return False
    _left -= 1
    return _left <= 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def write_and_die(self: Writer, writes: Sequence[Write]) -> list[WriteOutcome]:
    if not any(one.document and one.document.get("kind") == "head" for one in writes):
        return await write(self, writes)  # no page: removals, receipts
    if here("before-effect"):
        die()
    if here("mid-batch"):
        await write(self, writes[: len(writes) // 2])
        die()
    written = await write(self, writes)
    if here("after-effect"):
        die()
    return written


def dying(send: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def send_and_die(self: KafkaSender, *given: Any, **named: Any) -> None:
        if here("before-send"):
            die()
        await send(self, *given, **named)
        if here("after-send"):
            die()

    return send_and_die


if __name__ == "__main__":
    _left = int(os.environ[VARIABLE].partition(":")[2])
    Writer.write = write_and_die  # type: ignore[method-assign]
    KafkaSender.send = dying(KafkaSender.send)  # type: ignore[method-assign]
    KafkaSender.send_all = dying(KafkaSender.send_all)  # type: ignore[method-assign]
    main()
