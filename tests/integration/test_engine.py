"""The local engine for real: starts, crashes, restarts, busy ports, orphans.

One engine, started as a user would by the command with `--detach`, serves all tests but those that need
one that never comes up or whose starter dies.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from uuid import uuid4

import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from elasticsearch import AsyncElasticsearch

from infra.engine import EngineProgress, LocalEngineSettings, start, status, stop
from infra.engine.engine import reset
from infra.engine.errors import EngineRunning, ServerDied
from infra.engine.state import any_free, living
from infra.running import discover, read_state
from schemas.topics import MAX_MESSAGE_BYTES

pytestmark = pytest.mark.engine


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cli.main", "engine", *arguments]


def of(home: Path, kafka_port: int = 19092, es_port: int = 19200) -> dict[str, str]:
    """The environment of commands for this home."""
    own = {"HOME": home, "ENGINE_KAFKA_PORT": kafka_port, "ENGINE_ES_PORT": es_port}
    others = {name: value for name, value in os.environ.items() if not name.startswith("PAGEWIRE_")}
    return others | {f"PAGEWIRE_{name}": str(value) for name, value in own.items()}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("für alle")  # Java reads paths in its own ways: see that they arrive


@pytest.fixture(scope="module")
def wanted() -> Iterator[tuple[int, int]]:
    """Two ports that are busy all the while: the engine is told to take them."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        yield one.getsockname()[1], other.getsockname()[1]


@pytest.fixture(scope="module")
def started(home: Path, wanted: tuple[int, int]) -> Iterator[subprocess.CompletedProcess[str]]:
    """`start --detach`, finished; the engine runs until the module's end."""
    yield subprocess.run(
        command("start", "--detach"), env=of(home, *wanted), capture_output=True, text=True, check=False
    )
    subprocess.run(command("stop"), env=of(home), check=False)
    assert living(LocalEngineSettings(home).root) == {}


@pytest.fixture
def settings(home: Path, wanted: tuple[int, int], started: object) -> LocalEngineSettings:
    return LocalEngineSettings(home, kafka_port=wanted[0], es_port=wanted[1])


async def gone(processes: list[psutil.Process]) -> bool:
    """Whether they all end, without us, in reasonable time."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, 60)
    return not alive


@asynccontextmanager
async def clients(home: Path) -> AsyncIterator[tuple[str, AsyncElasticsearch]]:
    addresses = discover(home)
    assert addresses is not None
    async with AsyncElasticsearch(addresses[1]) as elasticsearch:
        yield addresses[0], elasticsearch


def test_a_detached_start_returns_and_prints_where(started: subprocess.CompletedProcess[str]) -> None:
    assert started.returncode == 0, started.stderr
    assert re.fullmatch(r"kafka +127\.0\.0\.1:\d+\nelasticsearch +http://127\.0\.0\.1:\d+\n", started.stdout)


def test_busy_ports_are_passed_over_and_said(
    started: subprocess.CompletedProcess[str], settings: LocalEngineSettings, wanted: tuple[int, int]
) -> None:
    taken = {record.port for record in living(settings.root).values()}
    assert len(taken) == 2
    assert not taken & set(wanted)
    for port in wanted:
        assert f"port {port} is busy" in started.stderr


async def test_a_second_start_changes_nothing_and_its_handle_stops_nothing(settings: LocalEngineSettings) -> None:
    before = read_state(settings.root)
    again = await start(settings, detach=False, progress=EngineProgress())
    await again.stop()
    assert discover(settings.home) == (again.kafka, again.elasticsearch)
    assert read_state(settings.root) == before == living(settings.root)


def test_status_names_what_runs(settings: LocalEngineSettings) -> None:
    shown = subprocess.run(
        command("status", "--json"), env=of(settings.home), capture_output=True, text=True, check=True
    )
    seen = json.loads(shown.stdout)
    assert seen["running"]
    for key, version in (("kafka", "4.1.0"), ("elasticsearch", "9.2.0")):
        server = seen[key]
        assert server["version"] == version
        assert server["healthy"]
        assert server["pid"] == read_state(settings.root)[key].pid
        assert server["url"].endswith(f"127.0.0.1:{server['port']}")
        assert server["rss_bytes"] > 50 * 2**20
        assert any(Path(server["data_dir"]).iterdir())  # it is there that the server writes
        assert Path(server["log_file"]).is_file()


def test_a_running_engine_is_not_reset(settings: LocalEngineSettings) -> None:
    with pytest.raises(EngineRunning, match="stop it first"):
        reset(settings)
    assert discover(settings.home) is not None


async def test_data_written_before_a_sigkill_of_both_is_there_after_a_restart(settings: LocalEngineSettings) -> None:
    name, payload = f"kept-{uuid4()}", b"x" * MAX_MESSAGE_BYTES
    async with clients(settings.home) as (kafka, elasticsearch):
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
        await admin.start()
        await admin.create_topics([NewTopic(name, 1, 1)])
        await admin.close()
        async with AIOKafkaProducer(bootstrap_servers=kafka, max_request_size=len(payload) + 4096) as producer:
            await producer.send_and_wait(name, payload)
        await elasticsearch.index(index=name, id="1", document={"kept": True})

    engine = await start(settings, detach=True, progress=EngineProgress())
    servers = [psutil.Process(record.pid) for record in engine.records.values()]
    for server in servers:
        server.kill()
    assert isinstance(await engine.wait_crashed(), ServerDied)
    assert await gone(servers)
    assert discover(settings.home) is None
    assert not (await status(settings)).running

    restarted = await start(settings, detach=True, progress=EngineProgress())
    assert restarted.owned == {"kafka", "elasticsearch"}
    async with clients(settings.home) as (kafka, elasticsearch):
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka, max_partition_fetch_bytes=2 * len(payload))
        async with consumer:
            partition = TopicPartition(name, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            record = await consumer.getone()
        assert record.value == payload
        # Answered at once: ready means that the index's primary shard is allocated.
        document = await elasticsearch.get(index=name, id="1")
        assert document["_source"] == {"kept": True}


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A `start` in the foreground, which serves."""
    port = any_free(set())
    environment = of(tmp_path, port, any_free({port}))
    with subprocess.Popen(command("start"), env=environment, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[0] == "kafka"
        assert process.stdout.readline().split()[0] == "elasticsearch"
        yield process
        process.kill()
    for record in living(LocalEngineSettings(tmp_path).root).values():  # a failed test's
        psutil.Process(record.pid).kill()


async def test_servers_die_with_a_starter_that_is_killed(starter: subprocess.Popen[str], tmp_path: Path) -> None:
    root = LocalEngineSettings(tmp_path).root
    servers = [psutil.Process(record.pid) for record in living(root).values()]
    assert len(servers) == 2
    starter.kill()
    assert await gone(servers)
    # Not merely gone: they had the time for a clean stop.
    assert "closed" in (root / "logs" / "elasticsearch.log").read_text()


async def test_a_server_that_dies_at_its_start_shows_its_log_and_takes_the_other_with_it(
    tmp_path: Path,
) -> None:
    port = any_free(set())
    settings = LocalEngineSettings(tmp_path, kafka_port=port, es_port=any_free({port}), kafka_heap="1m")
    with pytest.raises(ServerDied, match="Too small maximum heap"):
        await start(settings, detach=True, progress=EngineProgress())
    assert living(settings.root) == {}
    assert not await stop(settings)
    reset(settings)
    assert not (settings.root / "logs").exists()
