"""Rights follow from the maps of topics and stages; nothing is asked for that nobody needs."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from adapters.elastic.settings import ROLE
from adapters.kafka.topics import KafkaRight, kafka_rights
from cli.main import app
from pipelines.runtime.stage import all_groups
from schemas.topics import all_topics
from wiring.settings import Settings


def test_every_topic_and_every_group_is_there() -> None:
    rights = list(kafka_rights(Settings()))
    run = {(right.resource, right.name): right.operations for right in rights if right.use == "run"}
    assert {name for kind, name in run if kind == "topic"} == {topic.name for topic in all_topics()}
    groups = {group.name("") for group, _ in all_groups()} | {"pagewire-gateways"}
    assert {name for kind, name in run if kind == "group"} == groups
    assert {right.pattern for right in rights} == {"literal"}
    assert all({"Read", "Write"} <= set(given) for (kind, _), given in run.items() if kind == "topic")
    # Who runs changes no topic, and nobody deletes one.
    assert not {"Create", "Alter", "AlterConfigs", "Delete", "All"} & {one for given in run.values() for one in given}
    assert not {"Delete", "All"} & {one for right in rights for one in right.operations}


def test_a_prefix_covers_all_of_them() -> None:
    rights = list(kafka_rights(Settings(topic_prefix="town-")))
    assert [(right.use, right.resource, right.name, right.pattern) for right in rights] == [
        ("run", "topic", "town-", "prefixed"),
        ("run", "group", "town-", "prefixed"),
        ("create", "topic", "town-", "prefixed"),
        ("repair", "cluster", "kafka-cluster", "literal"),
        ("partitions", "topic", "town-", "prefixed"),
    ]


def test_the_command_asks_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEWIRE_TOPIC_PREFIX", "town-")
    said = CliRunner().invoke(app, ["topics", "--acls"], catch_exceptions=False)
    assert said.exit_code == 0
    assert "Describe, DescribeConfigs, Read, Write" in said.stdout
    assert json.loads(said.stdout[said.stdout.index("{") :]) == ROLE
    found = json.loads(CliRunner().invoke(app, ["topics", "--acls", "--json"], catch_exceptions=False).stdout)
    assert found["elasticsearch"] == ROLE
    assert [KafkaRight(**right | {"operations": tuple(right["operations"])}) for right in found["kafka"]] == list(
        kafka_rights(Settings(topic_prefix="town-"))
    )
