"""What benchmarks run on, in a folder of its own; nothing is left of it.

system   the whole of Pagewire, with a client that may do everything
servers  Kafka and Elasticsearch without workers, for a benchmark that puts its own pages there
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
import psutil
import yaml
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from elasticsearch import AsyncElasticsearch

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import CONVERSATIONS, REBUILDS, RECEIPTS
from adapters.kafka import bootstrap_servers, broker, connection, ensure_topics, prefixed
from bench.report import report
from cli.engine import engine_settings
from cli.up import System, running
from gateway.edge.auth import admin_key
from infra import engine
from infra.engine import open_progress
from pipelines.query.answer.clock import CLOCK
from pipelines.runtime.stage import INGEST
from wiring.settings import Settings
from wiring.settings_file import load


@contextmanager
def home(
    sites: Sequence[str], languages: Sequence[str] = ("en",), more: Mapping[str, Any] | None = None
) -> Iterator[Settings]:
    """Settings of a fresh instance with these sites; an engine that is configured in the environment is used.

    Args:
        more: settings of each site.
    """
    with tempfile.TemporaryDirectory(prefix="pagewire-bench-") as folder:
        config = Path(folder) / "pagewire.yaml"
        site = {"languages": list(languages)} | dict(more or {})
        config.write_text(yaml.safe_dump({"sites": dict.fromkeys(sites, site)}))
        (Path(folder) / CLOCK).touch()  # a file with the time that answers take for now; empty: the machine's
        os.environ |= {
            "PAGEWIRE_HOME": folder,
            "PAGEWIRE_CONFIG": str(config),
            "PAGEWIRE_PORT": "0",
            "PAGEWIRE_LOG_LEVEL": "error",
            "PAGEWIRE_TOPIC_PREFIX": f"bench{os.getpid()}-",
            "PAGEWIRE_VISITOR_RATE": "100000/minute",
        }
        yield load()


@asynccontextmanager
async def system(
    sites: Sequence[str], languages: Sequence[str] = ("en",), more: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[System, httpx.AsyncClient]]:
    """A running system and a client that may do everything."""
    with home(sites, languages, more) as settings:
        async with running(settings) as started, client_of(started) as client:
            yield started, client


def client_of(started: System) -> httpx.AsyncClient:
    """A client that may do everything."""
    key, _ = admin_key(started.settings)
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"}
    return httpx.AsyncClient(base_url=f"{started.url}/v1", headers=headers, timeout=120)


def resident(pid: int) -> int:
    """Bytes of memory of a process and its children, shared pages counted once."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(process.memory_full_info().pss for process in processes)


SAMPLE_EVERY = 0.1  # seconds between two looks at a child's memory
CLEAR_AT_ONCE = 1_000  # documents
TOLD = 2_000  # characters of what a child that failed wrote
READY_TIMEOUT = 240.0  # seconds


@asynccontextmanager
async def servers(settings: Settings) -> AsyncIterator[Settings]:
    """The configured servers, or a local engine, with topics; the children of this process find them, too.

    Afterwards the topics of this prefix and the indexes of these sites are deleted.
    """
    async with AsyncExitStack() as stack:
        if not (settings.kafka and settings.elasticsearch):
            with open_progress() as progress:
                local = await engine.start(engine_settings(settings), detach=False, progress=progress)
            stack.push_async_callback(local.stop)
            os.environ |= {"PAGEWIRE_KAFKA": local.kafka, "PAGEWIRE_ELASTICSEARCH": local.elasticsearch}
            settings = load()
        await ensure_topics(bootstrap_servers(settings), settings)
        stack.push_async_callback(_clear, settings)
        yield settings


async def _clear(settings: Settings) -> None:
    assert settings.topic_prefix, "without a prefix these would be everybody's topics"
    async with Elastic(str(settings.elasticsearch), settings) as elastic:
        for site in settings.sites:
            for info in await elastic.indexes.generations(site):
                await elastic.es.indices.delete(index=info.name)
            # Of a site that has receipts and no index Pagewire says that its index is gone.
            for index in (RECEIPTS, REBUILDS, CONVERSATIONS):
                await _clear_site(elastic.es, index, site)
    admin = AIOKafkaAdminClient(**connection(settings))
    await admin.start()
    try:
        ours = [name for name in await admin.list_topics() if name.startswith(settings.topic_prefix)]
        await admin.delete_topics(ours)
    finally:
        await admin.close()


async def _clear_site(es: AsyncElasticsearch, index: str, site: str) -> None:
    """Not every server has `delete_by_query`."""
    if not await es.indices.exists(index=index):
        return
    while True:
        await es.indices.refresh(index=index)
        found = await es.search(index=index, query={"term": {"site": site}}, size=CLEAR_AT_ONCE, source=False)
        if not found["hits"]["hits"]:
            return
        await es.bulk(index=index, operations=[{"delete": {"_id": hit["_id"]}} for hit in found["hits"]["hits"]])


async def pass_over(settings: Settings) -> None:
    """Let the ingest stages begin behind what is in their topics, as if they had done it."""
    async with broker(settings) as client:
        topics = await client.topics()
        for stage in INGEST:
            name = prefixed(settings, stage.reads[0])
            ends = await client.ends([TopicPartition(name, number) for number in topics[name]])
            for group in stage.groups:
                consumer = AIOKafkaConsumer(**connection(settings), group_id=group.name(settings.topic_prefix))
                await consumer.start()
                try:
                    consumer.assign(list(ends))
                    await consumer.commit(dict(ends))
                finally:
                    await consumer.stop()


@dataclass
class Command:
    """What a command took."""

    output: str
    seconds: float
    resident: list[int] = field(repr=False)  # bytes, every `SAMPLE_EVERY` seconds

    @property
    def peak_mib(self) -> int:
        return round(max(self.resident) / 2**20)


async def command(*arguments: str) -> Command:
    """Run `pagewire ARGUMENTS` and watch its memory. Raises: RuntimeError: it failed; with the end of what it said."""
    began = perf_counter()
    process = await start(*arguments)
    talking = asyncio.ensure_future(process.communicate())
    resident: list[int] = []
    while not talking.done():
        try:
            resident.append(psutil.Process(process.pid).memory_info().rss)
        except psutil.Error:
            break
        await asyncio.wait((talking,), timeout=SAMPLE_EVERY)
    out, said = await talking
    if process.returncode:
        raise RuntimeError(f"pagewire {' '.join(arguments)}: exit code {process.returncode}\n{said.decode()[-TOLD:]}")
    return Command(out.decode(), perf_counter() - began, resident)


async def start(*arguments: str, stderr: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
    """Start `pagewire ARGUMENTS`."""
    command = (sys.executable, "-m", "cli.main", *arguments)
    return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=stderr)


@asynccontextmanager
async def worker(*arguments: str) -> AsyncIterator[None]:
    """`pagewire worker ARGUMENTS`; it is ready, and has its partitions."""
    child = await start("worker", *arguments, stderr=asyncio.subprocess.DEVNULL)
    try:
        assert child.stdout is not None
        async with asyncio.timeout(READY_TIMEOUT):
            while not (line := await child.stdout.readline()).startswith(b"ready"):
                assert line, "the worker ended before it was ready"
        yield
    finally:
        if child.returncode is None:
            child.terminate()
        await child.wait()


FOOTPRINT = "footprint"


def footprint() -> None:
    """Memory of the running system."""
    asyncio.run(_footprint())


async def _footprint() -> None:
    began = perf_counter()
    async with system([FOOTPRINT]) as (started, client):
        ready = perf_counter() - began
        for i in range(5):
            page = {"id": f"p{i}", "title": f"Page {i}", "content": f"<p>Text of page {i}.</p>"}
            await client.put(f"/sites/{FOOTPRINT}/pages/p{i}?wait=searchable&timeout=60", json=page)
        await client.post(f"/sites/{FOOTPRINT}/chat", json={"question": "What is the text of page 3?"})
        lines: list[tuple[object, ...]] = [
            (child.name, round(resident(child.pid or 0) / 2**20)) for child in started.children
        ]
        lines.append(("pagewire up", round(psutil.Process().memory_full_info().pss / 2**20)))
        ours = sum(int(str(line[1])) for line in lines)
        lines.append(("workers, gateway and up together", ours))
        if started.engine is not None:
            status = await engine.status(started.engine.settings)
            servers = [(s.name, round((s.rss_bytes or 0) / 2**20)) for s in (status.kafka, status.elasticsearch)]
            lines += [*servers, ("engine together", sum(size for _, size in servers))]
    about = f"memory after a little use; ready {started.seconds:.1f} s after the servers answered"
    report("footprint", about, ("part", "MiB"), lines, ready_s=round(ready, 1), parts_s=round(started.seconds, 1))
