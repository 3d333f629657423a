"""docker-compose.managed.yml over docker-compose.yml: how Compose puts them together, and all of it at work."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.stack import ROOT, Stack, documented
from tests.containers.test_stack import assert_answers
from tests.elsewhere import PREFIX, Elsewhere, elsewhere_at
from tests.engine_fixture import Servers
from tests.secure_kafka import PASSWORD, USER
from tests.unit.infra.test_managed_compose import STARTED

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

KAFKA, ELASTICSEARCH = "b1.example.com:9093,b2.example.com:9093", "https://e1.example.com:9200"
THEIRS = {"prometheus", "grafana"}


@pytest.fixture
def managed(tmp_path: Path, override: list[Path]) -> Stack:
    stack = Stack(tmp_path, ROOT / "infra/docker/docker-compose.managed.yml", *override)
    stack.set(PAGEWIRE_SECRETS=str(tmp_path), PAGEWIRE_KAFKA=KAFKA, PAGEWIRE_ELASTICSEARCH=ELASTICSEARCH)
    return stack


def test_ours_are_told_of_servers_elsewhere_and_wait_for_none_here(managed: Stack) -> None:
    services = json.loads(managed.run("docker compose config --format json"))["services"]
    assert set(services) == {*STARTED, *THEIRS}
    for name in STARTED:
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


@pytest.fixture
def elsewhere(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    look = ["docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}"]
    host = subprocess.run(look, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    with elsewhere_at(host, engine, tmp_path_factory.mktemp("elsewhere")) as servers:
        yield servers


def test_all_of_it_works_over_servers_elsewhere(
    elsewhere: Elsewhere, built: Stack, managed: Stack, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "ca.pem").write_bytes(elsewhere.kafka.certificates.ca.read_bytes())
    (secrets / "kafka_password").write_text("mistyped", encoding="utf-8")
    (secrets / "elastic_key").write_text(elsewhere.elastic.key, encoding="utf-8")
    managed.set(
        PAGEWIRE_VERSION=built.settings["PAGEWIRE_VERSION"],
        PAGEWIRE_TOPIC_PREFIX=PREFIX,
        PAGEWIRE_SECRETS=str(secrets),
        ELASTIC_PASSWORD="none",
        PAGEWIRE_KAFKA=f"127.0.0.1:9,{elsewhere.kafka.login}",
        PAGEWIRE_KAFKA_SECURITY_PROTOCOL="SASL_SSL",
        PAGEWIRE_KAFKA_SASL_MECHANISM="SCRAM-SHA-512",
        PAGEWIRE_KAFKA_USER=USER,
        PAGEWIRE_KAFKA_PASSWORD_FILE="/run/secrets/kafka_password",
        PAGEWIRE_KAFKA_CA="/run/secrets/ca.pem",
        PAGEWIRE_ELASTICSEARCH=elsewhere.elastic.url,
        PAGEWIRE_ELASTICSEARCH_CA="/run/secrets/ca.pem",
        PAGEWIRE_ELASTICSEARCH_API_KEY_FILE="/run/secrets/elastic_key",
    )
    try:
        with pytest.raises(AssertionError, match="topics"):
            managed.run("docker compose up --detach --wait")
        assert "PAGEWIRE_KAFKA_PASSWORD" in managed.run("docker compose logs topics 2>&1")
        (secrets / "kafka_password").write_text(PASSWORD, encoding="utf-8")
        managed.up()
        assert set(managed.containers()) == {*STARTED, *THEIRS}
        managed.run(documented("deploy.md", "To fill it:"))
        assert_answers(managed)
        assert elsewhere.elastic.refused == []
    finally:
        managed.run("docker compose down --volumes --remove-orphans --timeout 20")
