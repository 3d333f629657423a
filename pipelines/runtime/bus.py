"""Kafka as the pipelines use it: protocols that adapters.kafka and the tests' fakes implement."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from pipelines.runtime.record import Headers, Lane, Record
from pipelines.runtime.stage import StageGroup
from schemas.base import Message
from schemas.topics import Topic


class Producer(Protocol):
    """Puts messages on the bus (adapters.kafka.KafkaSender)."""

    async def start(self) -> None:
        """Connect; does nothing if it is connected. Raises: Retryable: no broker."""
        ...

    async def send(
        self,
        topic: Topic,
        key: str,
        message: Message,
        *,
        partition_key: str | None = None,
        trace_id: str | None = None,
        lane: Lane | None = None,
    ) -> None:
        """Return once the broker has confirmed (all replicas).

        Args:
            partition_key: choose the partition by this key instead (a page's parts stay together).
            trace_id: default: the trace at hand.
            lane: default: that of saves.

        Raises:
            Retryable: not confirmed. TooLarge.
        """
        ...

    async def send_all(
        self, topic: Topic, key: str, messages: Sequence[Message], *, trace_id: str | None, lane: Lane | None
    ) -> None:
        """As `send`, for messages of one key: in their order, and all of them in as few requests as possible.

        Raises: as `send`; the messages before the one that failed may be on the bus.
        """
        ...

    async def send_bytes(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, *, partition: int | None = None
    ) -> None:
        """As `send`, with the message's bytes; by default into the partition of its key."""
        ...


class LogReader(Protocol):
    """Reads parts of a topic, by position or by key (adapters.kafka.log.KafkaLogReader)."""

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        """Records from `start` up to, not including, `end` (default: the end of the log now). Raises: Retryable."""
        ...

    async def since(self, since_ms: int) -> Sequence[Record]:
        """Records written at `since_ms` (since 1970) or later. Raises: Retryable."""
        ...

    async def of_key(
        self, key: str, since_ms: int, until_ms: int | None = None, begins: tuple[int, int] | None = None
    ) -> list[Record]:
        """Records of one key written at `since_ms` (since 1970) or later.

        Args:
            until_ms: written then or before.
            begins: a partition, and an offset in it before which the key has no records.

        Raises:
            Retryable.
        """
        ...


class LogTail(Protocol):
    """Follows a topic from its end at `start` (adapters.kafka.log.KafkaLogTail)."""

    async def start(self) -> None:
        """Raises: Retryable."""
        ...

    async def aclose(self) -> None: ...

    def partition_of(self, key: str) -> int: ...

    def position(self, partition: int) -> int:
        """The offset of the next record that will be delivered. Raises: Retryable: the partition is not known yet."""
        ...

    async def catch_up(self, key: str, seconds: float) -> None:
        """Return when all records of the key that are in the topic now are delivered, or after so many seconds."""
        ...


class SharedTail(LogTail, Protocol):
    """Follows some of a topic's partitions (adapters.kafka.shared_tail.KafkaSharedTail)."""

    @property
    def own(self) -> frozenset[int]:
        """This process's share of partitions, which is always followed; none: any partition will do."""
        ...

    def following(self, partitions: Iterable[int]) -> AbstractAsyncContextManager[None]:
        """Follow these partitions, too, inside the block; `position` knows them. Raises, when entered: Retryable."""
        ...


# Makes a tail that hands each record to the given function, which must not block.
MakeTail = Callable[[Callable[[Record], None]], LogTail]
MakeSharedTail = Callable[[Callable[[Record], None]], SharedTail]


class LogScan(Protocol):
    """Reads a whole topic, batch by batch (adapters.kafka.scan.KafkaLogScan)."""

    async def begins(self) -> dict[int, int]:
        """Offsets of the oldest records kept, by partition."""
        ...

    async def ends(self) -> dict[int, int]:
        """Offsets the next records will get, by partition."""
        ...

    def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        """Records from `since` (default: the oldest kept) up to, not including, `until`, in order per partition."""
        ...


class PickingScan(LogScan, Protocol):
    """Also reads single stretches of it."""

    async def identity(self) -> str | None:
        """The broker's id of the topic, which changes when it is created anew; None: the broker gives none."""
        ...

    def pick(self, partition: int, start: int, end: int) -> AsyncGenerator[list[Record], None]:
        """Records from `start` up to, not including, `end`, in order."""
        ...


@dataclass(frozen=True)
class GroupLag:
    """How far a consumer group is behind."""

    lag: int
    members: int


class BrokerView(Protocol):
    """The broker's own view of our topics and stages. All methods raise Retryable."""

    async def partitions(self, topics: Iterable[Topic]) -> dict[Topic, set[int]]:
        """Partitions of the topics that are there."""
        ...

    async def short_of_copies(self, topics: Iterable[Topic]) -> Sequence[str]:
        """A sentence for each topic with too few copies, or with copies out of sync."""
        ...

    async def short_of_partitions(self, topics: Iterable[Topic]) -> Sequence[str]:
        """A sentence when topics have fewer partitions than wanted."""
        ...

    async def spans(self, topics: Iterable[Topic]) -> dict[Topic, dict[int, tuple[int, int]]]:
        """Begin and end offset per partition; topics that are not there are left out."""
        ...

    async def committed(self, group: StageGroup) -> dict[tuple[Topic, int], int]:
        """The committed offsets of a stage, by topic and partition; without a commit there is none."""
        ...

    async def lags(self, groups: Sequence[StageGroup]) -> Mapping[StageGroup, GroupLag]:
        """Lag and members of each stage."""
        ...


class Bus(Protocol):
    """Opens readers, scans and views of Kafka (adapters.kafka.bus.KafkaBus)."""

    def name(self, topic: Topic) -> str:
        """The broker's name of a topic, as records and dead letters carry it."""
        ...

    def reader(self, topic: Topic) -> AbstractAsyncContextManager[LogReader]: ...

    def scan(self, topic: Topic) -> AbstractAsyncContextManager[LogScan]:
        """Raises, when entered: Retryable: no broker, or no such topic."""
        ...

    def view(self) -> AbstractAsyncContextManager[BrokerView]:
        """Raises, when entered: Retryable."""
        ...


class PickingBus(Bus, Protocol):
    """Opens scans that can pick."""

    def scan(self, topic: Topic) -> AbstractAsyncContextManager[PickingScan]: ...
