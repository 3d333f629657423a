"""The examples of docs/howto/kubernetes.md, together, as a reader puts them together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from adapters.elastic.settings import ROLE
from adapters.kafka.settings import KafkaSettings
from adapters.kafka.topics import kafka_rights
from tests.helm.chart import ROOT, Manifest, files, of_kind, pods, rendered
from tests.unit.infra.test_compose import SERVICES, interpolated

pytestmark = pytest.mark.helm

PAGE = (ROOT / "docs/howto/kubernetes.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
VALUES = [yaml.safe_load(block) for block in BLOCKS if block.startswith("# values.yaml\n")]
SERVERS = [one for block in BLOCKS if "\nkind: " in block for one in yaml.safe_load_all(block)]


def server(kind: str) -> Manifest:
    (found,) = [one for one in SERVERS if one["kind"] == kind]
    return dict(found)


def together() -> dict[str, Any]:
    """All values of the page; a later one goes before an earlier one."""
    whole: dict[str, Any] = {}
    for values in VALUES:
        _put(whole, values)
    return whole


def _put(whole: dict[str, Any], values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, dict) and isinstance(whole.get(name), dict):
            _put(whole[name], value)
        else:
            whole[name] = value


def test_every_block_is_looked_at() -> None:
    assert len(VALUES) + len([block for block in BLOCKS if "\nkind: " in block]) == len(BLOCKS)
    assert len(VALUES) >= 8


def test_the_examples_render() -> None:
    manifests = rendered(together())
    sites = yaml.safe_load(of_kind(manifests, "ConfigMap")["config"]["data"]["pagewire.yaml"])["sites"]
    assert set(sites) == {"town"}  # none of the chart's own beside it
    assert set(of_kind(manifests, "Ingress")) == {""}
    assert set(of_kind(manifests, "ExternalSecret")) == {"pagewire"}
    assert len(of_kind(manifests, "Job")) == 2


def test_the_values_of_bge_m3_give_each_gpu_worker_its_gpu_and_all_of_them_the_weights() -> None:
    page = (ROOT / "docs/howto/bge-m3.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(# values.yaml\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    values = together()
    _put(values, yaml.safe_load(block))
    containers = {name: template["spec"]["containers"][0] for name, template in pods(rendered(values))}
    with_gpu = {name for name, one in containers.items() if "nvidia.com/gpu" in one["resources"].get("limits", {})}
    assert with_gpu == {"embed", "bulk", "retrieve"}
    for name in (*with_gpu, "rephrase", "answer", "gateway"):
        one = containers[name]
        assert one["resources"]["limits"]["memory"] == "6Gi"
        (folder,) = [each["value"] for each in one["env"] if each["name"] == "PAGEWIRE_BGE_MODEL"]
        assert any(folder.startswith(mount["mountPath"]) for mount in one["volumeMounts"] if mount["name"] == "models")


def test_kafka_gets_the_settings_that_it_has_in_compose() -> None:
    broker = SERVICES["kafka"]["environment"]
    spec = server("Kafka")["spec"]["kafka"]
    assert SERVICES["kafka"]["image"].endswith(f":{spec['version']}")
    for name in (
        "auto.create.topics.enable",
        "message.max.bytes",
        "replica.fetch.max.bytes",
        "offsets.retention.minutes",
        "log.segment.bytes",
    ):
        assert str(spec["config"][name]).lower() == broker["KAFKA_" + name.upper().replace(".", "_")]


def test_the_users_have_the_rights_that_are_needed() -> None:
    prefix = together()["kafka"]["topicPrefix"]
    needed: dict[str, set[str]] = {}
    for right in kafka_rights(KafkaSettings(topic_prefix=prefix)):
        if right.resource != "cluster":  # of `--repair` alone
            assert (right.name, right.pattern) == (prefix, "prefixed")
            needed.setdefault(right.resource, set()).update(right.operations)
    acls = server("KafkaUser")["spec"]["authorization"]["acls"]
    assert {acl["resource"]["type"]: set(acl["operations"]) for acl in acls} == needed
    assert {(acl["resource"]["name"], acl["resource"]["patternType"]) for acl in acls} == {(prefix, "prefix")}

    (roles,) = [one["stringData"]["roles.yml"] for one in SERVERS if "roles.yml" in one.get("stringData", {})]
    assert yaml.safe_load(roles) == {"pagewire": ROLE}


def test_the_values_name_what_the_operators_make() -> None:
    bus, user, index = (server(kind)["metadata"]["name"] for kind in ("Kafka", "KafkaUser", "Elasticsearch"))
    (listener,) = server("Kafka")["spec"]["kafka"]["listeners"]
    values = together()
    assert values["kafka"]["bootstrapServers"] == f"{bus}-kafka-bootstrap:{listener['port']}"
    assert values["kafka"]["user"] == user
    assert values["elasticsearch"]["url"] == f"https://{index}-es-http:9200"
    image = interpolated(SERVICES["elasticsearch"]["image"], {})
    assert image == f"elasticsearch:{server('Elasticsearch')['spec']['version']}"
    (login,) = [one for one in SERVERS if one.get("type") == "kubernetes.io/basic-auth"]
    assert values["elasticsearch"]["user"] == login["stringData"]["username"]
    mounted = files(dict(pods(rendered(values)))["gateway"])
    assert mounted["kafka-ca.pem"] == (f"{bus}-cluster-ca-cert", "ca.crt")
    assert mounted["PAGEWIRE_KAFKA_PASSWORD"] == (user, "password")
    assert mounted["elasticsearch-ca.pem"] == (f"{index}-es-http-certs-public", "ca.crt")
    assert mounted["PAGEWIRE_ELASTICSEARCH_PASSWORD"] == (login["metadata"]["name"], "password")
