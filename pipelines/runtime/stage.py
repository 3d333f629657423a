"""A stage: a name, the topics it reads, and a plain async function per topic.

```
 topic ─▶ Handler(record, sender) ─▶ sender.send(next topic, ...)      returns   -> acknowledged
                                                                      raises     -> by the kind of the error
```
`pipelines.runtime.errors.WAYS` lists what each kind of error causes.

The map of all stages: the topics that each reads, and its lanes. Consumer groups follow from it.

cms.changes ─▶ chunk ─▶ ingest.chunks ─▶ embed ─▶ ingest.embeddings ─▶ index      in both lanes
rebuild.orders ─▶ rebuild      in the bulk lane
query.requests ─▶ rephrase ─▶ query.rephrased ─▶ retrieve ─▶ query.retrieved ─▶ answer ─▶ query.outcomes ─▶ log
query.outcomes ─▶ judge ─▶ query.verdicts ─▶ log
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.record import LANES, Lane, Record
from schemas.base import Message
from schemas.topics import (
    CHANGES,
    CHUNKS,
    EMBEDDINGS,
    ORDERS,
    OUTCOMES,
    RECEIPTS,
    REPHRASED,
    REQUESTS,
    RETRIEVED,
    VERDICTS,
    Topic,
)


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

    async def send_all(self, topic: Topic, key: str, messages: Sequence[Message]) -> None:
        """As `send`, for messages of one key: in their order, and all of them in as few requests as possible.

        Raises: as `send`; the messages before the one that failed may be on the bus.
        """
        ...


Handler = Callable[[Record, Sender], Awaitable[None]]
OnDead = Callable[[Record, DeadLetter, Sender], Awaitable[None]]


def by_record_key(record: Record) -> bytes:
    """The order key of a record: its key, so that only messages of one key are ordered."""
    return record.key or b""


@dataclass(frozen=True)
class Stage:
    """One stream processor: one consumer group, one Faust app.

    A handler may run again for the same record (crash, rebalance, retry): its effects must be idempotent.
    """

    name: str
    routes: Mapping[Topic, Handler]
    # Only records of this lane are processed, the rest by the other lane's stage; None: all records.
    lane: Lane | None = None
    # Records with the same order key, in the same partition, run one after the other in offset order.
    order_key: Callable[[Record], bytes] = by_record_key
    # Records of all partitions together that one process runs at once, also behind a slow one; for work that mostly
    # waits. None: settings.window records of each partition, from its first unfinished one.
    at_once: int | None = None
    # Seconds in which a try has to progress (pipelines.runtime.try_limit); default settings.try_timeout. A try longer
    # than settings.drain_timeout is cancelled when partitions move, and repeated by the new owner.
    try_timeout: float | None = None
    # Seconds of processor time for which a handler may block the event loop; then the record is a dead letter
    # (worker.step_limit).
    step_limit: float = 30.0
    # False where a visitor waits: while a service is away, each record is still tried, so that its handler can answer
    # the visitor in time. No record is parked; after `tries` failures it is a dead letter.
    patient: bool = True
    # Called after the dead letter is confirmed, for example to inform the visitor. Its errors are only logged.
    on_dead: OnDead | None = None
    setup: Callable[[], Awaitable[None]] | None = None  # before the first record: load a model, open clients
    teardown: Callable[[], Awaitable[None]] | None = None  # after the last record


class StageGroup(NamedTuple):
    """A stage in a lane: one consumer group."""

    stage: str
    lane: Lane | None = None

    def name(self, prefix: str) -> str:
        """The name of the consumer group; only that of the bulk lane has a suffix."""
        return f"{prefix}pagewire-{self.stage}" + ("-bulk" if self.lane == "bulk" else "")


@dataclass(frozen=True)
class StageEntry:
    """One line of the map."""

    name: str
    reads: tuple[Topic, ...]  # the main topic first
    lanes: tuple[Lane, ...] = ()  # one consumer group for each; none: one for all

    @property
    def groups(self) -> tuple[StageGroup, ...]:
        return tuple(StageGroup(self.name, lane) for lane in self.lanes) or (StageGroup(self.name),)


INGEST = (
    StageEntry("chunk", (CHANGES,), lanes=LANES),
    StageEntry("embed", (CHUNKS,), lanes=LANES),
    StageEntry("index", (EMBEDDINGS, RECEIPTS), lanes=LANES),
)
# Not between a save and its receipt: it fills indexes that are not live yet.
REBUILD = StageEntry("rebuild", (ORDERS,), lanes=("bulk",))
QUERY = (
    StageEntry("rephrase", (REQUESTS,)),
    StageEntry("retrieve", (REPHRASED,)),
    StageEntry("answer", (RETRIEVED,)),
    StageEntry("judge", (OUTCOMES,)),
    StageEntry("log", (OUTCOMES, VERDICTS)),
)
STAGES: dict[str, StageEntry] = {entry.name: entry for entry in (*INGEST, REBUILD, *QUERY)}


def all_groups() -> Iterator[tuple[StageGroup, StageEntry]]:
    """Every consumer group, upstream first, the lane of saves before the bulk lane."""
    for lane in LANES:
        yield from ((group, entry) for entry in (*INGEST, REBUILD) for group in entry.groups if group.lane == lane)
    yield from ((group, entry) for entry in QUERY for group in entry.groups)
