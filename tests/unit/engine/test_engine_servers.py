"""What the servers are told: the settings others rely on, and files that say them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.engine import LocalEngineSettings
from infra.engine.servers import (
    Server,
    elasticsearch_server,
    elasticsearch_settings,
    kafka_properties,
    kafka_server,
    prepare_elasticsearch,
    prepare_kafka,
)
from schemas.topics import MAX_MESSAGE_BYTES, TOPICS


@pytest.fixture
def settings(tmp_path: Path) -> LocalEngineSettings:
    return LocalEngineSettings(home=tmp_path, cache=tmp_path / "cache", kafka_heap="111m", es_heap="222m")


def run_of(server: Server) -> dict[str, object]:
    run: dict[str, object] = json.loads(server.run_file.read_text())
    return run


def test_kafka_listens_on_loopback_only() -> None:
    properties = kafka_properties(Path("/data"), 19092, 40000)
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:40000"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19092"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:40000"


def test_kafka_takes_what_every_topic_allows() -> None:
    properties = kafka_properties(Path("/data"), 19092, 40000)
    largest = max(int(topic.config["max.message.bytes"]) for topic in TOPICS)
    assert int(properties["message.max.bytes"]) >= largest > MAX_MESSAGE_BYTES
    assert properties["replica.fetch.max.bytes"] == properties["message.max.bytes"]


def test_kafka_is_whole_with_one_broker() -> None:
    properties = kafka_properties(Path("/data"), 19092, 40000)
    replicated = [name for name in properties if name.endswith(("replication.factor", "min.isr"))]
    assert len(replicated) == 5
    assert {properties[name] for name in replicated} == {"1"}
    assert properties["auto.create.topics.enable"] == "false"
    assert properties["group.initial.rebalance.delay.ms"] == "0"


def test_a_broker_on_a_busy_machine_keeps_its_session() -> None:
    properties = kafka_properties(Path("/data"), 19092, 40000)
    session = int(properties.get("broker.session.timeout.ms", 9000))
    assert session >= 9000
    assert 4 * int(properties["broker.heartbeat.interval.ms"]) <= session


def test_kafka_is_given_its_files_heap_and_jars(settings: LocalEngineSettings) -> None:
    server = kafka_server(settings.root)
    prepare_kafka(server, settings, 20001, 20002)
    run = run_of(server)
    properties = (server.folder / "server.properties").read_text()
    assert f"log.dirs={server.data}\n" in properties
    assert "advertised.listeners=PLAINTEXT://127.0.0.1:20001\n" in properties
    assert run["server"] == "kafka"
    assert isinstance(run["jvm"], list)
    assert "-Xmx111m" in run["jvm"]
    (classpath,) = (option for option in run["jvm"] if option.startswith("-Djava.class.path="))
    assert f"{settings.cache}/kafka-4.1.0/kafka_2.13-4.1.0.jar" in classpath.partition("=")[2].split(":")


def test_kafka_finds_a_home_that_is_not_ascii(tmp_path: Path) -> None:
    settings = LocalEngineSettings(home=tmp_path / "für alle", cache=tmp_path)
    server = kafka_server(settings.root)
    prepare_kafka(server, settings, 20001, 20002)
    assert "/f\\u00fcr alle/engine/kafka/data\n" in (server.folder / "server.properties").read_text("ascii")


def test_elasticsearch_is_a_single_node_on_loopback_with_its_data_at_home(settings: LocalEngineSettings) -> None:
    server = elasticsearch_server(settings.root)
    told = elasticsearch_settings(server, settings.cache, 20003)
    assert (told["http.host"], told["transport.host"]) == ("127.0.0.1", "127.0.0.1")
    assert told["http.port"] == "20003"
    assert told["discovery.type"] == "single-node"
    assert told["path.data"] == str(settings.root / "elasticsearch" / "data")
    assert told["cluster.routing.allocation.disk.threshold_enabled"] == "false"
    assert told["action.destructive_requires_name"] == "true"


def test_elasticsearch_is_given_its_module_heap_and_logging(settings: LocalEngineSettings) -> None:
    server = elasticsearch_server(settings.root)
    module = settings.cache / "elasticsearch-9.2.0" / "modules" / "transport-netty4"
    module.mkdir(parents=True)
    prepare_elasticsearch(server, settings, 20003)
    run = run_of(server)
    assert isinstance(run["jvm"], list)
    assert "-Xmx222m" in run["jvm"]
    descriptor = (module / "plugin-descriptor.properties").read_text()
    assert "elasticsearch.version=9.2.0\n" in descriptor
    assert (server.folder / "config" / "log4j2.properties").exists()


def test_everything_a_server_writes_is_below_the_engine(settings: LocalEngineSettings) -> None:
    for server in (kafka_server(settings.root), elasticsearch_server(settings.root)):
        for path in (server.data, server.log, server.run_file):
            assert settings.root in path.parents
    prepare_kafka(kafka_server(settings.root), settings, 20001, 20002)
    jvm = run_of(kafka_server(settings.root))["jvm"]
    assert isinstance(jvm, list)
    assert f"-Djava.io.tmpdir={settings.root}/kafka/tmp" in jvm


def test_addresses_are_in_the_clients_form(settings: LocalEngineSettings) -> None:
    assert kafka_server(settings.root).url(19092) == "127.0.0.1:19092"
    assert elasticsearch_server(settings.root).url(19200) == "http://127.0.0.1:19200"
