"""Replaces the few methods of faust-streaming 0.15.3 and aiokafka 0.14.0 that lose events.

```
 broker ─▶ aiokafka thread ─▶ SafeConsumer._getmany ─▶ Faust's stream ─▶ agent ─▶ InFlight ─▶ handler
                                 │ notes fetched records                             │ notes finished records
                                 │ and those of the other lane as finished           │
                                 └──────────────▶ OffsetBook ◀───────────────────────┘
                                                     └─▶ commit: the lowest fetched offset that is not finished
```
Faust's own acknowledgement is not used: it acks an event however its iteration ends, also one that a rebalance drops.
Only the book decides what is committed. Every override has a test in tests/contract/test_faust_canary.py that fails
when an upgrade changes what it relies on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import faust
import structlog
from faust.auth import OAuthCredentials
from faust.tables.manager import TableManager
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.auth import CredentialsT

from adapters.kafka import bootstrap_servers, group_id, prefixed
from adapters.kafka.access import security
from pipelines.runtime.record import Record, lane_of
from pipelines.runtime.stage import Stage
from schemas.topics import MAX_MESSAGE_BYTES, RECORD_OVERHEAD_BYTES
from worker.in_flight import InFlight
from worker.offsets import OffsetBook
from worker.settings import LIMITS, WorkerLimits, WorkerSettings

log = structlog.get_logger(__name__)

# A worker that stops answering loses its partitions after SESSION; the others wait that long for them.
SESSION = 10.0  # seconds
HEARTBEAT = 1.5  # seconds, several per session
# A member that does not rejoin within this time is removed from the group, and its work would be replayed for ever:
#   longest drain (settings: 40) + COMMIT_TIMEOUT 5 + CANCEL_GRACE 2 + room 13 = 60
REBALANCE = 60.0  # seconds
REQUEST = 15.0  # seconds; Faust refuses less than SESSION
METADATA_AGE = 5.0  # seconds until the group assigns new partitions of a topic (Faust: 5 minutes)
COMMIT_EVERY = 0.5  # seconds; a worker killed within this after its assignment makes no progress
COMMIT_TIMEOUT = 5.0  # seconds for the last commit before partitions are revoked
FETCH_WAIT_MS = 500  # the broker's long poll; Faust hard-codes 1500, and every rebalance waits for it
FETCH_BYTES = 2 * (MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES)  # per answer of a broker; aiokafka: 50 MiB
PARTITION_BYTES = 64 * 1024, 1024 * 1024  # of one partition, at least and at most
POLL_RECORDS = 64  # per poll; as many may arrive after a queue is full
# Full queues are not polled while their records are retried. The watchdog finds a worker that hangs, so the client must
# not leave the group by itself.
POLL_INTERVAL = 24 * 3600.0  # seconds
BUFFER = 64  # events between fetch and agent
FULL_POLL = 0.05  # seconds until a queue that was full is fetched again
ENDS_TIMEOUT = 5.0  # seconds


def fetch_size(settings: WorkerSettings, topics: int) -> int:
    """Bytes to fetch of a partition at once.

    The fetched bytes of all partitions of so many topics are at most the limit of bytes in flight. A larger message
    still arrives, alone: a broker sends the first message of its answer whole, and aiokafka requests the partitions in
    another order each time.
    """
    least, most = PARTITION_BYTES
    return min(max(LIMITS.bytes // (settings.partitions * topics), least), most)


class SafeThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The thread that owns the aiokafka consumer."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._fetch_max_bytes = FETCH_BYTES
        return consumer

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to the committed offset before the streams go on; without a commit to the beginning.

        Faust drops records that are fetched during a rebalance. aiokafka seeks back only where a commit exists, and
        would skip the first records of a new partition.
        """
        committed: Mapping[TP, int] = await self.call_thread(self._seek_to_committed)
        return committed

    async def _seek_to_committed(self) -> Mapping[TP, int | None]:
        consumer = self._ensure_consumer()
        committed: Mapping[TP, int | None] = await consumer.seek_to_committed()
        for tp in consumer.assignment():
            if not committed.get(tp):
                consumer.seek(tp, 0)  # no request; a position before the log is reset to the oldest record
        return committed

    async def on_thread_stop(self) -> None:
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            # Without a broker, aiokafka's stop raises the cancellation of its own fetch, which would end this thread
            # and leave its callers waiting.
            log.warning("consumer closed while the broker was away")


class SafeConsumer(driver.Consumer):  # type: ignore[misc]
    """Commits by the book, drains within a limit, skips the other lane, and fetches no partition with a full queue."""

    app: SafeApp

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.book: OffsetBook[TP] = OffsetBook()
        # Ends of partitions at their assignment: an earlier owner may have seen records before them.
        self._assigned_ends: Mapping[TP, int] = {}
        self._last_commit: asyncio.Task[None] | None = None  # under way, or given up, for this assignment

    def finished(self, record: Record) -> None:
        """The effects of a record are durable: it may be committed."""
        self.book.finished(TP(record.topic, record.partition), record.offset)

    def read_to(self, topic: str, partition: int) -> int | None:
        """The offset of the next fetch; None before the first one."""
        return self.book.read_to(TP(topic, partition))

    def goes_on(self, topic: str, partition: int) -> bool:
        """Whether there is more in the log, as of the last fetch."""
        tp = TP(topic, partition)
        try:
            end = self.highwater(tp)
        except (AssertionError, AttributeError):  # revoked just now, on the client's own thread
            return False
        read = self.book.read_to(tp)
        return read is not None and end is not None and end > read

    def early(self, record: Record) -> bool:
        """Start a record before it is fetched (shares.py); the fetch then skips it. False: it was started before."""
        tp = TP(record.topic, record.partition)
        if self.book.is_early(tp, record.offset):
            return False
        self.book.early(tp, record.offset)
        return True

    def fresh(self, topic: str, partition: int, offset: int) -> bool:
        """Whether no earlier owner of the partition can have seen this message."""
        end = self._assigned_ends.get(TP(topic, partition))
        return end is not None and offset >= end

    def _new_consumer_thread(self) -> SafeThread:
        return SafeThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        active = active_partitions or set()
        ready = {tp for tp in active if not self.app.in_flight.full((tp.topic, tp.partition))}
        if not ready:  # aiokafka takes an empty set for "all partitions"
            self.app.in_flight.room.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self.app.in_flight.room.wait()
            return {}
        # Never cancelled: a running fetch moves the position, so its records would be lost.
        records = await super()._getmany(ready, timeout if ready == active else FULL_POLL)
        return {tp: own for tp, fetched in (records or {}).items() if (own := self._own(tp, fetched))}

    def _own(self, partition: TP, fetched: Sequence[Any]) -> Sequence[Any]:
        """Note fetched records; returns those of our lane that are not at work yet.

        Records of the other lane are finished here, before Faust's streams: an import must pass the stage for saves as
        fast as it is written.
        """
        tp = TP(partition.topic, partition.partition)
        read = self._read_offset.get(tp)
        if fetched and read is not None and fetched[0].offset < read:
            # A leader that comes back may have fewer records than we have read: aiokafka begins at the beginning again.
            # Faust would silently drop records that it has seen, and they would never be finished.
            log.warning("a partition is read again", topic=tp.topic, partition=tp.partition, offset=fetched[0].offset)
            self.book.forget([tp])
            self._read_offset[tp] = None
        early = self.book.fetched(tp, (record.offset for record in fetched))
        lane = self.app.stage.lane
        if lane is None:
            return fetched
        own = []
        for record in fetched:
            if lane_of(record.headers) != lane:
                self.book.finished(tp, record.offset)
            elif record.offset not in early:
                own.append(record)
        return own

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        return (tp for tp in self.book.partitions() if topics is None or tp in topics or tp.topic in topics)

    def _new_offset(self, tp: TP) -> int | None:
        return self.book.committable(tp)

    def _should_commit(self, tp: TP, offset: int) -> bool:
        return True  # the book has compared; Faust compares with an offset whose commit may have failed

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        committed = bool(await super()._commit(offsets))
        if committed:
            for tp, offset in offsets.items():
                self.book.committed(tp, offset)
        return committed

    async def wait_empty(self) -> None:
        """Faust calls this before partitions are revoked, and twice at the end."""
        await self.settle()

    async def settle(self, *, for_good: bool = False) -> None:
        """Let work finish within its limit, then commit within another one. A second call does nothing."""
        await self.app.in_flight.drain(self.app.drain_limit, for_good=for_good)
        if self._last_commit is not None or all(self.book.committable(tp) is None for tp in self.book.partitions()):
            return
        commit = self._last_commit = asyncio.create_task(self._commit_all(), name=f"last commit of {self.app.conf.id}")
        # Not wait_for: Faust's commit swallows its cancellation.
        await asyncio.wait((commit,), timeout=COMMIT_TIMEOUT)
        if not commit.done():
            commit.cancel()
            log.warning("last commit not confirmed; finished records will be repeated", group=self.app.conf.id)
        elif commit.exception() is None:
            self._last_commit = None

    async def _commit_all(self) -> None:
        # Twice: while another commit runs, the first call only waits for that one.
        await self.commit_and_end_transactions()
        await self.commit_and_end_transactions()

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        await super().on_partitions_revoked(revoked)  # ends in wait_empty
        self.book.forget(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._assigned_ends = await self._ends(assigned)
        self.book.forget(self.book.partitions())
        self._last_commit = None
        self.app.in_flight.open()
        await super().on_partitions_assigned(assigned, generation_id)
        self.app.assigned.set()

    async def _ends(self, partitions: set[TP]) -> Mapping[TP, int]:
        if not partitions:
            return {}
        try:
            async with asyncio.timeout(ENDS_TIMEOUT):
                ends = await self.highwaters(*partitions)
        except Exception as err:  # noqa: BLE001 - not knowing is safe: nothing counts as fresh then
            log.warning("ends of the assigned partitions are unknown", error=repr(err))
            return {}
        return {TP(tp.topic, tp.partition): end for tp, end in ends.items()}

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Do nothing: Faust's check for slow processing ignores full queues and retries; see watchdog.py."""


class SafeTransport(driver.Transport):  # type: ignore[misc]
    Consumer = SafeConsumer


class PromptTables(TableManager):  # type: ignore[misc]
    """We have no tables, and Faust's manager sleeps a second for them at every start."""

    async def on_start(self) -> None:
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()


class SafeApp(faust.App):  # type: ignore[misc]
    """One stage: its consumer group, its records in flight, and an agent per topic that only passes records on."""

    def __init__(
        self,
        stage: Stage,
        settings: WorkerSettings,
        limits: WorkerLimits,
        in_flight: Callable[[SafeApp], InFlight],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.stage = stage
        self.drain_limit = limits.drain_timeout
        self.assigned = asyncio.Event()  # the group has assigned partitions to us, possibly none
        self.in_flight = in_flight(self)
        self._failed = failed
        group = group_id(settings, stage.name, stage.lane)
        super().__init__(
            group,
            broker=[f"kafka://{server.strip()}" for server in bootstrap_servers(settings).split(",")],
            broker_credentials=credentials(settings),
            store="memory://",
            key_serializer="raw",
            value_serializer="raw",
            web_enabled=False,
            topic_allow_declare=False,
            topic_disable_leader=True,
            processing_guarantee="at_least_once",
            stream_wait_empty=True,
            stream_buffer_maxsize=BUFFER,
            broker_session_timeout=SESSION,
            broker_heartbeat_interval=HEARTBEAT,
            broker_request_timeout=REQUEST,
            broker_rebalance_timeout=REBALANCE,
            broker_commit_interval=COMMIT_EVERY,
            broker_max_poll_records=POLL_RECORDS,
            broker_max_poll_interval=POLL_INTERVAL,
            consumer_auto_offset_reset="earliest",
            consumer_max_fetch_size=fetch_size(settings, len(stage.routes)),
            consumer_metadata_max_age_ms=int(METADATA_AGE * 1000),
            producer_request_timeout=REQUEST,  # Faust's own producer sends nothing; KafkaSender does
            TableManager=PromptTables,
        )
        for topic in stage.routes:
            self._read(prefixed(settings, topic))

    def _new_transport(self) -> SafeTransport:
        return SafeTransport(self.conf.broker_consumer, self)

    def _create_directories(self) -> None:
        """Create none: we keep nothing on disk, and Faust would create them in the working directory."""

    def _read(self, name: str) -> None:
        topic = self.topic(name, key_type=bytes, value_type=bytes)

        async def hand_on(stream: Any) -> None:
            try:
                async for event in _events(stream):
                    self.in_flight.put(self._record(event.message))
                if not self.should_stop:
                    raise RuntimeError(f"the stream of {name} ended")
            except Exception as err:  # Faust would restart the agent behind the lost event
                self._failed(err)
                raise

        # Not by the decorator `self.agent`: for a discovery of agents, it looks through the files of all modules.
        agent = self.conf.Agent(
            hand_on, app=self, name=f"{self.conf.id}-{name}", channel=topic, on_error=self._on_agent_error
        )
        self.agents[agent.name] = agent

    def _record(self, message: Any) -> Record:
        return Record(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            key=message.key,
            value=message.value,
            headers=tuple(message.headers or ()),
            timestamp_ms=round((message.timestamp or 0.0) * 1000),
            fresh=self.consumer.fresh(message.topic, message.partition, message.offset),
        )


def credentials(settings: WorkerSettings) -> CredentialsT | None:
    """The credentials of all our clients, in Faust's types."""
    given = security(settings)
    context = given.get("ssl_context")
    mechanism = given.get("sasl_mechanism")
    if mechanism is None:
        return None if context is None else faust.SSLCredentials(context)
    if mechanism == "OAUTHBEARER":
        return OAuthCredentials(oauth_cb=given["sasl_oauth_token_provider"], ssl_context=context)
    return faust.SASLCredentials(
        mechanism=mechanism,
        username=given["sasl_plain_username"],
        password=given["sasl_plain_password"],
        ssl_context=context,
    )


def _events(stream: Any) -> AsyncIterator[Any]:
    events: AsyncIterator[Any] = stream.noack().events()
    return events
