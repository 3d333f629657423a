"""Which topics get partitions; Kafka is not there."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import InvalidPartitionsError, PolicyViolationError, TopicAuthorizationFailedError

from adapters.kafka import KafkaDenied, PartitionCounts
from adapters.kafka.topics import Growth, _grow, plan
from pipelines.runtime.errors import TopicMismatch, WrongUse
from schemas.topics import ANSWERS, CHANGES, REQUESTS, Topic, dead_letter_topic
from wiring.settings import Settings

SETTINGS = Settings(topic_prefix="town-")
DEAD_REQUESTS = dead_letter_topic(REQUESTS)


def planned(*given: str, there: Mapping[Topic, int]) -> list[tuple[str, int, int]]:
    found = plan(PartitionCounts.parse(given, SETTINGS.topic_prefix), there, SETTINGS)
    return [(growth.topic, growth.partitions, growth.wanted) for growth in found]


def test_one_number_raises_all_that_have_fewer_and_leaves_those_with_more() -> None:
    there = {CHANGES: 4, ANSWERS: 24, REQUESTS: 12}
    assert planned("12", there=there) == [("town-cms.changes", 4, 12)]
    assert planned("12", there={CHANGES: 12}) == []


@pytest.mark.parametrize("name", ["query.requests", "town-query.requests"])
def test_a_topics_dead_letters_go_along_and_first(name: str) -> None:
    """What is parked stands in the partition of its own number."""
    there = {CHANGES: 4, REQUESTS: 4, DEAD_REQUESTS: 4}
    dead, own = ("town-query.requests.dlq", 4, 8), ("town-query.requests", 4, 8)
    assert planned(f"{name}=8", there=there) == [dead, own]
    assert planned("6", f"{name}=8", there=there) == [dead, ("town-cms.changes", 4, 6), own]


@pytest.mark.parametrize("given", [("2",), ("query.requests=2",), ("8", "query.requests=2")])
def test_fewer_are_refused_and_it_says_why(given: tuple[str, ...]) -> None:
    with pytest.raises(WrongUse, match=r"4 partitions, 2 are fewer: Kafka cannot take partitions away"):
        planned(*given, there={CHANGES: 4, REQUESTS: 4})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("x",), "a number from 1 to 1000"),
        (("0",), "a number from 1"),
        (("1001",), "to 1000"),
        (("٣",), "a number from 1"),
        (("query.requests=",), "a number from 1"),
        (("pages=8",), "no such topic; there are answer.events, "),
        (("4", "8"), "one number for all"),
    ],
)
def test_what_is_no_wish_is_refused(given: tuple[str, ...], why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        PartitionCounts.parse(given)


class Admin:
    """Answers as a broker does."""

    def __init__(self, code: int = 0, leaders: tuple[tuple[int, ...], ...] = ((1, 1),)) -> None:
        self.code = code
        self.leaders = list(leaders)

    async def create_partitions(self, wanted: Mapping[str, Any]) -> Any:
        return SimpleNamespace(topic_errors=[(name, self.code, "the broker's words") for name in wanted])

    async def describe_topics(self, names: None) -> list[dict[str, Any]]:
        now = self.leaders.pop(0) if len(self.leaders) > 1 else self.leaders[0]
        return [{"topic": "t", "partitions": [{"leader": leader} for leader in now]}]


GROWTH = Growth("t", 1, 2)


async def test_it_waits_until_every_partition_is_led() -> None:
    admin = Admin(leaders=((1,), (1, -1), (1, 2)))
    await _grow(admin, GROWTH)
    assert admin.leaders == [(1, 2)]


async def test_what_somebody_else_has_added_meanwhile_is_fine() -> None:
    await _grow(Admin(InvalidPartitionsError.errno), GROWTH)


@pytest.mark.parametrize(
    ("admin", "error"),
    [
        (Admin(InvalidPartitionsError.errno, leaders=((1,),)), TopicMismatch),
        (Admin(PolicyViolationError.errno), TopicMismatch),
        (Admin(TopicAuthorizationFailedError.errno), KafkaDenied),
    ],
)
async def test_a_refusal_names_the_topic(admin: Admin, error: type[Exception]) -> None:
    with pytest.raises(error, match="topic t cannot get partitions"):
        await _grow(admin, GROWTH)
