"""More copies for topics: what is asked of Kafka, and that it is asked only once. The admin client is a fake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.protocol.admin import AlterPartitionReassignmentsRequest

from adapters.kafka import Copying, Repaired, client, prefixed, repair, repair_topics, topics
from adapters.kafka.repair import spread
from pipelines.runtime.errors import Retryable, TopicMismatch
from schemas.topics import CHANGES, all_topics
from wiring.settings import Settings

SETTINGS = Settings(kafka="kafka:9092", replication=3, topic_prefix="t-")
NAME = prefixed(SETTINGS, CHANGES)
UNSAID = dict.fromkeys((1, 2, 3))


class FakeAdmin:
    """Brokers and topics; a partition is copied when it has been looked at twice."""

    def __init__(self, brokers: int, replicas: dict[int, list[int]]) -> None:
        self.brokers = brokers
        self.topics = {prefixed(SETTINGS, topic): {0: [1, 2, 3]} for topic in all_topics()} | {NAME: dict(replicas)}
        self.topics["somebody-elses"] = {0: [1]}
        self.adding: dict[tuple[str, int], list[int]] = {}
        self.removing: dict[tuple[str, int], list[int]] = {}
        self.looks: Counter[tuple[str, int]] = Counter()
        self.asked: list[dict[int, list[int]]] = []
        self.refuse = 0

    async def start(self) -> None:
        """It is there."""

    close = start

    async def describe_cluster(self) -> Any:
        return {"brokers": [{"node_id": n + 1, "rack": None} for n in range(self.brokers)]}

    async def describe_topics(self, _: None) -> Any:
        return [
            {"topic": name, "partitions": [{"partition": p, "replicas": list(b)} for p, b in partitions.items()]}
            for name, partitions in self.topics.items()
        ]

    async def _send_to_controller(self, request: Any) -> Any:
        if isinstance(request, AlterPartitionReassignmentsRequest):
            return self._alter(request)
        listed: dict[str, list[Any]] = {}
        for (name, p), adding in list(self.adding.items()):
            listed.setdefault(name, []).append((p, self.topics[name][p], adding, self.removing.get((name, p), []), {}))
            self.looks[name, p] += 1
            if self.looks[name, p] == 3:  # the first look is before any is asked for
                del self.adding[name, p]
        return SimpleNamespace(error_code=0, error_message=None, topics=[(n, ps, {}) for n, ps in listed.items()])

    def _alter(self, request: Any) -> Any:
        responses: list[Any] = []
        for name, partitions, _ in request._topics:
            self.asked.append({p: brokers for p, brokers, _ in partitions})
            for p, brokers, _ in partitions:
                self.adding[name, p] = [b for b in brokers if b not in self.topics[name][p]]
                self.topics[name][p] = brokers
            responses.append((name, [(p, self.refuse, "no", {}) for p, _, _ in partitions], {}))
        return SimpleNamespace(error_code=0, error_message=None, responses=responses)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Topics whose settings were checked, by the copies that they have now."""
    seen: list[str] = []

    async def ensure(bootstrap: str, _: Any, copied: Mapping[str, int]) -> list[str]:
        assert set(copied.values()) == {SETTINGS.replication}
        seen.extend(copied)
        return []

    monkeypatch.setattr(repair, "ensure_topics", ensure)
    monkeypatch.setattr(repair, "COPY_POLL", 0.0)
    return seen


async def repaired(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Repaired], list[Copying]]:
    said: list[Copying] = []
    monkeypatch.setattr(client, "AIOKafkaAdminClient", lambda **_: admin)
    return await repair_topics("kafka:9092", SETTINGS, said.append), said


async def test_what_is_short_gets_copies_on_other_brokers_and_is_waited_for(
    checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = FakeAdmin(3, {0: [2], 1: [3, 1], 2: [1, 2, 3]})
    done, said = await repaired(admin, monkeypatch)
    assert done == [Repaired(NAME, partitions=2, copies_before=1, copies=3, min_in_sync=2)]
    [asked] = admin.asked
    assert asked == {0: [2, 1, 3], 1: [3, 1, 2]}  # who leads goes on leading
    assert (said[0].done, said[-1].done) == (0, 2)
    assert checked == [NAME]  # min.insync.replicas, by the copies that there are now


async def test_a_second_run_finds_nothing_to_do(checked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin(3, {0: [2]})
    await repaired(admin, monkeypatch)
    assert await repaired(admin, monkeypatch) == ([], [])
    assert len(admin.asked) == len(checked) == 1


async def test_a_run_that_was_stopped_is_seen_through_and_not_begun_again(
    checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = FakeAdmin(3, {0: [2, 1, 3]})
    admin.adding[NAME, 0] = [1, 3]
    done, said = await repaired(admin, monkeypatch)
    assert done == [Repaired(NAME, partitions=1, copies_before=1, copies=3, min_in_sync=2)]
    assert admin.asked == []
    assert said[-1].done == 1


async def test_what_somebody_else_moves_is_left_alone(checked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin(4, {0: [1, 2, 3, 4]})
    admin.adding[NAME, 0], admin.removing[NAME, 0] = [4], [1]
    assert await repaired(admin, monkeypatch) == ([], [])
    assert admin.asked == []


async def test_too_few_brokers_are_said_before_anything_is_moved(
    checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = FakeAdmin(2, {0: [2]})
    with pytest.raises(
        Retryable, match=r"1 topics .* 3 copies that PAGEWIRE_REPLICATION wants, and 2 brokers are there"
    ):
        await repaired(admin, monkeypatch)
    assert admin.asked == []
    assert await repaired(FakeAdmin(2, {0: [1, 2, 3]}), monkeypatch) == ([], [])  # nothing is short of copies


@pytest.mark.parametrize(("code", "error"), [(39, TopicMismatch), (41, Retryable)])
async def test_a_refusal_names_the_partition(
    checked: list[str], monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    admin = FakeAdmin(3, {0: [2]})
    admin.refuse = code
    with pytest.raises(error, match=f"partition 0 of topic {NAME} cannot get more copies"):
        await repaired(admin, monkeypatch)


def test_copies_go_to_those_with_least_to_do_and_into_other_racks_first() -> None:
    load = Counter({1: 5, 2: 9, 3: 2})
    assert spread({0: [1], 1: [1]}, 2, UNSAID, load) == {0: [1, 3], 1: [1, 3]}
    assert load == {1: 5, 2: 9, 3: 4}
    assert spread({0: [1]}, 2, {1: "a", 2: "b", 3: "a"}, Counter({2: 9})) == {0: [1, 2]}
    assert spread({0: [1]}, 3, {1: "a", 2: "a", 3: "a"}, Counter()) == {0: [1, 2, 3]}


async def test_a_broker_that_has_not_heard_of_a_new_topic_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "METADATA_POLL", 0.0)
    answers = [(3, "", 2, NAME, []), (0, None, 2, NAME, [("cleanup.policy", "compact", False, 1)])]

    class Forgetful:
        async def describe_configs(self, _: Any) -> Any:
            return [SimpleNamespace(resources=[answers.pop(0)])]

    [described] = await topics._configs(Forgetful(), [NAME])
    assert described.resources[0][0] == 0
    monkeypatch.setattr(topics, "METADATA_LIMIT", -1.0)
    answers.append((3, "", 2, NAME, []))
    with pytest.raises(Retryable, match=f"settings of topic {NAME} cannot be read: UnknownTopicOrPartitionError"):
        await topics._configs(Forgetful(), [NAME])
