"""What a stage is: a name, the topics it reads, and a plain async function per topic.

```
 topic ─▶ Handler(record, sender) ─▶ sender.send(next topic, ...)      returns   -> acknowledged
                                                                      raises     -> as the error's kind wants it
```
Which way each kind of error goes: `pipelines.runtime.errors.WAYS`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.record import Lane, Record
from schemas.base import Message
from schemas.topics import Topic


class Sender(Protocol):
    """Puts messages on the bus."""

    async def send(
        self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None, lane: Lane | None = None
    ) -> None:
        """Return once the broker has confirmed (all replicas). Trace and lane of the record at hand go along.

        Args:
            partition_key: choose the partition by this key instead (a page's parts stay together).
            lane: instead of that of the record at hand.

        Raises:
            Retryable: not confirmed. Permanent: too large for the bus, code `too-large`.
        """
        ...


Handler = Callable[[Record, Sender], Awaitable[None]]
OnDead = Callable[[Record, DeadLetter, Sender], Awaitable[None]]


def by_record_key(record: Record) -> bytes:
    """Messages of one key in order, different keys side by side."""
    return record.key or b""


@dataclass(frozen=True)
class Stage:
    """One stream processor: one consumer group, one Faust app.

    A handler may run again for the same record (crash, rebalance, retry): its effects must be idempotent.
    """

    name: str
    routes: Mapping[Topic, Handler]
    # Works on the records of this lane only, the other lane's stage on the rest; None: there is one lane for all.
    lane: Lane | None = None
    # Records with the same order key, in the same partition, run one after the other in offset order.
    order_key: Callable[[Record], bytes] = by_record_key
    # Records of all partitions together that one process works on at once, past a slow one as well; None: as many of
    # each partition, from its first unfinished one on, as settings.window says. For work that mostly waits.
    at_once: int | None = None
    # Seconds in which a try has to get on (pipelines.runtime.try_limit); default settings.try_timeout. A try that is at
    # work for longer than settings.drain_timeout is
    # cut off when partitions move, and starts again elsewhere.
    try_timeout: float | None = None
    # Seconds of processor time that a handler may keep the event loop to itself; then the record is a dead letter
    # (worker.step_limit).
    step_limit: float = 30.0
    # False where a visitor waits: a record is not held back while a service is away, but tried by itself, so that its
    # handler can tell the visitor in time; nothing is parked, and what fails `tries` times is a dead letter.
    patient: bool = True
    # Called after the dead letter is confirmed, for example to tell the visitor. Its errors are logged only.
    on_dead: OnDead | None = None
    setup: Callable[[], Awaitable[None]] | None = None  # before the first record: load a model, open clients
    teardown: Callable[[], Awaitable[None]] | None = None  # after the last record
