"""What must hold of docker-compose.managed.yml: Kafka and Elasticsearch are somebody else's."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.infra.test_compose import ENV_EXAMPLE, MANAGED_TEXT, OURS, SERVICES, VARIABLE
from wiring.secret_files import SECRETS
from wiring.settings import Settings


class Loader(yaml.SafeLoader):
    """Knows the two tags by which one file takes away what another says."""


def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    return loader.construct_mapping(node, deep=True)


for tag in ("!override", "!reset"):
    Loader.add_constructor(tag, mapping)
MANAGED: dict[str, dict[str, Any]] = yaml.load(MANAGED_TEXT, Loader)["services"]
HERE = {"kafka", "elasticsearch", "elasticsearch-user"}  # what is for servers of our own
STARTED = [name for name in OURS if name not in HERE]


def test_the_servers_of_our_own_are_not_started_and_nobody_waits_for_them() -> None:
    assert {name for name, service in MANAGED.items() if service.get("profiles")} == HERE
    for name in STARTED:
        waits = {} if name == "topics" else {"topics": {"condition": "service_completed_successfully"}}
        assert MANAGED[name]["depends_on"] == waits, name
        assert "outside" in MANAGED[name]["networks"], name


def test_everything_of_ours_and_nothing_else_is_changed() -> None:
    assert set(MANAGED) == {*STARTED, *HERE}


@pytest.mark.parametrize("service", STARTED)
def test_every_setting_of_the_servers_is_handed_on(service: str) -> None:
    given = set(SERVICES[service]["environment"]) | set(MANAGED[service]["environment"])
    for name in Settings.model_fields:
        if name.startswith(("kafka", "elasticsearch")):
            own = f"PAGEWIRE_{name.upper()}"
            # A secret comes in a file. The password of a user of Elasticsearch is .env's in any case.
            wanted = f"{own}_FILE" if name in SECRETS and own not in given else own
            assert wanted in given, wanted
    assert MANAGED[service]["volumes"][0]["target"] == "/run/secrets"


def test_env_example_explains_every_variable() -> None:
    handed_on = {
        name for service in STARTED for name, value in MANAGED[service]["environment"].items() if value is None
    }
    filled_in = {found["name"] for found in VARIABLE.finditer(MANAGED_TEXT)}
    for name in {*handed_on, *filled_in}:
        assert f"#{name}=" in ENV_EXAMPLE, name
