"""docker-compose.managed.yml as Compose itself puts it over docker-compose.yml; nothing is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.containers.stack import ROOT, Stack
from tests.unit.infra.test_compose import OURS

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

KAFKA, ELASTICSEARCH = "b1.example.com:9093,b2.example.com:9093", "https://e1.example.com:9200"


@pytest.fixture
def managed(tmp_path: Path) -> Stack:
    stack = Stack(tmp_path, ROOT / "docker-compose.managed.yml")
    stack.set(PAGEWIRE_SECRETS=str(tmp_path), PAGEWIRE_KAFKA=KAFKA, PAGEWIRE_ELASTICSEARCH=ELASTICSEARCH)
    return stack


def test_ours_are_told_of_servers_elsewhere_and_wait_for_none_here(managed: Stack) -> None:
    services = json.loads(managed.run("docker compose config --format json"))["services"]
    assert set(services) == {*OURS, "prometheus", "grafana"}
    for name in OURS:
        service = services[name]
        assert set(service.get("depends_on") or {}) == ({"topics"} - {name}), name
        assert set(service["networks"]) == {"inside", "outside"}, name
        given = service["environment"]
        assert (given["PAGEWIRE_KAFKA"], given["PAGEWIRE_ELASTICSEARCH"]) == (KAFKA, ELASTICSEARCH), name
        # What docker-compose.yml mounts is still there.
        assert {"/etc/pagewire/pagewire.yaml", "/run/secrets"} <= {one["target"] for one in service["volumes"]}, name


def test_nothing_is_made_of_an_env_file_that_names_no_kafka(managed: Stack) -> None:
    managed.set(PAGEWIRE_KAFKA="")
    with pytest.raises(AssertionError, match="PAGEWIRE_KAFKA is missing a value"):
        managed.run("docker compose config --quiet")
