"""The chart starts what docker-compose.yml starts, and Kubernetes takes what it renders."""

from __future__ import annotations

import re
import tarfile
import tomllib
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from prometheus_client import Counter, Gauge, Histogram

from gateway.edge import gauges
from gateway.edge import metrics as gateway_metrics
from pipelines.runtime import metrics as worker_metrics
from pipelines.runtime.record import Lane
from pipelines.runtime.stage import StageGroup, all_groups
from tests.helm.chart import (
    ALL,
    CHART,
    LEAST,
    NAMESPACE,
    ROOT,
    SECRETS,
    Manifest,
    container,
    environment,
    files,
    helm,
    of_kind,
    pods,
    rendered,
)
from tests.unit.infra.test_compose import OURS as OURS_IN_COMPOSE
from tests.unit.infra.test_compose import SERVICES, WORKERS, interpolated, seconds
from wiring.secret_files import SECRETS as SECRET_SETTINGS
from wiring.settings import Settings
from wiring.settings_file import load
from wiring.stages import stage_names

pytestmark = pytest.mark.helm

# Kinds that are not Kubernetes' own: the operators know what is in them.
OPERATORS = {
    "ExternalSecret": "external-secrets.io/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
    "ScaledObject": "keda.sh/v1alpha1",
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "TriggerAuthentication": "keda.sh/v1alpha1",
}
NOT_IN_COMPOSE = {"rebuild", "backup", "restore"}
# A cluster's Elasticsearch is somebody else's, and so are its users.
OURS = [name for name in OURS_IN_COMPOSE if name != "elasticsearch-user"]
# Which the Prometheus Operator puts on everything that a ServiceMonitor finds.
OPERATORS_LABELS = {"namespace", "service", "pod", "container", "endpoint", "job", "instance", "node"}


@pytest.fixture(scope="module")
def least() -> list[Manifest]:
    return rendered(LEAST)


@pytest.fixture(scope="module")
def everything() -> list[Manifest]:
    return rendered(ALL)


def running(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Templates of the processes that docker-compose.yml has, too."""
    return {name: template for name, template in pods(manifests) if name not in NOT_IN_COMPOSE}


@pytest.mark.parametrize("values", [LEAST, ALL], ids=["least", "all"])
def test_helm_finds_nothing_to_complain_of(values: Mapping[str, Any]) -> None:
    done = helm("lint", "--strict", str(CHART), values=values)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize(
    ("values", "version"), [(LEAST, "1.27"), (ALL, "1.27"), (ALL, "1.37")], ids=["least", "all", "newest"]
)
def test_kubernetes_knows_every_field(values: Mapping[str, Any], version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import kubernetes_validate

    # Else it reads the definitions of all kinds again for each manifest.
    monkeypatch.setattr("kubernetes_validate.utils.schema_contents", cache(kubernetes_validate.utils.schema_contents))
    manifests = rendered(values, "--kube-version", version)
    assert len(manifests) > 20
    names = [(one["kind"], one["metadata"]["name"]) for one in manifests]
    assert len(names) == len(set(names))
    for one in manifests:
        if one["kind"] in OPERATORS:
            assert one["apiVersion"] == OPERATORS[one["kind"]]
        else:
            kubernetes_validate.validate(one, version, strict=True)


def test_the_schemas_of_kubernetes_do_say_no(least: list[Manifest]) -> None:
    import kubernetes_validate

    wrong = of_kind(least, "Deployment")["gateway"]
    wrong = wrong | {"spec": wrong["spec"] | {"replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, "1.37", strict=True)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"kafka": {"bootstrapServers": ""}}, "kafka.bootstrapServers"),
        ({"kafka": {"bootstrapServers": "kafka"}}, "kafka.bootstrapServers"),  # every port would be open
        ({"elasticsearch": {"url": "elasticsearch:9200"}}, "elasticsearch.url"),
        ({"kafka": LEAST["kafka"] | {"securityProtocol": "SASL_SSL"}}, "kafka.saslMechanism"),
        ({"settings": {"PAGEWIRE_PARTITIONS": 12}}, "settings.PAGEWIRE_PARTITIONS"),
        ({"settings": {"partitions": "12"}}, "partitions"),
        ({"settings": {"PAGEWIRE_OPENAI_API_KEY": "k"}}, "PAGEWIRE_OPENAI_API_KEY"),
        ({"secrets": {"PAGEWIRE_PARTITIONS": {"secret": "a", "key": "b"}}}, "PAGEWIRE_PARTITIONS"),
        ({"secrets": {"PAGEWIRE_ADMIN_KEY": None}}, "PAGEWIRE_ADMIN_KEY"),
        ({"config": {"partitions": 4}}, "config"),
        ({"config": {}}, "config.sites"),
        ({"workers": {"log": {"lane": "bulk"}}}, "workers.log"),
        ({"workers": {"chunk": {"lane": None}}}, "workers.chunk"),
        ({"workers": {"chunk": {"stages": ["cut"]}}}, "workers.chunk.stages"),
        ({"workers": {"chunk": {"scale": {"min": 0}}}}, "workers.chunk.scale.min"),
        ({"ingress": {"enabled": True}}, "ingress.host"),
        ({"siteSecrets": {"names": ["BLOG"]}}, "siteSecrets.secret"),
        ({"externalSecret": {"enabled": True}}, "externalSecret.store.name"),
        ({"replicas": 3}, "replicas"),
    ],
    ids=str,
)
def test_a_wrong_value_is_named(wrong: dict[str, Any], named: str) -> None:
    done = helm("template", str(CHART), values={**LEAST, **wrong})
    assert done.returncode != 0
    assert named in done.stderr


def test_every_process_of_compose_has_its_workload(least: list[Manifest]) -> None:
    assert set(of_kind(least, "Deployment")) == {*WORKERS, "gateway"}
    assert set(of_kind(least, "Job")) == {"topics"}
    for name, template in running(least).items():
        ours, theirs = container(template)["args"], SERVICES[name]["command"]
        assert container(template)["name"] == name
        assert ours[0] == theirs[0]
        assert parsed(ours) == parsed(theirs)


def parsed(command: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """Stages and options."""
    stages = [word for word in command[1:] if not word.startswith("--") and word not in ("save", "bulk")]
    return stage_names(stages), command[len(stages) + 1 :]


def test_every_group_of_a_stage_has_its_worker(least: list[Manifest]) -> None:
    found = []
    for template in running(least).values():
        command = container(template)["args"]
        if command[0] == "worker":
            lane: Lane | None = command[-1] if "--lane" in command else None
            found += [StageGroup(stage, lane) for stage in parsed(command)[0]]
    assert sorted(found, key=str) == sorted((group for group, _ in all_groups()), key=str)


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    """Of the files that are no plain secrets."""
    authority = trustme.CA()
    ours = authority.issue_cert("pagewire")
    return {
        "kafka-ca.pem": authority.cert_pem.bytes(),
        "elasticsearch-ca.pem": authority.cert_pem.bytes(),
        "kafka-certificate.pem": ours.cert_chain_pems[0].bytes(),
        "kafka-certificate.key": ours.private_key_pem.bytes(),
        "BLOG_SECRET": b"whsec_" + b64encode(b"s" * 24) + b"\n",
    }


def settings_of(template: Manifest, folder: Path, contents: Mapping[str, bytes]) -> Settings:
    """What a process reads at its start, from what is mounted."""
    given = environment(template)
    for path in files(template):
        (folder / path).write_bytes(contents.get(path, b"a-secret-of-the-test-" + path.encode() + b"\n"))
    given = {name: value.replace(SECRETS, f"{folder}/") for name, value in given.items()}
    if "PAGEWIRE_CONFIG" in given:
        (folder / "pagewire.yaml").write_text(yaml.safe_dump(ALL["config"]), encoding="utf-8")
        given["PAGEWIRE_CONFIG"] = str(folder / "pagewire.yaml")
    return load(given)


@pytest.mark.parametrize("name", OURS)
def test_our_settings_are_accepted(
    name: str, everything: list[Manifest], contents: dict[str, bytes], tmp_path: Path
) -> None:
    settings = settings_of(running(everything)[name], tmp_path, contents)
    assert settings.kafka == ALL["kafka"]["bootstrapServers"]
    assert settings.elasticsearch == ALL["elasticsearch"]["url"]
    assert settings.topic_prefix == "town."
    assert (settings.partitions, settings.replication, settings.replicas) == (12, 3, 1)
    assert settings.kafka_password is not None
    assert settings.elasticsearch_api_key is not None
    assert settings.log_json
    assert settings.metrics_port == (None if name == "topics" else 9100)
    if name != "topics":
        assert settings.sites["town"].connectors["blog"].kind == "push"


@pytest.mark.parametrize("name", OURS)
def test_no_setting_of_compose_is_missing(name: str, everything: list[Manifest]) -> None:
    theirs = {re.sub(r"^OPENAI", "PAGEWIRE_OPENAI", one) for one in SERVICES[name]["environment"]}
    ours = {one.removesuffix("_FILE") for one in environment(running(everything)[name])}
    assert theirs - ours == ({"PAGEWIRE_CONFIG"} if name == "topics" else set())


def test_secrets_reach_only_those_who_need_them(everything: list[Manifest]) -> None:
    holders: dict[str, set[str]] = {}
    for name, template in running(everything).items():
        for path in files(template):
            holders.setdefault(path, set()).add(name)
        plain = {one for one in environment(template) if one.removeprefix("PAGEWIRE_").lower() in SECRET_SETTINGS}
        assert not plain
    assert holders["PAGEWIRE_ADMIN_KEY"] == holders["PAGEWIRE_TOKEN_SECRET"] == {"gateway"}
    asking_models = {name for name in OURS if "OPENAI_API_KEY" in SERVICES[name]["environment"]}
    assert holders["PAGEWIRE_OPENAI_API_KEY"] == asking_models
    assert holders["BLOG_SECRET"] == set(OURS) - {"topics"}
    assert holders["kafka-ca.pem"] == holders["elasticsearch-ca.pem"] == set(OURS)


def test_the_schema_knows_every_secret() -> None:
    schema = yaml.safe_load((CHART / "values.schema.json").read_text(encoding="utf-8"))
    secrets = {f"PAGEWIRE_{name.upper()}" for name in SECRET_SETTINGS}
    assert set(schema["properties"]["secrets"]["properties"]) == secrets
    assert set(schema["definitions"]["settings"]["propertyNames"]["not"]["enum"]) == secrets


def test_probes_look_where_compose_looks(least: list[Manifest]) -> None:
    for name in (*WORKERS, "gateway"):
        own = container(running(least)[name])
        ports = {port["name"]: port["containerPort"] for port in own["ports"]}
        theirs = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\w+)", SERVICES[name]["healthcheck"]["test"][-1])
        assert theirs
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert ports[own[probe]["httpGet"]["port"]] == int(theirs[1])
        # An outage of a server restarts nobody.
        assert own["startupProbe"]["httpGet"]["path"] == own["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert own["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert theirs[2] == ("/readyz" if name == "gateway" else "/metrics")
        start = own["startupProbe"]
        assert start["periodSeconds"] * start["failureThreshold"] >= seconds(
            SERVICES[name]["healthcheck"]["start_period"]
        )


def test_nobody_is_killed_while_stopping_in_order(least: list[Manifest]) -> None:
    for name in (*WORKERS, "gateway"):
        template = running(least)[name]
        before = container(template).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["", "0"])
        wanted = seconds(SERVICES[name]["stop_grace_period"]) + int(before[1])
        assert template["spec"]["terminationGracePeriodSeconds"] == wanted


def test_memory_is_that_of_compose(least: list[Manifest]) -> None:
    for name, template in running(least).items():
        own = container(template)["resources"]
        compose = interpolated(SERVICES[name]["mem_limit"], {})
        assert own["limits"]["memory"] == {"512m": "512Mi", "1g": "1Gi"}[compose]
        assert "cpu" not in own["limits"]  # a throttled worker misses its heartbeats
        assert own["requests"]["cpu"]
        (temporary,) = [one["emptyDir"] for one in template["spec"]["volumes"] if one["name"] == "tmp"]
        assert temporary == {"medium": "Memory", "sizeLimit": "128Mi"}
        assert SERVICES[name]["tmpfs"] == ["/tmp:size=128m"]


@pytest.mark.parametrize("values", [LEAST, ALL], ids=["least", "all"])
def test_pods_have_no_more_rights_than_they_need(values: Mapping[str, Any]) -> None:
    for _, template in pods(rendered(values)):
        spec, own = template["spec"], container(template)
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["fsGroup"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert own["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert spec["automountServiceAccountToken"] is False
        # PAGEWIRE_PORT=tcp://... of a Service called pagewire would be taken for our setting.
        assert spec["enableServiceLinks"] is False
        mounted = {one["mountPath"] for one in own["volumeMounts"] if not one.get("readOnly")}
        kept = {"/backups"} if own["name"] in ("backup", "restore") else set()
        assert mounted == {"/tmp", "/var/lib/pagewire"} | kept


def test_the_networks_of_compose_are_policies(everything: list[Manifest]) -> None:
    outside = {name for name, template in pods(everything) if "pagewire-outside" in template["metadata"]["labels"]}
    compose = {name for name in OURS if "outside" in SERVICES[name]["networks"]}
    assert outside == compose | {"rebuild"}
    policies = of_kind(everything, "NetworkPolicy")
    assert set(policies) == {"", "gateway", "outside", "topics"}
    everybody = policies[""]["spec"]
    assert everybody["policyTypes"] == ["Ingress", "Egress"]
    for _, template in pods(everything):
        labels = template["metadata"]["labels"]
        assert everybody["podSelector"]["matchLabels"].items() <= labels.items()
    allowed = [{port["port"] for port in rule["ports"]} for rule in everybody["egress"]]
    assert allowed == [{53}, {9093, 9094}, {9200, 9243}]
    assert policies["outside"]["spec"]["podSelector"]["matchLabels"]["pagewire-outside"] == "true"
    (way_out,) = policies["outside"]["spec"]["egress"]
    assert "10.0.0.0/8" in way_out["to"][0]["ipBlock"]["except"]


def test_every_workload_may_be_drained(least: list[Manifest]) -> None:
    budgets = of_kind(least, "PodDisruptionBudget")
    assert set(budgets) == {*WORKERS, "gateway"}
    for name, budget in budgets.items():
        assert budget["spec"]["maxUnavailable"] == 1
        labels = running(least)[name]["metadata"]["labels"]
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert budget["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] == name


def test_the_public_service_shows_no_metrics(everything: list[Manifest]) -> None:
    (port,) = of_kind(everything, "Service")["gateway"]["spec"]["ports"]
    assert port["targetPort"] == "http"
    (rule,) = of_kind(everything, "Ingress")[""]["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "town-pagewire-gateway", "port": {"name": "http"}}


def test_the_gateway_knows_the_names_by_which_it_is_called(least: list[Manifest], everything: list[Manifest]) -> None:
    also = ALL["gateway"] | {"settings": {"PAGEWIRE_HOSTS": "chat.town.example,www.city.example"}}
    more = rendered({**ALL, "gateway": also})
    wanted = (None, "www.town.example", "www.town.example,chat.town.example,www.city.example")
    for manifests, names in zip((least, everything, more), wanted, strict=True):
        assert environment(running(manifests)["gateway"]).get("PAGEWIRE_HOSTS") == names


def test_replicas_are_said_once(least: list[Manifest], everything: list[Manifest]) -> None:
    for deployment in of_kind(least, "Deployment").values():
        assert deployment["spec"]["replicas"] >= 1
    for deployment in of_kind(everything, "Deployment").values():  # else each upgrade would set them back
        assert "replicas" not in deployment["spec"]
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in of_kind(everything, "ScaledObject").values()}
    scaled |= {one["spec"]["scaleTargetRef"]["name"] for one in of_kind(everything, "HorizontalPodAutoscaler").values()}
    assert scaled == {one["metadata"]["name"] for one in of_kind(everything, "Deployment").values()}


def test_keda_looks_at_the_lag_of_every_group(everything: list[Manifest]) -> None:
    asked = [
        (trigger["metadata"]["consumerGroup"], trigger["metadata"]["topic"])
        for one in of_kind(everything, "ScaledObject").values()
        for trigger in one["spec"]["triggers"]
    ]
    groups = [(group.name("town."), f"town.{topic.name}") for group, entry in all_groups() for topic in entry.reads]
    assert sorted(asked) == sorted(groups)


def test_keda_counts_neither_what_is_retried_nor_workers_without_a_partition(everything: list[Manifest]) -> None:
    for one in of_kind(everything, "ScaledObject").values():
        assert one["spec"]["minReplicaCount"] >= 1
        for trigger in one["spec"]["triggers"]:
            assert trigger["metadata"]["excludePersistentLag"] == "true"
            assert trigger["useCachedMetrics"] is True
            assert trigger["metadata"]["allowIdleConsumers"] == "false"
            assert all(isinstance(value, str) for value in trigger["metadata"].values())


def test_keda_logs_in_as_the_workers_do(everything: list[Manifest], least: list[Manifest]) -> None:
    login = of_kind(everything, "TriggerAuthentication")["kafka"]["spec"]
    worker = running(everything)["chunk"]
    for one in login["env"]:
        assert one["name"] in environment(worker)
    secrets = {one["parameter"]: (one["name"], one["key"]) for one in login["secretTargetRef"]}
    mounted = files(worker)
    assert secrets == {
        "password": mounted["PAGEWIRE_KAFKA_PASSWORD"],
        "ca": mounted["kafka-ca.pem"],
        "cert": mounted["kafka-certificate.pem"],
        "key": mounted["kafka-certificate.key"],
        "keyPassword": mounted["PAGEWIRE_KAFKA_CERTIFICATE_PASSWORD"],
    }
    for one in of_kind(everything, "ScaledObject").values():
        for trigger in one["spec"]["triggers"]:
            assert trigger["authenticationRef"] == {"name": "town-pagewire-kafka"}
            assert (trigger["metadata"]["tls"], trigger["metadata"]["sasl"]) == ("enable", "scram_sha512")
    plain = rendered({**LEAST, "keda": {"enabled": True}})
    assert of_kind(plain, "TriggerAuthentication") == {}
    assert "authenticationRef" not in of_kind(plain, "ScaledObject")["chunk"]["spec"]["triggers"][0]


def test_the_alerts_are_those_of_infra(everything: list[Manifest]) -> None:
    source = ROOT / "infra/prometheus/alerts.yml"
    assert (CHART / "files/alerts.yml").is_symlink()
    assert (CHART / "files/alerts.yml").resolve() == source
    rules = yaml.safe_load(source.read_text(encoding="utf-8"))
    (scraped,) = [rule for rule in rules["groups"][0]["rules"] if "job=~" in rule["expr"]]
    scraped["expr"] = scraped["expr"].replace("}", f',namespace="{NAMESPACE}"}}')
    assert of_kind(everything, "PrometheusRule")[""]["spec"] == rules
    assert scraped["expr"] == f'up{{job=~"worker|gateway",namespace="{NAMESPACE}"}} == 0'


def test_prometheus_looks_at_every_process(everything: list[Manifest]) -> None:
    monitor = of_kind(everything, "ServiceMonitor")[""]["spec"]
    services = [
        one
        for one in of_kind(everything, "Service").values()
        if monitor["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
        and monitor["selector"]["matchExpressions"][0]["key"] in one["metadata"]["labels"]
    ]
    assert {one["metadata"]["labels"][monitor["jobLabel"]] for one in services} == {"worker", "gateway"}
    found = []
    for service in services:
        assert service["spec"]["publishNotReadyAddresses"] is True  # a stage that waits says so in its metrics
        assert [port["name"] for port in service["spec"]["ports"]] == [monitor["endpoints"][0]["port"]]
        for name, template in pods(everything):
            if service["spec"]["selector"].items() <= template["metadata"]["labels"].items():
                found.append(name)
    assert sorted(found) == sorted((*WORKERS, "gateway"))


def test_no_label_of_the_scrape_hides_one_of_a_metric(everything: list[Manifest]) -> None:
    own = {
        label
        for module in (gauges, gateway_metrics, worker_metrics)
        for metric in vars(module).values()
        if isinstance(metric, Counter | Gauge | Histogram)
        for label in metric._labelnames
    }
    (endpoint,) = of_kind(everything, "ServiceMonitor")[""]["spec"]["endpoints"]
    dropped = {rule["regex"] for rule in endpoint["relabelings"] if rule["action"] == "labeldrop"}
    assert own & OPERATORS_LABELS == dropped


def test_topics_come_before_everything_and_need_nothing_of_the_chart(least: list[Manifest]) -> None:
    job = of_kind(least, "Job")["topics"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert "PAGEWIRE_CONFIG" not in environment(job["spec"]["template"])
    assert job["spec"]["template"]["spec"]["serviceAccountName"] not in of_kind(least, "ServiceAccount")
    assert {one["name"] for one in job["spec"]["template"]["spec"]["volumes"]} == {"tmp", "home"}


def test_topics_get_at_a_new_kafka_before_the_policies_are_changed(everything: list[Manifest]) -> None:
    job, policy = of_kind(everything, "Job")["topics"], of_kind(everything, "NetworkPolicy")["topics"]
    hook, before = job["metadata"]["annotations"], policy["metadata"]["annotations"]
    assert before["helm.sh/hook"] == hook["helm.sh/hook"]
    assert int(before["helm.sh/hook-weight"]) < int(hook.get("helm.sh/hook-weight", 0))
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["spec"]["egress"] == of_kind(everything, "NetworkPolicy")[""]["spec"]["egress"]
    assert "topics" not in of_kind(rendered({**LEAST, "topics": {"enabled": False}}), "NetworkPolicy")


def test_topics_wait_for_an_external_secret(everything: list[Manifest]) -> None:
    job = of_kind(everything, "Job")["topics"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-install,pre-upgrade"
    assert of_kind(everything, "ExternalSecret")["pagewire"]["spec"]["target"] == {"name": "pagewire"}


@pytest.mark.parametrize(
    ("url", "port"),
    [("https://login.example/token", 443), ("http://login:8080/token", 8080), ("http://login/token", 80)],
)
def test_everybody_gets_at_the_tokens_of_kafka_and_keda_does(url: str, port: int) -> None:
    kafka = LEAST["kafka"] | {"securityProtocol": "SASL_SSL", "saslMechanism": "OAUTHBEARER", "user": "town"}
    oauth = {"url": url}
    secrets = {"PAGEWIRE_KAFKA_PASSWORD": {"secret": "kafka", "key": "oauth"}}
    values = {**LEAST, "kafka": kafka | {"oauth": oauth}, "secrets": secrets, "keda": {"enabled": True}}
    made = rendered(values)
    allowed = [[one["port"] for one in rule["ports"]] for rule in of_kind(made, "NetworkPolicy")[""]["spec"]["egress"]]
    assert allowed[-1] == [port]
    login = of_kind(made, "TriggerAuthentication")["kafka"]["spec"]
    assert {one["parameter"]: one["name"] for one in login["env"]} == {
        "username": "PAGEWIRE_KAFKA_USER",
        "oauthTokenEndpointUri": "PAGEWIRE_KAFKA_OAUTH_URL",
    }
    assert login["secretTargetRef"] == [{"parameter": "password", "name": "kafka", "key": "oauth"}]
    scoped = rendered(values | {"kafka": kafka | {"oauth": oauth | {"scope": "kafka"}}})
    names = [one["name"] for one in of_kind(scoped, "TriggerAuthentication")["kafka"]["spec"]["env"]]
    assert names[-1] == "PAGEWIRE_KAFKA_OAUTH_SCOPE"
    for _, template in pods(scoped):
        assert environment(template)["PAGEWIRE_KAFKA_OAUTH_URL"] == url


def rebuild_jobs(**values: Any) -> dict[str, list[str]]:
    jobs = of_kind(rendered({**LEAST, **values}), "Job")
    return {name: container(job["spec"]["template"])["args"] for name, job in jobs.items() if name != "topics"}


def test_a_rebuild_runs_once_for_each_version_site_and_source() -> None:
    first = rebuild_jobs(rebuild={"sites": ["town", "county"]})
    assert sorted(first.values()) == [
        ["rebuild", "county", "--from", "chunks", "--promote"],
        ["rebuild", "town", "--from", "chunks", "--promote"],
    ]
    assert rebuild_jobs(rebuild={"sites": ["town", "county"]}, settings={"PAGEWIRE_LOG_LEVEL": "debug"}) == first
    other_source = rebuild_jobs(rebuild={"sites": ["town", "county"], "from": "changes"})
    other_version = rebuild_jobs(rebuild={"sites": ["town", "county"]}, image={"tag": "9.9.9"})
    assert len(first.keys() | other_source.keys() | other_version.keys()) == 6
    assert rebuild_jobs() == {}


def test_a_rebuild_by_workers_is_of_changes() -> None:
    by_workers = rebuild_jobs(rebuild={"sites": ["town"], "from": "changes", "by": "workers"})
    # A Job cannot be changed: by whom it is made makes it another one.
    assert not by_workers.keys() & rebuild_jobs(rebuild={"sites": ["town"], "from": "changes"}).keys()
    (args,) = by_workers.values()
    assert args == ["rebuild", "town", "--from", "changes", "--promote", "--by", "workers"]
    done = helm("template", str(CHART), values={**LEAST, "rebuild": {"sites": ["town"], "by": "workers"}})
    assert done.returncode != 0
    assert "rebuild.by" in done.stderr


def test_backups_are_written_into_a_volume_that_stays_and_put_back_from_it(everything: list[Manifest]) -> None:
    claim = of_kind(everything, "PersistentVolumeClaim")["backups"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert claim["spec"]["storageClassName"] == "fast"
    cron = of_kind(everything, "CronJob")["backup"]["spec"]
    assert (cron["schedule"], cron["concurrencyPolicy"]) == ("17 2 * * *", "Forbid")
    templates = dict(pods(everything))
    assert container(templates["backup"])["args"] == ["backup", "/backups/$(POD)", "--keep", "14"]
    assert {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} in container(templates["backup"])[
        "env"
    ]
    assert container(templates["restore"])["args"] == ["restore", "/backups/pagewire-backup-29000000-x7k2p"]
    for name in ("backup", "restore"):
        volumes = {one["name"]: one for one in templates[name]["spec"]["volumes"]}
        assert volumes["backups"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    own = rendered({**LEAST, "backup": {"enabled": True, "claim": "nightly"}})
    assert of_kind(own, "PersistentVolumeClaim") == {}
    assert of_kind(rendered(LEAST), "CronJob") == {}


def test_a_changed_configuration_is_taken_up(least: list[Manifest]) -> None:
    changed = rendered({**LEAST, "config": {"sites": {"town": {"languages": ["en"]}}}})
    for name in (*WORKERS, "gateway"):
        before, after = (running(one)[name]["metadata"]["annotations"]["checksum/config"] for one in (least, changed))
        assert before != after
    file = yaml.safe_load(of_kind(changed, "ConfigMap")["config"]["data"]["pagewire.yaml"])
    assert file == {"sites": {"town": {"languages": ["en"]}}}


def test_a_configuration_may_be_somebody_elses() -> None:
    manifests = rendered({**LEAST, "config": {}, "existingConfigMap": "ours"})
    assert of_kind(manifests, "ConfigMap") == {}
    for name in (*WORKERS, "gateway"):
        (volume,) = [one for one in running(manifests)[name]["spec"]["volumes"] if one["name"] == "config"]
        assert volume["configMap"] == {"name": "ours"}


def test_where_a_pod_runs_may_be_said_for_all_and_for_one(everything: list[Manifest]) -> None:
    for name, template in pods(everything):
        assert template["spec"]["nodeSelector"] == {"pool": "gpu" if name == "embed" else "web"}
        assert template["spec"]["tolerations"] == ALL["tolerations"]
        assert ("affinity" in template["spec"]) == (name == "embed")


def test_the_chart_has_the_version_of_its_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_a_packed_chart_has_the_alerts_with_it(tmp_path: Path) -> None:
    done = helm("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (packed,) = tmp_path.glob("pagewire-*.tgz")
    with tarfile.open(packed) as archive:
        alerts = archive.extractfile("pagewire/files/alerts.yml")
        assert alerts
        assert alerts.read() == (ROOT / "infra/prometheus/alerts.yml").read_bytes()
        assert "pagewire/values.schema.json" in archive.getnames()
