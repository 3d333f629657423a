"""What wins when something that is to be put back is there already, and how it is written, without Elasticsearch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from adapters.elastic.client import DocumentRefused, ElasticsearchDown
from adapters.elastic.kept import KeptIndex, kept_indexes, newer_conversation, newer_example, whole_question
from pipelines.operate.backup.manifest import BackupDocument, PutBack

MONDAY, TUESDAY = "2026-05-04T12:00:00+00:00", "2026-05-05T12:00:00+00:00"
ASKED = {"site": "town", "request_id": "r1", "asked_at": MONDAY, "question": "When?", "rephrased": "When open?"}
LOGGED = ASKED | {"outcome": {"became": "answered", "answer": "At 9.", "vector": [1]}}


def test_the_newer_conversation_and_the_newer_example_win() -> None:
    for rule, time in ((newer_conversation, "updated"), (newer_example, "added_at")):
        old, new = {time: MONDAY}, {time: "2026-05-05T01:00:00+13:00"}  # the same moment
        assert rule(old, {time: TUESDAY}) == {time: TUESDAY}
        assert rule({time: TUESDAY}, old) is None
        assert rule(old, new) is None


def test_a_question_gets_what_it_lacks_and_keeps_its_newest_rating() -> None:
    rated = {"rating": "down", "comment": "Wrong.", "rated_at": TUESDAY}
    liked = {"rating": "up", "comment": None, "rated_at": MONDAY}
    stub = {"site": "town", "request_id": "r1", "noted_at": TUESDAY}
    assert whole_question(stub | rated, LOGGED | liked) == LOGGED | stub | rated
    assert whole_question(LOGGED | liked, LOGGED | rated) == LOGGED | rated
    assert whole_question(LOGGED, LOGGED | rated) == LOGGED | rated
    assert whole_question(LOGGED | rated, LOGGED | liked) is None
    assert whole_question(LOGGED, LOGGED) is None


@pytest.mark.parametrize("erased_in", ["there", "kept"])
def test_words_of_a_question_that_was_erased_do_not_come_back(erased_in: str) -> None:
    erased = {
        "site": "town", "request_id": "r1", "forgotten": True, "question": None, "rephrased": None, "comment": None,
        "labelled_by": None,
        "outcome": {
            "vector": None, "asker": "", "answer": None, "calls": [], "doubted": [], "tool_runs": [], "labels": None
        },
    }  # fmt: skip
    said = LOGGED | {"comment": "I am Ada.", "rating": "up", "rated_at": MONDAY, "labelled_by": ["bo"]}
    said = said | {"outcome": said["outcome"] | {"labels": {"given": [{"rater": "bo"}]}, "calls": [{"step": "answer"}]}}
    said["outcome"]["tool_runs"] = [{"call": "fee({})"}]
    found = whole_question(erased, said) if erased_in == "there" else whole_question(said, erased)
    assert found == said | erased | {"outcome": {"became": "answered"} | erased["outcome"]}
    assert whole_question(found, said) is None


@dataclass
class Elastic:
    """Takes what it is told to take; remembers who else writes."""

    there: dict[str, dict[str, Any]] = field(default_factory=dict)
    interrupted: int = 0  # bulks in which somebody else was quicker
    refused: Mapping[str, Any] | None = None
    bulks: list[Sequence[Mapping[str, Any]]] = field(default_factory=list)

    def options(self, **_: Any) -> Self:
        return self

    async def mget(self, *, index: str, ids: Sequence[str], **_: Any) -> dict[str, Any]:
        return {
            "docs": [
                {"_id": id, "found": True, "_source": self.there[id], "_seq_no": 7, "_primary_term": 2}
                if id in self.there
                else {"_id": id, "found": False}
                for id in ids
            ]
        }

    async def bulk(self, *, index: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self.bulks.append(operations)
        items = []
        for action, source in zip(operations[::2], operations[1::2], strict=True):
            [(op, place)] = action.items()
            if self.interrupted:
                items.append({op: {"status": 409}})
            elif self.refused:
                items.append({op: dict(self.refused)})
            else:
                self.there[place["_id"]] = dict(source)
                items.append({op: {"status": 201}})
        self.interrupted = max(0, self.interrupted - 1)
        return {"items": items}


class Indexes:
    """They are all there."""

    async def ensure_system(self, name: str) -> None: ...


def index_of(elastic: Elastic) -> KeptIndex:
    return KeptIndex(elastic, Indexes(), "pagewire.examples", newer_example)  # type: ignore[arg-type]


def example(id: str, added_at: str) -> BackupDocument:
    return BackupDocument(id, {"site": "town", "added_at": added_at})


async def test_what_is_not_there_is_created_and_what_is_older_replaced_in_the_version_that_was_read() -> None:
    elastic = Elastic({"old": {"added_at": MONDAY}, "new": {"added_at": TUESDAY}})
    documents = [example("old", TUESDAY), example("new", MONDAY), example("none", MONDAY)]
    assert await index_of(elastic).put_back(documents) == PutBack(restored=2, there=1)
    assert list(elastic.bulks[0][::2]) == [
        {"index": {"_id": "old", "if_seq_no": 7, "if_primary_term": 2}},
        {"create": {"_id": "none"}},
    ]
    assert await index_of(elastic).put_back(documents) == PutBack(restored=0, there=3)


async def test_what_somebody_else_writes_meanwhile_is_looked_at_again() -> None:
    elastic = Elastic(interrupted=2)
    assert await index_of(elastic).put_back([example("a", MONDAY)]) == PutBack(restored=1)
    with pytest.raises(ElasticsearchDown, match="written by others all the time"):
        await index_of(Elastic(interrupted=100)).put_back([example("a", MONDAY)])


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        ({"status": 400, "error": {"type": "strict_dynamic_mapping_exception", "reason": "new"}}, DocumentRefused),
        ({"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}, ElasticsearchDown),
    ],
)
async def test_what_is_not_taken_is_named(refused: Mapping[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"document a of pagewire\.examples"):
        await index_of(Elastic(refused=refused)).put_back([example("a", MONDAY)])


async def test_a_conversation_that_its_visitor_has_deleted_since_does_not_come_back() -> None:
    elastic = Elastic({"town:r2": {"forgotten": True}, "town:r3": {"question": "When?"}})
    kept = kept_indexes(elastic, Indexes())["conversations"]  # type: ignore[arg-type]
    conversations = [
        BackupDocument(id, {"site": "town", "updated": MONDAY, "requests": requests})
        for id, requests in (("deleted", ["r1", "r2"]), ("there", ["r3", "r4"]))
    ]
    assert await kept.put_back(conversations) == PutBack(restored=1, forgotten=1)
    assert "there" in elastic.there
    assert "deleted" not in elastic.there
