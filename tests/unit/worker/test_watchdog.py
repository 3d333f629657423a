"""When a standstill is one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import pytest
from aiokafka import TopicPartition

from pipelines.runtime.bus import Producer
from pipelines.runtime.errors import Retryable
from tests import skipping_time
from tests.fakes.pages import FakeSender
from wiring.settings import Settings
from worker import watchdog as module
from worker.cut_logs import CutLogs
from worker.settings import WorkerLimits
from worker.watchdog import Ends, Stall, watch

TP = TopicPartition("t", 0)


class Look:
    """A stall with a limit of 10 s, looked at every 4 s."""

    def __init__(self) -> None:
        self.stall = Stall(10.0)
        self.now = 0.0

    def __call__(self, *, at: int = 5, behind: int = 3, busy: bool = False) -> float | None:
        self.now += 4.0
        found = self.stall.update(self.now, {TP: at}, {TP: behind}, lambda tp: busy)
        return found and found[1]


def test_messages_wait_and_nothing_moves() -> None:
    look = Look()
    assert [look() for _ in range(5)] == [None, None, None, None, 12.0]


@pytest.mark.parametrize("alive", [{"at": 6}, {"behind": 0}, {"busy": True}])
def test_any_sign_of_life_starts_the_clock_again(alive: dict[str, int]) -> None:
    look = Look()
    for _ in range(3):
        look()
    look(**alive)  # type: ignore[arg-type]
    # Back at the old offset: that is a movement too, and the clock starts at the look after.
    assert [look() for _ in range(3)] == [None, None, None]


def test_not_being_able_to_look_is_no_standstill() -> None:
    look = Look()
    for _ in range(4):
        look()
    look.stall.reset()
    assert [look() for _ in range(3)] == [None, None, None]
    assert look() == 12.0


def test_a_partition_that_stands_still_among_others_that_move_is_told_of() -> None:
    stall, moving, waiting = Stall(10.0), TopicPartition("t", 1), TopicPartition("t", 2)
    found = [
        stall.update(4.0 * n, {TP: 5, moving: n, waiting: 7}, {TP: 3, moving: 9, waiting: 1}, lambda tp: tp == waiting)
        for n in range(5)
    ]
    assert found == [None, None, None, None, ([TP], 12.0)]


def test_a_worker_that_was_given_nothing_is_alive_as_long_as_others_move() -> None:
    stall, moving = Stall(10.0), TopicPartition("t", 1)
    for n in range(9):
        assert stall.update(4.0 * n, {TP: 5, moving: n}, {TP: 3, moving: 9}, lambda tp: False, together=True) is None


def test_a_log_that_became_shorter_is_another_one() -> None:
    ends = Ends()
    other = TopicPartition("u", 0)
    assert [ends.update({TP: at, other: 7}) for at in (0, 5, 5, 8)] == [None] * 4
    assert ends.update({TP: 2, other: 9}) == "t"


class FakeBroker:
    """A broker, and the one stage that reads its topic `t`; `at(seconds)` says how things are after so many seconds."""

    group = "chunk"
    topics = ["t"]  # noqa: RUF012 - what the stage reads

    def __init__(self, at: Callable[[FakeBroker, float], None]) -> None:
        self.end, self.done = 10, 5
        self.there, self.answers, self.working = True, True, False
        self.own, self.partitions = [TP], {0}
        self.connections = 0
        self._at = at
        self._begun: float | None = None

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        self._begun = now if self._begun is None else self._begun
        self._at(self, now - self._begun)
        if not self.answers:
            raise Retryable("no broker")

    # The stage.

    def assigned(self) -> Sequence[TopicPartition]:
        return self.own

    def busy(self, partition: TopicPartition) -> bool:
        return self.working

    # What the watchdog asks of the broker.

    async def start(self) -> None:
        self.connections += 1
        self._look()

    async def stop(self) -> None:
        self.connections -= 1

    async def described(self) -> dict[str, set[int]]:
        self._look()
        return {"t": self.partitions} if self.there else {}

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.end)

    async def begins(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        assert group == "chunk"
        return {TP: self.done, TopicPartition("of another worker", 0): round(asyncio.get_running_loop().time())}

    async def behind(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.end - self.done)


LIMIT = 120.0  # seconds: the default of the setting


def watched(monkeypatch: pytest.MonkeyPatch, at: Callable[[FakeBroker, float], None]) -> tuple[str | None, float]:
    """What the watchdog says of it within an hour, and after how many seconds."""
    broker = FakeBroker(at)

    class Client:
        def __init__(self, bootstrap: str) -> None:
            self.start, self.stop, self.topics = broker.start, broker.stop, broker.described
            self.ends, self.committed, self.behind = broker.ends, broker.committed, broker.behind
            self.begins = broker.begins

    monkeypatch.setattr(module, "Broker", Client)

    async def look() -> tuple[str | None, float]:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(module, "monotonic", loop.time)
        begun = loop.time()
        said = None
        try:
            async with asyncio.timeout(3600):
                said = await watch(
                    [broker],
                    Settings(kafka="127.0.0.1:9"),
                    WorkerLimits(stall_timeout=LIMIT),
                    CutLogs("", cast(Producer, FakeSender())),
                )
        except TimeoutError:
            pass
        assert broker.connections == 0, "a connection was left open"
        return said, loop.time() - begun

    return skipping_time.run(look())


def test_a_stage_that_stands_still_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    said, after = watched(monkeypatch, lambda broker, seconds: None)
    assert said is not None
    assert said.startswith("chunk: 5 messages wait in t[0], none moved for ")
    assert LIMIT <= after <= 1.5 * LIMIT


def test_a_stage_that_works_or_moves_or_has_nothing_to_do_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def works(broker: FakeBroker, seconds: float) -> None:
        broker.working = True

    def moves(broker: FakeBroker, seconds: float) -> None:
        broker.done, broker.end = 5 + round(seconds), 10 + round(seconds)

    def rests(broker: FakeBroker, seconds: float) -> None:
        broker.done = broker.end

    for at in (works, moves, rests):
        assert watched(monkeypatch, at)[0] is None


def test_a_broker_that_is_away_is_no_standstill_and_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(broker: FakeBroker, seconds: float) -> None:
        broker.answers = seconds % 100 < 50  # never for as long as a standstill lasts

    assert watched(monkeypatch, away)[0] is None

    def comes_back(broker: FakeBroker, seconds: float) -> None:
        broker.answers = seconds > 600

    said, after = watched(monkeypatch, comes_back)
    assert said is not None
    assert after >= 600 + LIMIT


def test_a_topic_that_is_deleted_is_told_of_and_one_that_is_missing_for_a_moment_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rests(broker: FakeBroker) -> None:
        broker.done = broker.end

    def flickers(broker: FakeBroker, seconds: float) -> None:
        rests(broker)
        broker.there = not broker.there or seconds < 300

    assert watched(monkeypatch, flickers)[0] is None

    def goes(broker: FakeBroker, seconds: float) -> None:
        rests(broker)
        broker.there = seconds < 300

    said, after = watched(monkeypatch, goes)
    assert said == "topic t was deleted under this worker"
    assert after < 300 + LIMIT


def test_a_topic_that_begins_anew_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def anew(broker: FakeBroker, seconds: float) -> None:
        broker.end = 10 if seconds < 300 else 2
        broker.done = broker.end

    said, after = watched(monkeypatch, anew)
    assert said == "topic t was deleted and created again, or cut, under this worker"
    assert after < 300 + LIMIT


def test_a_worker_that_was_given_nothing_looks_at_all_partitions_that_there_are_by_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def grows(broker: FakeBroker, seconds: float) -> None:
        broker.own = []
        broker.partitions = {0, 1, 2} if seconds > 300 else {0}

    said, _ = watched(monkeypatch, grows)
    assert said is not None
    assert said.startswith("chunk: 5 messages wait in t[0], none moved")

    def stands_in_the_new_ones(broker: FakeBroker, seconds: float) -> None:
        grows(broker, 301)

    said, _ = watched(monkeypatch, stands_in_the_new_ones)
    assert said is not None
    assert said.startswith("chunk: 15 messages wait in ")
