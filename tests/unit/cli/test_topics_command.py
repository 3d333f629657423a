"""`pagewire topics --repair` as people and scripts see it; Kafka is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from adapters.kafka import Copying, Repaired
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
