"""Stops reach the worker that writes the answer, whenever they were said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from pipelines.query.answer import stops as module
from pipelines.query.answer.stops import Stops
from pipelines.query.publish import earliest
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from schemas.query import Question, Stop
from tests.asking import question


class FakeTopic:
    """The topic `answer.stops`: a tail and a reader of it."""

    def __init__(self) -> None:
        self.said: list[Record] = []
        self.read = 0  # for one question
        self.away = False
        self._deliver: Callable[[Record], None] | None = None
        self._started = False

    def tail(self, deliver: Callable[[Record], None]) -> FakeTopic:
        self._deliver = deliver
        return self

    async def start(self) -> None:
        self._started = True

    async def aclose(self) -> None:
        self._started = False

    def stop(self, request: Question, site: str | None = "town", value: bytes = b"", seconds_ago: float = 0.0) -> None:
        value = value or Stop(request_id=request.request_id, site=site).encode()
        now = round((datetime.now(UTC).timestamp() - seconds_ago) * 1000)
        record = Record("answer.stops", 0, len(self.said), request.request_id.encode(), value, timestamp_ms=now)
        self.said.append(record)
        if self._started and self._deliver:
            self._deliver(record)

    async def since(self, since_ms: int) -> list[Record]:
        if self.away:
            raise Retryable("no broker")
        return [r for r in reversed(self.said) if r.timestamp_ms >= since_ms]

    async def of_key(self, key: str, since_ms: int) -> list[Record]:
        self.read += 1
        return [r for r in self.said if r.key == key.encode() and r.timestamp_ms >= since_ms]


def asked(n: int, seconds_ago: float = 0.0) -> Question:
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return question().model_copy(update={"request_id": f"request-{n:04}", "asked_at": at})


def later(n: int) -> Question:
    """Asked when the tail had been there for long."""
    return asked(n, seconds_ago=-120)


async def started(topic: FakeTopic) -> Stops:
    stops = Stops(topic, topic.tail)
    await stops.start()
    return stops


async def test_a_stop_reaches_the_answer_it_is_for_and_no_other() -> None:
    topic = FakeTopic()
    stops = await started(topic)
    async with stops.watch(later(1)) as one, stops.watch(later(2)) as two, stops.watch(later(1)) as again:
        topic.stop(later(1))
        assert (one.is_set(), two.is_set(), again.is_set()) == (True, False, True)
    assert topic.read == 0
    await stops.aclose()


async def test_a_stop_from_another_site_stops_nothing() -> None:
    topic = FakeTopic()
    early = asked(1, seconds_ago=30)
    topic.stop(early, "other")
    stops = await started(topic)
    async with stops.watch(early) as read_back, stops.watch(later(2)) as watched:
        topic.stop(later(2), "other")
        topic.stop(later(3), "other")
        async with stops.watch(later(3)) as remembered:
            assert [read_back.is_set(), watched.is_set(), remembered.is_set()] == [False] * 3
        topic.stop(later(2))
        assert watched.is_set()
    # Nor does it make the right one forgotten.
    topic.stop(later(2), "other")
    async with stops.watch(later(2)) as stopped:
        assert stopped.is_set()


async def test_a_stop_that_does_not_say_where_it_was_said_counts() -> None:
    topic = FakeTopic()
    early = asked(1, seconds_ago=30)
    topic.stop(early, None)
    stops = await started(topic)
    async with stops.watch(early) as read_back, stops.watch(later(2)) as watched:
        topic.stop(later(2), None)
        topic.stop(later(3), None)
        async with stops.watch(later(3)) as remembered:
            assert [read_back.is_set(), watched.is_set(), remembered.is_set()] == [True] * 3


async def test_what_is_no_stop_stops_nothing_and_nobody_else() -> None:
    topic = FakeTopic()
    early = asked(1, seconds_ago=30)
    topic.stop(early, value=b"{}")
    stops = await started(topic)
    async with stops.watch(early) as stopped:
        topic.stop(early, value=b"{}")
        assert not stopped.is_set()
        topic.stop(early)
        assert stopped.is_set()


async def test_a_stop_that_came_while_the_question_was_on_its_way_counts() -> None:
    topic = FakeTopic()
    stops = await started(topic)
    topic.stop(later(1))
    async with stops.watch(later(1)) as stopped:
        assert stopped.is_set()
    assert topic.read == 0


async def test_what_was_said_before_the_start_is_read_back_once_and_costs_no_question_a_look() -> None:
    topic = FakeTopic()
    request = asked(1, seconds_ago=30)
    topic.stop(request)
    stops = await started(topic)
    async with stops.watch(request) as stopped, stops.watch(asked(2)) as other, stops.watch(asked(3, 89)) as late:
        assert (stopped.is_set(), other.is_set(), late.is_set()) == (True, False, False)
    assert topic.read == 0


async def test_a_question_from_long_before_the_start_costs_a_look() -> None:
    topic = FakeTopic()
    request = asked(1, seconds_ago=3_600)
    topic.stop(request, seconds_ago=3_600)
    stops = await started(topic)
    async with stops.watch(request) as stopped:
        assert stopped.is_set()
    assert topic.read == 1


async def test_a_start_without_a_broker_leaves_nothing_behind_and_may_be_tried_again() -> None:
    topic = FakeTopic()
    topic.away = True
    stops = Stops(topic, topic.tail)
    with pytest.raises(Retryable):
        await stops.start()
    assert not topic._started
    topic.away = False
    await stops.start()
    assert topic._started


async def test_old_stops_are_forgotten_and_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    topic = FakeTopic()
    stops = await started(topic)
    for n in range(5):
        topic.stop(later(n))
    assert len(stops._recent) == 3
    forgotten = later(0).model_copy(update={"asked_at": datetime.now(UTC)})
    assert earliest(forgotten) <= topic.said[0].timestamp_ms
    async with stops.watch(forgotten) as stopped:
        assert stopped.is_set()
    assert topic.read == 1


async def test_nobody_is_remembered_who_has_left() -> None:
    topic = FakeTopic()
    stops = await started(topic)
    async with stops.watch(later(1)):
        assert stops._watched
    assert not stops._watched
