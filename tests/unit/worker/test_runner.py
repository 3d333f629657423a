"""How a worker process begins and ends, with fakes in the place of Faust's apps and of the broker."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import GroupAuthorizationFailedError, KafkaConnectionError
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from adapters.kafka.access import KafkaDenied
from pipelines.runtime import metrics
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender, Stage
from schemas.base import Message
from schemas.topics import CHANGES, CHUNKS, Topic
from tests import skipping_time
from wiring.settings import Settings
from worker import runner as module
from worker.cut_logs import CutLogs
from worker.in_flight import InFlight
from worker.runner import EXIT_CRASHED, EXIT_NO_SERVICE, EXIT_OK, run_stages
from worker.settings import WorkerLimits

SETTINGS = Settings(kafka="127.0.0.1:9", topic_prefix="p.")


class Note(Message):
    """Any message."""


class Exited(BaseException):
    """In the place of `os._exit`, which nobody can catch."""


class World:
    """What happens, in order; and what is to go wrong."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.apps: dict[str, FakeApp] = {}
        self.broker_away_for = 0.0  # seconds
        self.cannot_connect: set[str] = set()  # stages
        self.never_stops: set[str] = set()
        self.stalls = asyncio.Event()
        self.watched: Sequence[Any] = ()
        self.sent: list[tuple[Topic, str]] = []

    def stage(
        self,
        name: str,
        handler: Handler | None = None,
        topic: Topic = CHANGES,
        setup: Callable[[], Awaitable[None]] | None = None,
    ) -> Stage:
        async def idle(record: Record, sender: Sender) -> None: ...

        async def set_up() -> None:
            self.events.append(f"{name} set up")
            if setup is not None:
                await setup()

        async def torn_down() -> None:
            self.events.append(f"{name} torn down")

        return Stage(name, {topic: handler or idle}, setup=set_up, teardown=torn_down)

    async def ensure_topics(self, bootstrap: str, settings: Settings) -> list[str]:
        if asyncio.get_running_loop().time() < self.broker_away_until:
            raise Retryable("no broker")
        self.events.append("topics")
        return []

    async def look_for_cut_logs(self, cuts: CutLogs, stages: Iterable[Stage], settings: Settings) -> None:
        begun = {f"{stage.name} started" for stage in stages} & set(self.events)
        assert not begun, "a stage that works has passed the gap"

    async def watch(self, stages: Sequence[Any], settings: Settings, limits: WorkerLimits, cuts: CutLogs) -> str:
        self.watched = stages
        await self.stalls.wait()
        return "stands still"

    def run(self, *stages: Stage, on_ready: Callable[[], object] = lambda: None) -> int:
        """A whole worker's life; on_ready is called once all stages are."""

        def ready() -> None:
            self.events.append("ready")
            on_ready()

        async def life() -> int:
            self.broker_away_until = asyncio.get_running_loop().time() + self.broker_away_for
            return await run_stages(stages, SETTINGS, on_ready=ready)

        return skipping_time.run(life())


class FakeApp:
    """A stage's app: joins its group at once."""

    def __init__(
        self, world: World, stage: Stage, in_flight: Callable[[Any], InFlight], failed: Callable[[BaseException], None]
    ) -> None:
        self.world = world
        self.stage = stage
        self.conf = SimpleNamespace(id=f"p.{stage.name}")
        self.assigned = asyncio.Event()
        self._crashed = asyncio.Event()
        self.crash_reason: BaseException | None = None
        self.consumer = self
        self.done: list[Record] = []
        self.owned: set[TopicPartition] = set()
        self.failed = failed
        self.in_flight = in_flight(self)
        world.apps[stage.name] = self

    async def start(self) -> None:
        if self.stage.name in self.world.cannot_connect:
            raise KafkaConnectionError("refused")
        self.world.events.append(f"{self.stage.name} started")
        self.assigned.set()

    async def settle(self, *, for_good: bool = False) -> None:
        await self.in_flight.drain(1.0, for_good=for_good)
        self.in_flight.open()  # as a rebalance that comes in between would
        self.world.events.append(f"{self.stage.name} settled")

    async def stop(self) -> None:
        if self.stage.name in self.world.never_stops:
            await asyncio.Event().wait()
        self.world.events.append(f"{self.stage.name} stopped")

    def finished(self, record: Record) -> None:
        self.done.append(record)

    def assignment(self) -> set[TopicPartition]:
        return self.owned

    def crash(self) -> None:
        self.crash_reason = ZeroDivisionError()
        self._crashed.set()


class FakeSender:
    """What all stages send through."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def send(self, topic: Topic, key: str, message: Message, **options: Any) -> None:
        self.world.sent.append((topic, key))

    async def start(self) -> None:
        self.world.events.append("sender started")

    async def stop(self) -> None:
        self.world.events.append("sender stopped")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    def app(stage: Stage, settings: Settings, limits: WorkerLimits, in_flight: Any, failed: Any) -> FakeApp:
        return FakeApp(world, stage, in_flight, failed)

    def exit_at_once(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(module, "SafeApp", app)
    monkeypatch.setattr(module, "KafkaSender", lambda settings: FakeSender(world))
    monkeypatch.setattr(module, "ensure_topics", world.ensure_topics)
    monkeypatch.setattr(module, "watch", world.watch)
    monkeypatch.setattr(module, "report_at_start", world.look_for_cut_logs)
    monkeypatch.setattr(os, "_exit", exit_at_once)
    return world


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_all_is_set_up_before_the_first_record_and_ends_upstream_first(world: World) -> None:
    assert world.run(world.stage("chunk"), world.stage("embed"), on_ready=terminate) == EXIT_OK
    assert world.events == [
        "topics",
        "sender started",
        "chunk set up",
        "embed set up",
        "chunk started",
        "embed started",
        "ready",
        "chunk settled",
        "embed settled",
        "chunk stopped",
        "embed stopped",
        "chunk torn down",
        "embed torn down",
        "sender stopped",
    ]


def test_a_worker_says_that_it_has_joined_when_it_has(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Callable[[], bool]] = []

    @contextmanager
    def served(host: str, port: int | None, troubles: object, joined: Callable[[], bool]) -> Iterator[None]:
        said.append(joined)
        yield

    monkeypatch.setattr(module, "served", served)
    joined: list[bool] = []

    async def setup() -> None:
        joined.append(said[0]())

    def ready() -> None:
        joined.append(said[0]())
        terminate()

    assert world.run(world.stage("chunk", setup=setup), on_ready=ready) == EXIT_OK
    assert joined == [False, True]


def test_records_get_to_the_handler_of_their_topic_and_none_after_the_end(world: World) -> None:
    handled: list[Record] = []

    async def handler(record: Record, sender: Sender) -> None:
        handled.append(record)
        await sender.send(CHUNKS, "k", Note())

    first = Record("p.cms.changes", 0, 1, b"k", b"v")

    def give() -> None:
        world.apps["chunk"].in_flight.put(first)
        asyncio.get_running_loop().call_later(1, terminate)

    assert world.run(world.stage("chunk", handler), on_ready=give) == EXIT_OK
    app = world.apps["chunk"]
    assert handled == app.done == [first]
    assert world.sent == [(CHUNKS, "k")]
    app.in_flight.put(Record("p.cms.changes", 0, 2, b"k", b"v"))
    assert app.in_flight.running == 0


def test_a_service_that_is_not_there_yet_is_waited_for(world: World) -> None:
    world.broker_away_for = 20.0
    tries = 0

    async def setup() -> None:
        nonlocal tries
        tries += 1
        if tries < 20:
            raise Retryable("Elasticsearch does not answer")

    assert world.run(world.stage("chunk", setup=setup), on_ready=terminate) == EXIT_OK
    assert tries == 20


def test_a_broker_that_does_not_come_ends_it_with_3(world: World) -> None:
    world.broker_away_for = 3600.0
    assert world.run(world.stage("chunk")) == EXIT_NO_SERVICE
    assert world.events == []


async def away() -> None:
    raise Retryable("Elasticsearch does not answer")


async def unfit() -> None:
    raise Permanent("no such model")


@pytest.mark.parametrize(("setup", "code"), [(away, EXIT_NO_SERVICE), (unfit, EXIT_CRASHED)])
def test_a_setup_that_fails_ends_it_and_closes_what_it_had_opened(
    world: World, setup: Callable[[], Awaitable[None]], code: int
) -> None:
    assert world.run(world.stage("chunk"), world.stage("embed", setup=setup), world.stage("index")) == code
    assert "ready" not in world.events
    ended = [event for event in world.events if event.endswith("torn down")]
    assert ended == ["chunk torn down", "embed torn down"]  # index had not begun
    assert world.events[-1] == "sender stopped"


def test_a_stage_that_cannot_connect_ends_it_with_3(world: World) -> None:
    world.cannot_connect = {"embed"}
    assert world.run(world.stage("chunk"), world.stage("embed")) == EXIT_NO_SERVICE


@pytest.mark.parametrize(
    "breaks",
    [
        lambda world: world.apps["embed"].crash(),
        lambda world: world.apps["embed"].failed(ZeroDivisionError()),
        lambda world: world.stalls.set(),
    ],
    ids=["Faust crashed", "defect", "standstill"],
)
def test_whatever_breaks_ends_it_with_1_after_all_have_settled(world: World, breaks: Callable[[World], None]) -> None:
    assert world.run(world.stage("chunk"), world.stage("embed"), on_ready=lambda: breaks(world)) == EXIT_CRASHED
    assert [event for event in world.events if event.endswith("settled")] == ["chunk settled", "embed settled"]
    assert world.events[-1] == "sender stopped"


def test_a_worker_that_cannot_be_stopped_in_order_ends_all_the_same(world: World) -> None:
    """Faust's threads would keep the process alive, and its partitions with it."""
    world.never_stops = {"chunk"}
    with pytest.raises(Exited):
        world.run(world.stage("chunk"), world.stage("embed"), on_ready=terminate)
    assert "embed stopped" in world.events  # one that hangs keeps no other from leaving its group


def test_two_topics_of_a_stage_have_a_handler_each(world: World) -> None:
    handled: list[str] = []

    async def changes(record: Record, sender: Sender) -> None:
        handled.append("changes")

    async def chunks(record: Record, sender: Sender) -> None:
        handled.append("chunks")

    stage = Stage("both", {CHANGES: changes, CHUNKS: chunks})

    def give() -> None:
        for topic in ("p.ingest.chunks", "p.cms.changes"):
            world.apps["both"].in_flight.put(Record(topic, 0, 1, b"k", b"v"))
        asyncio.get_running_loop().call_later(1, terminate)

    assert world.run(stage, on_ready=give) == EXIT_OK
    assert sorted(handled) == ["changes", "chunks"]


def test_the_watchdog_looks_at_what_a_stage_owns(world: World) -> None:
    world.run(world.stage("chunk"), on_ready=terminate)
    [watched] = world.watched
    assert (watched.group, watched.topics) == ("p.chunk", ["p.cms.changes"])
    world.apps["chunk"].owned = {TopicPartition("p.cms.changes", 1)}
    assert set(watched.assigned()) == world.apps["chunk"].owned
    assert not watched.busy(TopicPartition("p.cms.changes", 1))


async def test_a_missing_right_is_said_in_place_of_a_crash() -> None:
    crashed = asyncio.Event()
    crashed.set()
    reason = GroupAuthorizationFailedError("p.pagewire-embed")
    app = SimpleNamespace(conf=SimpleNamespace(id="p.pagewire-embed"), _crashed=crashed, crash_reason=reason)
    assert "`pagewire topics --acls`" in await module._crash(app)  # type: ignore[arg-type]


def test_what_has_not_happened_yet_is_a_zero() -> None:
    metrics.begin("unheard", "bulk")
    for outcome in ("ok", "parked", "dead"):
        labels = {"stage": "unheard", "lane": "bulk", "outcome": outcome}
        assert REGISTRY.get_sample_value("pagewire_events_total", labels) == 0


async def test_a_refused_login_is_told_at_once_and_not_only_when_the_wait_is_over() -> None:
    pause = module._at_start()
    with capture_logs() as logs:
        assert pause(Retryable("not there yet"), 1) is not None
        assert [pause(KafkaDenied("PAGEWIRE_KAFKA_PASSWORD"), failures) for failures in (2, 3)] == [1.0, 1.0]
    assert [line["error"] for line in logs] == ["PAGEWIRE_KAFKA_PASSWORD"]
