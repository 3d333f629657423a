"""Faust, hardened: the few methods of faust-streaming 0.15.3 and aiokafka 0.14.0 that lose events, replaced.

```
 broker ─▶ aiokafka thread ─▶ SafeConsumer._getmany ─▶ Faust's stream ─▶ agent ─▶ InFlight ─▶ handler
                                 │ notes what was fetched                            │ notes what is finished
                                 │ and, as finished, what is of the other lane       │
                                 └──────────────▶ OffsetBook ◀───────────────────────┘
                                                     └─▶ commit: the lowest fetched offset that is not finished
```
Faust's own acknowledging is not used at all (it acks an event however its iteration ends, and one dropped by
a rebalance); only the book decides what is committed. Every override has a test in
tests/contract/test_faust_canary.py that fails when an upgrade changes what it relies on.
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
from worker.settings import WorkerSettings

log = structlog.get_logger(__name__)

# A worker that stops answering loses its partitions after SESSION; the others wait that long for them.
SESSION = 10.0  # seconds
HEARTBEAT = 1.5  # seconds, several per session
# A member that does not rejoin within this is put out of the group, and its work would be replayed for ever:
#   longest drain (settings: 40) + COMMIT_TIMEOUT 5 + CANCEL_GRACE 2 + room 13 = 60
REBALANCE = 60.0  # seconds
REQUEST = 15.0  # seconds; Faust refuses less than SESSION
METADATA_AGE = 5.0  # seconds until the group shares out partitions that a topic has got (Faust: 5 minutes)
COMMIT_EVERY = 0.5  # seconds; a worker killed within this after its assignment makes no progress
COMMIT_TIMEOUT = 5.0  # seconds for the last commit before partitions go
FETCH_WAIT_MS = 500  # the broker's long poll; Faust hard-codes 1500, and every rebalance waits for it
FETCH_BYTES = 2 * (MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES)  # per answer of a broker; aiokafka: 50 MiB
PARTITION_BYTES = 64 * 1024, 1024 * 1024  # of which a partition, at least and at most
POLL_RECORDS = 64  # per poll: what may arrive after a queue has become full
# Full queues are not polled, for as long as their records are retried; whether a worker hangs is the watchdog's
# business, so the client must not leave the group by itself.
POLL_INTERVAL = 24 * 3600.0  # seconds
BUFFER = 64  # events between fetch and agent, which only hands them on
FULL_POLL = 0.05  # seconds; how soon a queue that was full is fetched again
ENDS_TIMEOUT = 5.0  # seconds


def fetch_size(settings: WorkerSettings, topics: int) -> int:
    """Bytes to fetch of a partition at once.

    What lies fetched and not yet taken over, of all partitions of so many topics, is no more than what may be in
    flight. A message that is larger comes all the same, alone: a broker sends the first one of its answer whole, and
    aiokafka asks for the partitions in another order each time.
    """
    least, most = PARTITION_BYTES
    return min(max(settings.in_flight_bytes // (settings.partitions * topics), least), most)


class SafeThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The thread that owns the aiokafka consumer."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._fetch_max_bytes = FETCH_BYTES
        return consumer

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Back to what is committed before the streams go on, and to the beginning where nothing is.

        What was fetched while the group was still sharing out is dropped by Faust. aiokafka goes back for it only
        where a commit says where to: the first records of a new partition would be passed over.
        """
        committed: Mapping[TP, int] = await self.call_thread(self._seek_to_committed)
        return committed

    async def _seek_to_committed(self) -> Mapping[TP, int | None]:
        consumer = self._ensure_consumer()
        committed: Mapping[TP, int | None] = await consumer.seek_to_committed()
        for tp in consumer.assignment():
            if not committed.get(tp):
                consumer.seek(tp, 0)  # without a question to the broker; older than its log: goes to what is oldest
        return committed

    async def on_thread_stop(self) -> None:
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            # While the broker is away, aiokafka's stop lets the cancellation of its own fetch out, and that
            # would end this thread without a word to those who wait for it.
            log.warning("consumer closed while the broker was away")


class SafeConsumer(driver.Consumer):  # type: ignore[misc]
    """Commits by the book, drains within a limit, skips the other lane, fetches no partition whose queue is full."""

    app: SafeApp

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.book: OffsetBook[TP] = OffsetBook()
        # Ends of partitions at their assignment: what lies before may have been seen by an earlier owner.
        self._assigned_ends: Mapping[TP, int] = {}
        self._last_commit: asyncio.Task[None] | None = None  # under way, or given up, for this assignment

    def finished(self, record: Record) -> None:
        """The effects of a record are there: it may be committed."""
        self.book.finished(TP(record.topic, record.partition), record.offset)

    def read_to(self, topic: str, partition: int) -> int | None:
        """Where the next fetch begins; None: nothing was fetched of it yet."""
        return self.book.read_to(TP(topic, partition))

    def goes_on(self, topic: str, partition: int) -> bool:
        """Whether there is more in the log, as of the last fetch."""
        tp = TP(topic, partition)
        try:
            end = self.highwater(tp)
        except (AssertionError, AttributeError):  # given away just now, on the client's own thread
            return False
        read = self.book.read_to(tp)
        return read is not None and end is not None and end > read

    def early(self, record: Record) -> bool:
        """It is put to work before it is fetched (shares.py), and passed over then; False: that was done before."""
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
        # Never cut off: a fetch that is under way moves the position, its records would be lost to us.
        records = await super()._getmany(ready, timeout if ready == active else FULL_POLL)
        return {tp: own for tp, fetched in (records or {}).items() if (own := self._own(tp, fetched))}

    def _own(self, partition: TP, fetched: Sequence[Any]) -> Sequence[Any]:
        """Take note of what was fetched; returns the records of our lane that are not at work yet.

        The other lane's are finished here and now, before Faust and its streams: an import's records must pass the
        stage that handles saves as fast as they are written.
        """
        tp = TP(partition.topic, partition.partition)
        read = self._read_offset.get(tp)
        if fetched and read is not None and fetched[0].offset < read:
            # A leader that was taken for dead knows less than we have read: aiokafka begins at the beginning again.
            # Faust would drop what it has seen without a word, and what is dropped is never finished.
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
        return True  # the book has compared; Faust would compare with an offset whose commit may have failed

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        committed = bool(await super()._commit(offsets))
        if committed:
            for tp, offset in offsets.items():
                self.book.committed(tp, offset)
        return committed

    async def wait_empty(self) -> None:
        """Faust calls it before partitions go, and twice at the end."""
        await self.settle()

    async def settle(self, *, for_good: bool = False) -> None:
        """Let work finish within the limit, then commit what did, within its own. Again: costs nothing."""
        await self.app.in_flight.drain(self.app.drain_limit, for_good=for_good)
        if self._last_commit is not None or all(self.book.committable(tp) is None for tp in self.book.partitions()):
            return
        commit = self._last_commit = asyncio.create_task(self._commit_all(), name=f"last commit of {self.app.conf.id}")
        # Not wait_for: Faust's commit swallows the cancellation with which that would end it.
        await asyncio.wait((commit,), timeout=COMMIT_TIMEOUT)
        if not commit.done():
            commit.cancel()
            log.warning("last commit not confirmed; finished records will be repeated", group=self.app.conf.id)
        elif commit.exception() is None:
            self._last_commit = None

    async def _commit_all(self) -> None:
        # Twice: while another commit is under way, the first call waits for that one and does nothing itself.
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
        """Nothing: Faust's guess of "slow processing" knows neither full queues nor retries; see watchdog.py."""


class SafeTransport(driver.Transport):  # type: ignore[misc]
    Consumer = SafeConsumer


class PromptTables(TableManager):  # type: ignore[misc]
    """We have no tables; Faust's manager would sleep a second for them at every start."""

    async def on_start(self) -> None:
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()


class SafeApp(faust.App):  # type: ignore[misc]
    """One stage: its consumer group, its records in flight, an agent per topic that does nothing but hand on."""

    def __init__(
        self,
        stage: Stage,
        settings: WorkerSettings,
        in_flight: Callable[[SafeApp], InFlight],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.stage = stage
        self.drain_limit = settings.drain_timeout
        self.assigned = asyncio.Event()  # the group has given us partitions, if only none
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
            consumer_group_instance_id=_instance(settings, stage),
            producer_request_timeout=REQUEST,  # Faust's own producer sends nothing; KafkaSender does
            TableManager=PromptTables,
        )
        for topic in stage.routes:
            self._read(prefixed(settings, topic))

    def _new_transport(self) -> SafeTransport:
        return SafeTransport(self.conf.broker_consumer, self)

    def _create_directories(self) -> None:
        """None: nothing of ours lives on disk, and Faust would make them in the working directory."""

    def _read(self, name: str) -> None:
        topic = self.topic(name, key_type=bytes, value_type=bytes)

        async def hand_on(stream: Any) -> None:
            try:
                async for event in _events(stream):
                    self.in_flight.put(self._record(event.message))
                if not self.should_stop:
                    raise RuntimeError(f"the stream of {name} ended")
            except Exception as err:  # Faust would restart the agent and go on behind the lost event
                self._failed(err)
                raise

        self.agent(topic, name=f"{self.conf.id}-{name}")(hand_on)

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
    """What every client of ours connects with, as Faust wants to be told."""
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


def _instance(settings: WorkerSettings, stage: Stage) -> str | None:
    member = settings.static_membership
    return f"{member}-{stage.name}" if member else None
