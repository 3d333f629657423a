"""An upgrade of Faust or aiokafka must be seen: each override of worker/faust_app.py rests on something.

Per override: the signature it replaces, and a marker in the source of what it replaces or of who calls it. When
a test here fails, read the new source, decide whether the override is still right (or still needed), then run
tests/faults and change the marker.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer import fetcher
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.producer.producer import AIOKafkaProducer
from faust.app.base import App
from faust.streams import Stream
from faust.tables.manager import TableManager
from faust.transport import consumer as base
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode import Service

from adapters.kafka.sender import MAX_RECORD_BYTES
from pipelines.runtime.record import LANE_HEADER, Lane, Record
from pipelines.runtime.stage import Stage, by_record_key
from schemas.topics import CHANGES
from wiring.settings import Settings
from worker import faust_app
from worker.faust_app import PromptTables, SafeApp, SafeConsumer, SafeThread, SafeTransport
from worker.in_flight import InFlight
from worker.settings import WorkerLimits

PINNED = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0", "mode-streaming": "0.7.1"}

# Ours, the method, its signature upstream, and what must stand (with who it is that says so).
OVERRIDES: tuple[tuple[type, str, str, Callable[..., Any], str], ...] = (
    (
        SafeThread,
        "_create_worker_consumer",
        "(self, transport)",
        driver.AIOKafkaConsumerThread._create_worker_consumer,
        "fetch_max_wait_ms=1500",
    ),
    (
        SafeThread,
        "on_thread_stop",
        "(self)",
        driver.AIOKafkaConsumerThread.on_thread_stop,
        "await self._consumer.stop()",
    ),
    (
        SafeThread,
        "seek_to_committed",
        "(self)",
        AIOKafkaConsumer.seek_to_committed,
        "if offset and offset > 0: self._fetcher.seek_to(tp, offset)",
    ),
    (
        SafeConsumer,
        "_new_consumer_thread",
        "(self)",
        base.ThreadDelegateConsumer.__init__,
        "self._thread = self._new_consumer_thread()",
    ),
    (
        SafeConsumer,
        "_getmany",
        "(self, active_partitions, timeout)",
        base.Consumer._wait_next_records,
        "await self._getmany( active_partitions=active_partitions, timeout=timeout, )",
    ),
    (
        SafeConsumer,
        "_filter_tps_with_pending_acks",
        "(self, topics=None)",
        base.Consumer.force_commit,
        "commit_tps = list(self._filter_tps_with_pending_acks(topics))",
    ),
    (
        SafeConsumer,
        "_new_offset",
        "(self, tp)",
        base.Consumer._filter_committable_offsets,
        "offset = self._new_offset(tp)",
    ),
    (
        SafeConsumer,
        "_should_commit",
        "(self, tp, offset)",
        base.Consumer._filter_committable_offsets,
        "if offset is not None and self._should_commit(tp, offset)",
    ),
    (
        SafeConsumer,
        "_commit",
        "(self, offsets)",
        base.Consumer._commit_offsets,
        "did_commit = await self._commit(committable_offsets)",
    ),
    (
        SafeConsumer,
        "wait_empty",
        "(self)",
        App._consumer_wait_empty,
        "if self.conf.stream_wait_empty: logger.info('Wait for streams...') await consumer.wait_empty()",
    ),
    (
        SafeConsumer,
        "on_partitions_revoked",
        "(self, revoked)",
        base.ConsumerThread.on_partitions_revoked,
        "self.consumer.threadsafe_partitions_revoked(self.thread_loop, revoked)",
    ),
    (
        SafeConsumer,
        "on_partitions_assigned",
        "(self, assigned, generation_id=0)",
        base.ThreadDelegateConsumer.threadsafe_partitions_assigned,
        "self.on_partitions_assigned, assigned, generation_id,",
    ),
    (
        SafeConsumer,
        "verify_event_path",
        "(self, now, tp)",
        base.Consumer.verify_all_partitions_active,
        "self.verify_event_path(now, tp)",
    ),
    (PromptTables, "on_start", "(self)", TableManager.on_start, "await self.sleep(1.0)"),
    (SafeApp, "_new_transport", "(self)", App._new_transport, "self.conf.broker_consumer, self"),
    (SafeApp, "_create_directories", "(self)", App.on_first_start, "self._create_directories()"),
)

# What we rely on without overriding it.
RELIED_ON: tuple[tuple[Callable[..., Any], str, str], ...] = (
    (
        App._on_partitions_revoked,
        "await T(self._consumer_wait_empty)(consumer, on_timeout)",
        "work drains while the partitions are still ours",
    ),
    (App._on_partitions_revoked, "T(consumer.stop_flow)()", "nothing new is handed on while work drains"),
    (App._stop_consumer, "await self._consumer_wait_empty(consumer, self.log)", "work drains at the end"),
    (
        base.Consumer._commit_offsets,
        "if tp in assignment: committable_offsets[tp] = offset",
        "lost partitions are not committed",
    ),
    (
        base.Consumer._wait_next_records,
        "if is_client_only or active_partitions:",
        "no fetch without partitions",
    ),
    (
        fetcher.Fetcher._get_actions_per_node,
        "random.shuffle(partition_data)",
        "each partition is first in a request sometime, and gets a message larger than its share",
    ),
    (
        fetcher.Fetcher.fetched_records,
        "if partitions and tp not in partitions:",
        "an empty set means all partitions",
    ),
    (
        base.Consumer._wait_for_ack,
        "except (asyncio.TimeoutError, asyncio.CancelledError)",
        "why wait_empty is our own",
    ),
    (
        base.Consumer.maybe_wait_for_commit_to_finish,
        "except asyncio.CancelledError: pass",
        "why wait_for cannot bound the last commit",
    ),
    (
        driver.AIOKafkaConsumerThread._create_worker_consumer,
        "else RoundRobinPartitionAssignor",
        "a rebalance revokes all partitions",
    ),
    (
        AIOKafkaConsumer.start,
        "fetch_max_wait_ms=self._fetch_max_wait_ms",
        "settings after the constructor count",
    ),
    (AIOKafkaConsumer.start, "fetch_max_bytes=self._fetch_max_bytes", "settings after the constructor count"),
    (AIOKafkaProducer.__init__, "enable_idempotence", "the sender is idempotent"),
    (
        base.Consumer._drain_messages,
        "if r_offset is None or offset >= r_offset:",
        "what Faust has read it drops when it comes again",
    ),
    (Service._crash, "self._crashed.set()", "the runner waits for crashes"),
    (Service._crash, "self.crash_reason = reason", "and tells why"),
    (Stream.noack, "enable_acks=False", "Faust acknowledges nothing"),
)


@pytest.mark.parametrize("package", PINNED)
def test_the_versions_are_those_the_overrides_were_written_for(package: str) -> None:
    assert version(package) == PINNED[package]


@pytest.mark.parametrize(
    ("ours", "name", "signature", "witness", "marker"), OVERRIDES, ids=lambda p: getattr(p, "__qualname__", p)
)
def test_what_an_override_replaces_is_unchanged(
    ours: type, name: str, signature: str, witness: Callable[..., Any], marker: str
) -> None:
    upstream = getattr(ours.__mro__[1], name)
    assert name in vars(ours)
    assert _bare(upstream) == signature
    assert _bare(vars(ours)[name]) == signature
    assert inspect.iscoroutinefunction(upstream) == inspect.iscoroutinefunction(vars(ours)[name])
    assert _flat(marker) in _flat(inspect.getsource(witness))


def test_every_override_has_its_canary() -> None:
    watched = {(ours, name) for ours, name, *_ in OVERRIDES}
    for ours in (SafeThread, SafeConsumer, SafeTransport, PromptTables, SafeApp):
        upstream = ours.__mro__[1]
        replaced = {
            name
            for name, value in vars(ours).items()
            if inspect.isfunction(value) and hasattr(upstream, name) and name != "__init__"
        }
        assert {(ours, name) for name in replaced} == {pair for pair in watched if pair[0] is ours}


@pytest.mark.parametrize(("witness", "marker", "why"), RELIED_ON, ids=[why for *_, why in RELIED_ON])
def test_what_we_rely_on_still_stands(witness: Callable[..., Any], marker: str, why: str) -> None:
    assert _flat(marker) in _flat(inspect.getsource(witness)), why


def _bare(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def _flat(source: str) -> str:
    lines = (line for line in source.splitlines() if not line.strip().startswith("#"))
    return "".join(" ".join(lines).replace('"', "'").split())


class FakeThread:
    """The consumer's thread without a broker: gives what the test puts in, notes what is committed."""

    def __init__(self) -> None:
        self.fetched: dict[TP, list[int]] = {}
        self.bulk: set[int] = set()  # offsets of records in the bulk lane
        self.asked: set[TP] | None = None
        self.commits: list[dict[TP, int]] = []
        self.commit_works = True
        self.answers = asyncio.Event()
        self.answers.set()
        self.ends: dict[TP, int] = {}
        self.owned = {TP("cms.changes", 0), TP("cms.changes", 1)}

    async def getmany(self, active: set[TP], timeout: float) -> dict[TP, list[Any]]:
        self.asked = set(active)
        return {
            tp: [_Fetched(offset, offset in self.bulk) for offset in offsets]
            for tp, offsets in self.fetched.items()
            if tp in active
        }

    async def commit(self, offsets: Mapping[TP, int]) -> bool:
        self.commits.append(dict(offsets))
        await self.answers.wait()
        return self.commit_works

    def assignment(self) -> set[TP]:
        return self.owned

    def highwater(self, tp: TP) -> int | None:
        return self.ends.get(tp)

    async def highwaters(self, *partitions: TP) -> dict[TP, int]:
        return {tp: self.ends[tp] for tp in partitions}


class _Fetched:
    def __init__(self, offset: int, bulk: bool) -> None:
        self.offset = offset
        self.headers = [(LANE_HEADER, b"bulk")] if bulk else []


class _Producer:
    async def flush(self) -> None: ...


A, B = TP("cms.changes", 0), TP("cms.changes", 1)


def _record(offset: int, partition: int = 0) -> Record:
    return Record("cms.changes", partition, offset, str(offset).encode(), b"")


@pytest.fixture
def failures() -> list[BaseException]:
    """What the app told its owner; a test that expects some takes them out."""
    return []


@pytest.fixture
async def app(request: pytest.FixtureRequest, failures: list[BaseException]) -> AsyncIterator[SafeApp]:
    """`lane` of the stage: the test's parameter, else none."""

    async def handle(record: Record, sender: object) -> None:
        raise AssertionError("not reached")

    async def work(work: object) -> None:
        await asyncio.Event().wait()

    def in_flight(app: SafeApp) -> InFlight:
        return InFlight(
            window=2,
            order_key=by_record_key,
            work=work,
            finished=lambda record: app.consumer.finished(record),
            failed=failures.append,
        )

    settings = Settings(kafka="127.0.0.1:9")
    lane: Lane | None = getattr(request, "param", None)
    app = SafeApp(
        Stage("canary", {CHANGES: handle}, lane=lane),
        settings,
        WorkerLimits(drain_timeout=0.01),
        in_flight,
        failures.append,
    )
    own_loop = app.consumer._thread.thread_loop  # made with the thread object, which is never started here
    yield app
    await app.in_flight.drain(0)
    own_loop.close()
    assert failures == []


@pytest.fixture
def thread(app: SafeApp, monkeypatch: pytest.MonkeyPatch) -> FakeThread:
    thread = FakeThread()
    monkeypatch.setattr(app.consumer, "_thread", thread)
    monkeypatch.setattr(app, "_producer", _Producer())
    return thread


async def test_faust_takes_our_parts(app: SafeApp) -> None:
    assert isinstance(app.transport, SafeTransport)
    assert isinstance(app.consumer, SafeConsumer)
    assert isinstance(app.consumer._thread, SafeThread)
    assert isinstance(app.tables, PromptTables)
    assert app.conf.id == "pagewire-canary"
    assert app.conf.stream_wait_empty
    # Topics are ours to make (adapters/kafka/topics.py), and a worker opens no port that nobody asked for.
    assert not app.conf.topic_allow_declare
    assert not app.conf.web_enabled


class Stream:
    """Faust's stream of a topic: these messages, then its end."""

    def __init__(self, *messages: object) -> None:
        self._messages = messages

    def noack(self) -> Stream:
        return self

    async def events(self) -> AsyncIterator[SimpleNamespace]:
        for message in self._messages:
            yield SimpleNamespace(message=message)


async def test_each_topic_has_an_agent_that_hands_on_what_is_in_it(
    app: SafeApp, thread: FakeThread, failures: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def assigned(self: object, assigned: set[TP], generation_id: int = 0) -> None: ...

    monkeypatch.setattr(driver.Consumer, "on_partitions_assigned", assigned)
    thread.ends = {A: 8, B: 8}
    await app.consumer.on_partitions_assigned({A, B}, 1)
    [agent] = app.agents.values()
    assert agent.channel.topics == ("cms.changes",)
    handed_on: list[Record] = []
    monkeypatch.setattr(app, "in_flight", SimpleNamespace(put=handed_on.append, drain=app.in_flight.drain))
    older = SimpleNamespace(
        topic="cms.changes", partition=1, offset=7, key=b"k", value=b"v", headers=[("own", b"1")], timestamp=5.001
    )
    newer = SimpleNamespace(
        topic="cms.changes", partition=0, offset=8, key=None, value=None, headers=None, timestamp=None
    )
    with pytest.raises(RuntimeError, match="ended"):
        await agent.fun(Stream(older, newer))
    assert handed_on == [
        Record("cms.changes", 1, 7, b"k", b"v", (("own", b"1"),), timestamp_ms=5001),
        Record("cms.changes", 0, 8, None, None, fresh=True),
    ]
    # Faust would restart the agent and go on behind what was lost; the worker ends instead.
    assert "the stream of cms.changes ended" in str(failures.pop())


@pytest.mark.parametrize(
    ("partitions", "topics", "size"), [(4, 1, 1024 * 1024), (100, 1, 671_088), (100, 2, 335_544), (1_000, 2, 65_536)]
)
def test_what_is_fetched_ahead_does_not_grow_with_the_partitions(partitions: int, topics: int, size: int) -> None:
    assert faust_app.fetch_size(Settings(kafka="127.0.0.1:9", partitions=partitions), topics) == size


async def test_the_consumer_is_made_with_our_sizes_and_times(app: SafeApp) -> None:
    made = app.consumer._thread._create_worker_consumer(app.transport)
    try:
        assert (made._fetch_max_wait_ms, made._fetch_max_bytes) == (faust_app.FETCH_WAIT_MS, faust_app.FETCH_BYTES)
        assert faust_app.FETCH_BYTES >= MAX_RECORD_BYTES  # of what we send
        assert made._max_partition_fetch_bytes == 1024 * 1024
        assert made._rebalance_timeout_ms == 60_000
        assert made._client._metadata_max_age_ms == 5_000  # new partitions are shared out soon
        assert made._max_poll_interval_ms == 24 * 3600 * 1000
        assert not made._enable_auto_commit
    finally:
        await made.stop()


async def test_where_nothing_is_committed_an_assignment_begins_at_the_beginning(app: SafeApp) -> None:
    """What was fetched and dropped meanwhile would be passed over: with no commit, nobody goes back for it."""
    nothing, zero, some = TP("new", 0), TP("new", 1), TP("old", 0)
    sought: dict[TP, int] = {}

    class Consumer:
        async def seek_to_committed(self) -> Mapping[TP, int | None]:
            return {nothing: None, zero: 0, some: 7}  # goes to 7 itself

        def assignment(self) -> set[TP]:
            return {nothing, zero, some}

        def seek(self, tp: TP, offset: int) -> None:
            sought[tp] = offset

    thread = app.consumer._thread
    thread._consumer = Consumer()
    assert await thread._seek_to_committed() == {nothing: None, zero: 0, some: 7}
    assert sought == {nothing: 0, zero: 0}


async def test_the_commit_stops_at_what_is_not_finished(app: SafeApp, thread: FakeThread) -> None:
    thread.fetched = {A: [3, 4, 7]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    app.consumer.finished(_record(3))
    app.consumer.finished(_record(7))
    await app.consumer.commit()
    assert thread.commits == [{A: 4}]
    await app.consumer.commit()
    assert len(thread.commits) == 1
    app.consumer.finished(_record(4))
    await app.consumer.commit()
    assert thread.commits[1:] == [{A: 8}]


async def test_what_is_read_again_without_a_new_assignment_is_worked_on_again(app: SafeApp, thread: FakeThread) -> None:
    """A leader that came back out of the past has shorter logs; Faust would drop all that it has seen."""
    thread.fetched = {A: [3, 4]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    for offset in (3, 4):
        app.consumer.finished(_record(offset))
    app.consumer._read_offset[A] = 4
    thread.fetched = {A: [4, 5]}  # where Faust stands: nothing went back
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    assert app.consumer._read_offset[A] == 4
    thread.fetched = {A: [0, 3]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    assert app.consumer._read_offset[A] is None
    app.consumer.finished(_record(0))
    await app.consumer.commit()
    assert thread.commits[-1] == {A: 1}


@pytest.mark.parametrize(
    ("app", "own"), [("save", [3, 6]), ("bulk", [4, 5, 9]), (None, [3, 4, 5, 6, 9])], indirect=["app"]
)
async def test_the_other_lane_is_finished_before_faust_sees_it(
    app: SafeApp, thread: FakeThread, own: list[int]
) -> None:
    thread.fetched, thread.bulk = {A: [3, 4, 5, 6, 9]}, {4, 5, 9}
    records = await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    assert [record.offset for record in records[A]] == own
    await app.consumer.commit()
    assert thread.commits == ([{A: 4}] if own[0] > 3 else [])  # what is ours is not finished, and holds the commit
    for offset in own:
        app.consumer.finished(_record(offset))
    await app.consumer.commit()
    assert thread.commits[-1] == {A: 10}


@pytest.mark.parametrize("app", ["bulk"], indirect=True)
async def test_what_is_at_work_early_is_passed_over_and_holds_the_commit(app: SafeApp, thread: FakeThread) -> None:
    for offset in (4, 5):
        assert app.consumer.early(_record(offset))
        assert not app.consumer.early(_record(offset))
    app.consumer.finished(_record(4))
    thread.fetched, thread.bulk = {A: [3, 4, 5, 6]}, {3, 4, 5, 6}
    records = await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    assert [record.offset for record in records[A]] == [3, 6]
    assert app.consumer.read_to("cms.changes", 0) == 7
    for offset, commits in ((3, {A: 5}), (6, {A: 5}), (5, {A: 7})):
        app.consumer.finished(_record(offset))
        await app.consumer.commit()
        assert thread.commits[-1] == commits


async def test_whether_the_log_goes_on_is_known_by_the_last_fetch(
    app: SafeApp, thread: FakeThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not app.consumer.goes_on("cms.changes", 0)  # nothing was fetched of it
    thread.fetched = {A: [3]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    thread.ends = {A: 4}
    assert not app.consumer.goes_on("cms.changes", 0)
    thread.ends = {A: 5}
    assert app.consumer.goes_on("cms.changes", 0)
    client = SimpleNamespace(_subscription=SubscriptionState())
    monkeypatch.setattr(thread, "highwater", partial(AIOKafkaConsumer.highwater, client))
    assert not app.consumer.goes_on("cms.changes", 0)  # as the client says of what it was not assigned


@pytest.mark.parametrize("app", ["save"], indirect=True)
async def test_a_partition_with_nothing_of_ours_moves_on(app: SafeApp, thread: FakeThread) -> None:
    thread.fetched, thread.bulk = {A: [0, 1], B: [7]}, {0, 1, 7}
    assert await app.consumer._getmany(active_partitions={A, B}, timeout=1.0) == {}
    await app.consumer.commit()
    assert thread.commits == [{A: 2, B: 8}]


@pytest.mark.parametrize("app", ["bulk"], indirect=True)
async def test_lanes_do_not_share_a_group(app: SafeApp) -> None:
    assert app.conf.id == "pagewire-canary-bulk"


async def test_a_failed_commit_is_tried_again(app: SafeApp, thread: FakeThread) -> None:
    thread.fetched = {A: [3]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    app.consumer.finished(_record(3))
    thread.commit_works = False
    await app.consumer.commit()
    thread.commit_works = True
    await app.consumer.commit()
    assert thread.commits == [{A: 4}, {A: 4}]


async def test_a_last_commit_that_is_not_answered_is_given_up_once(
    app: SafeApp, thread: FakeThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faust_app, "COMMIT_TIMEOUT", 0.01)
    thread.fetched = {A: [3]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    app.consumer.finished(_record(3))
    thread.answers.clear()
    await app.consumer.wait_empty()
    await app.consumer.wait_empty()
    assert thread.commits == [{A: 4}]
    thread.answers.set()


async def test_a_full_queue_is_not_fetched(app: SafeApp, thread: FakeThread) -> None:
    for offset in range(4):
        app.in_flight.put(_record(offset))
    await app.consumer._getmany(active_partitions={A, B}, timeout=1.0)
    assert thread.asked == {B}
    thread.asked = None
    assert await app.consumer._getmany(active_partitions={A}, timeout=0.01) == {}
    assert thread.asked is None  # an empty set would have meant "all"


async def test_what_faust_itself_acknowledges_counts_for_nothing(app: SafeApp, thread: FakeThread) -> None:
    thread.fetched = {A: [3]}
    records = await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    assert records
    app.topics._acking_topics.add("cms.changes")
    app.consumer._acked[A].append(3)
    await app.consumer.commit()
    assert thread.commits == []


async def test_only_what_came_after_the_assignment_is_fresh(
    app: SafeApp, thread: FakeThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    faust_told: list[tuple[set[TP], int]] = []

    async def assigned(self: object, assigned: set[TP], generation_id: int = 0) -> None:
        faust_told.append((assigned, generation_id))

    monkeypatch.setattr(driver.Consumer, "on_partitions_assigned", assigned)
    thread.ends = {A: 10}
    await app.consumer.on_partitions_assigned({A}, 7)
    assert faust_told == [({A}, 7)]  # by the generation, Faust knows a rebalance that is out of date
    assert app.assigned.is_set()
    assert not app.consumer.fresh("cms.changes", 0, 9)
    assert app.consumer.fresh("cms.changes", 0, 10)
    assert not app.consumer.fresh("cms.changes", 1, 99)
    thread.ends = {}  # the broker does not say
    await app.consumer.on_partitions_assigned({A}, 2)
    assert not app.consumer.fresh("cms.changes", 0, 99)


async def test_what_was_fetched_before_an_assignment_holds_up_no_commit_after_it(
    app: SafeApp, thread: FakeThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was taken for dead is not told that its partitions went: others have finished what it had."""

    async def assigned(self: object, assigned: set[TP], generation_id: int = 0) -> None: ...

    monkeypatch.setattr(driver.Consumer, "on_partitions_assigned", assigned)
    thread.ends = {A: 10}
    thread.fetched = {A: [3, 4, 5]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    app.consumer.finished(_record(4))
    await app.consumer.on_partitions_assigned({A}, 2)
    await app.consumer.commit()
    assert thread.commits == []  # nothing was fetched since
    thread.fetched = {A: [8]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    app.consumer.finished(_record(8))
    await app.consumer.commit()
    assert thread.commits == [{A: 9}]


async def test_the_end_of_an_assignment_drains_commits_and_forgets(
    app: SafeApp, thread: FakeThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def revoked(self: SafeConsumer, revoked: set[TP]) -> None:
        await self.wait_empty()  # where App._on_partitions_revoked leads to

    monkeypatch.setattr(driver.Consumer, "on_partitions_revoked", revoked)
    thread.fetched = {A: [0, 1]}
    await app.consumer._getmany(active_partitions={A}, timeout=1.0)
    app.consumer.finished(_record(0))
    app.in_flight.put(_record(1))
    await app.consumer.on_partitions_revoked({A})
    assert thread.commits == [{A: 1}]
    assert app.consumer.book.partitions() == ()
    assert not app.in_flight.running
