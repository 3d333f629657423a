"""`pagewire topics --repair` and `--partitions` as people and scripts see it; Kafka is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from adapters.kafka import Copying, Growth, PartitionCounts, Repaired
from cli import topics
from cli.main import app
from pipelines.runtime.errors import Retryable

RAISED = Repaired("cms.changes", partitions=4, copies_before=1, copies=3, min_in_sync=2)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Repaired]:
    """What the repair will have done."""
    done: list[Repaired] = []

    async def ensure(bootstrap: str, settings: Any) -> list[str]:
        return []

    async def repair(bootstrap: str, settings: Any, said: Callable[[Copying], None]) -> list[Repaired]:
        for one in done:
            said(Copying(one.topic, one.partitions, one.partitions))
        return done

    monkeypatch.setenv("PAGEWIRE_KAFKA", "kafka:9092")
    monkeypatch.setenv("PAGEWIRE_ELASTICSEARCH", "http://elastic:9200")
    monkeypatch.setenv("PAGEWIRE_REPLICATION", "3")
    monkeypatch.setattr(topics, "ensure_topics", ensure)
    monkeypatch.setattr(topics, "repair_topics", repair)
    return done


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["topics", "--repair", *arguments], catch_exceptions=False)


def test_it_says_what_it_did(found: list[Repaired]) -> None:
    found.append(RAISED)
    said = run()
    assert said.exit_code == 0
    assert said.stdout.split()[-5:] == ["cms.changes", "4", "1", "3", "2"]
    assert json.loads(run("--json").stdout) == {
        "wanted": 3,
        "repaired": [{"topic": "cms.changes", "partitions": 4, "copies_before": 1, "copies": 3, "min_in_sync": 2}],
    }


def test_it_says_when_there_was_nothing_to_do(found: list[Repaired]) -> None:
    assert "every topic has 3 copies or more" in run().stdout
    assert json.loads(run("--json").stdout) == {"wanted": 3, "repaired": []}


def test_too_few_brokers_are_a_service_that_is_missing(found: list[Repaired], monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> list[Repaired]:
        raise Retryable("2 brokers are there: start more")

    monkeypatch.setattr(topics, "repair_topics", refuse)
    said = run()
    assert said.exit_code == 3
    assert "2 brokers are there" in said.stderr


FEW = Growth("cms.changes", partitions=4, wanted=12)


@pytest.fixture
def added(found: list[Repaired], monkeypatch: pytest.MonkeyPatch) -> list[Growth]:
    """What was asked of Kafka."""
    asked: list[Growth] = []

    async def plan(bootstrap: str, settings: Any, wanted: PartitionCounts) -> list[Growth]:
        return [FEW] if wanted.every == FEW.wanted else []

    async def add(bootstrap: str, settings: Any, growths: list[Growth]) -> None:
        asked.extend(growths)

    monkeypatch.setattr(topics, "plan_partitions", plan)
    monkeypatch.setattr(topics, "add_partitions", add)
    return asked


def grow(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["topics", "--partitions", *arguments], input=answer, catch_exceptions=False)


def test_it_tells_what_it_will_do_and_asks_first(added: list[Growth]) -> None:
    said = grow("12", answer="n\n")
    assert (said.exit_code, added) == (1, [])
    assert ["cms.changes", "4", "12"] in [line.split() for line in said.stdout.splitlines()]
    assert "cannot take them away again" in said.stderr
    assert (grow("12", answer="y\n").exit_code, added) == (0, [FEW])


def test_with_yes_it_asks_nobody(added: list[Growth]) -> None:
    said = grow("12", "--yes", "--json")
    assert json.loads(said.stdout) == {"grown": [{"topic": "cms.changes", "partitions": 4, "wanted": 12}]}
    assert added == [FEW]
    assert "Set PAGEWIRE_PARTITIONS=12, too (now 4)" in said.stderr


def test_enough_partitions_are_left_alone(added: list[Growth]) -> None:
    assert "nothing to add" in grow("4").stdout
    assert json.loads(grow("4", "--json").stdout) == {"grown": []}
    assert added == []


def test_what_is_no_number_is_wrong_use(added: list[Growth]) -> None:
    said = grow("cms.pages=4")
    assert said.exit_code == 2
    assert "no such topic" in said.stderr


def test_topics_with_too_few_are_told(found: list[Repaired], monkeypatch: pytest.MonkeyPatch) -> None:
    async def counted(settings: Any) -> dict[str, int]:
        return {"cms.changes": 4}

    monkeypatch.setenv("PAGEWIRE_PARTITIONS", "12")
    monkeypatch.setattr(topics, "_partitions", counted)
    said = CliRunner().invoke(app, ["topics"], catch_exceptions=False)
    assert "`pagewire topics --partitions 12` adds them" in said.stderr
    lines = json.loads(CliRunner().invoke(app, ["topics", "--json"], catch_exceptions=False).stdout)
    assert [line["partitions"] for line in lines if line["topic"] == "cms.changes"] == [4]
