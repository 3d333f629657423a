"""A fleet of small sites: what does each more take of workers, gateway, Elasticsearch and `pagewire status`?

    pagewire.yaml with all sites ─▶ workers, gateway ─▶ a page and a question of each site, in steps
                                                                                           │
          memory, CPU with nothing to do, `status`, metrics, first saves of new sites ◀─ all is quiet

All pages but those of the new sites have one text: what grows, grows with sites and not with vectors that are known.
The model is simulated and takes no time. The engine is our own, and the sites' names are new in each run. Where the
machine has other work to do, seconds of the processor tell more than those of the clock.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from math import inf
from statistics import fmean, median
from time import perf_counter

import httpx
import psutil
from elasticsearch import AsyncElasticsearch
from rich.console import Console
from rich.progress import Progress

from bench.report import report
from bench.servers import command
from bench.simulated_embedder import MODEL, models
from bench.system import home
from cli.up import System, running
from gateway.edge.gauges import TTL
from gateway.edge.keys import admin_key
from infra import engine
from wiring.settings import Settings

CONTENT = "<p>The town hall is open from nine to five.</p>"
QUESTION = "When is the town hall open?"
AT_ONCE = 16  # sites that get their page and their question
NEW = 5  # sites that are new after each step; their first saves are timed one by one
LOOKS = 3  # at each thing whose time is told
SAVE_TIMEOUT = 120  # seconds until a page must be searchable
MIB = 2**20


@dataclass(frozen=True)
class Process:
    """What a process has taken so far."""

    resident: int  # bytes
    cpu: float  # seconds


@dataclass(frozen=True)
class Asked:
    """What was asked for some times. `inf`: there was no answer."""

    seconds: float  # median
    cpu: float  # seconds of the process that answers, in the mean
    kib: float


@dataclass(frozen=True)
class Step:
    """What was seen when so many sites had a page and had answered a question."""

    sites: int
    resident_mib: Mapping[str, float]  # by process
    idle_cpu: Mapping[str, float]  # percent of a core, with nothing to do
    command: Asked
    status: Asked
    metrics: Asked
    first_saves: Sequence[float]  # seconds until searchable
    shards: int
    heap_mib: float


def main(sizes: Sequence[int], configured: int, settle: float, patience: float, as_json: bool) -> None:
    """Figures at each of these numbers of sites, of those that pagewire.yaml has."""
    names = _names(max(configured, max(sizes) + NEW * (len(sizes) + 1)))
    with models(0) as url, home(names) as settings:
        os.environ |= {
            "PAGEWIRE_EMBEDDER": f"openai:{MODEL}",
            "OPENAI_BASE_URL": f"{url}/0/v1",
            "OPENAI_API_KEY": "none",
        }
        asyncio.run(_run(settings, names, sorted(sizes), settle, patience, as_json))


def _names(count: int) -> list[str]:
    """None was used before: where a page was deleted, Elasticsearch refuses what is older for a minute."""
    run = f"{round(time.time()):x}"
    return [f"f{run}-{number:05}" for number in range(count)]


async def _run(
    settings: Settings, names: Sequence[str], sizes: Sequence[int], settle: float, patience: float, as_json: bool
) -> None:
    new, steps, served = iter(names[max(sizes) :]), list[Step](), 0
    async with _system(settings) as (started, client, es):
        # A node refuses more than a thousand shards, unless it is told otherwise; here is to be seen what it carries.
        await es.cluster.put_settings(persistent={"cluster.max_shards_per_node": 2 * len(names)})
        with Progress(console=Console(stderr=True)) as progress:
            bar = progress.add_task(f"{max(sizes):,} sites", total=max(sizes))
            for size in (0, *sizes):
                began, wanted = perf_counter(), names[served:size]
                came = await _fill(client, wanted, patience, lambda: progress.advance(bar))
                served += came
                progress.console.print(f"{came:,} of {len(wanted):,} sites after {perf_counter() - began:.0f} s")
                steps.append(await _look(started, client, es, served, settle, islice(new, NEW)))
                if came < len(wanted):
                    break
    report(
        "sites",
        f"a page and a question of each site; {len(names):,} in pagewire.yaml, the model is simulated",
        ("", *(f"{step.sites:,} sites" for step in steps), "each 1,000"),
        list(_lines(steps)),
        as_json=as_json,
        steps=[asdict(step) for step in steps],
        heap=settings.engine_es_heap,
        load=os.getloadavg(),
    )


@asynccontextmanager
async def _system(settings: Settings) -> AsyncIterator[tuple[System, httpx.AsyncClient, AsyncElasticsearch]]:
    """All of Pagewire, with an engine of its own in any case: nobody else's is to carry so many indexes."""
    async with running(settings.model_copy(update={"kafka": None, "elasticsearch": None})) as started:
        kafka, elasticsearch = started.settings.kafka, started.settings.elasticsearch
        assert kafka
        assert elasticsearch
        os.environ |= {"PAGEWIRE_KAFKA": kafka, "PAGEWIRE_ELASTICSEARCH": elasticsearch}  # for `pagewire status`
        key, _ = admin_key(started.settings)
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"}
        async with (
            httpx.AsyncClient(base_url=started.url, headers=headers, timeout=2 * SAVE_TIMEOUT) as client,
            AsyncElasticsearch(elasticsearch, request_timeout=SAVE_TIMEOUT) as es,
        ):
            yield started, client, es


async def _fill(client: httpx.AsyncClient, names: Sequence[str], patience: float, advance: Callable[[], object]) -> int:
    """A page and a question of each; how many got both within `patience` (seconds)."""
    waiting, served = iter(names), list[str]()

    async def fill() -> None:
        for name in waiting:
            if await _saved(client, name, CONTENT) and await _asked(client, name):
                served.append(name)
                advance()

    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            await asyncio.gather(*(fill() for _ in range(AT_ONCE)))
    return len(served)


async def _saved(client: httpx.AsyncClient, site: str, content: str) -> bool:
    """Save the first page of a site; whether it is searchable now."""
    url = f"/v1/sites/{site}/pages/hours?wait=searchable&timeout={SAVE_TIMEOUT}"
    try:
        answer = await client.put(url, json={"id": "hours", "title": "Opening hours", "content": content})
    except httpx.HTTPError:
        return False
    return answer.status_code == 200 and answer.json()["state"] == "searchable"


async def _asked(client: httpx.AsyncClient, site: str) -> bool:
    """Ask a question, and read the answer to its end."""
    try:
        return (await client.post(f"/v1/sites/{site}/chat", json={"question": QUESTION})).is_success
    except httpx.HTTPError:
        return False


async def _look(
    started: System,
    client: httpx.AsyncClient,
    es: AsyncElasticsearch,
    sites: int,
    settle: float,
    new: Iterator[str],
) -> Step:
    """Let `settle` seconds pass, and see what that took; then ask."""
    before = await _processes(started)
    await asyncio.sleep(settle)
    after = await _processes(started)
    shards = (await es.cluster.health())["active_shards"]
    [node] = (await es.nodes.stats(metric="jvm"))["nodes"].values()
    gateway = psutil.Process(started.children[-1].pid)
    return Step(
        sites=sites,
        resident_mib={name: one.resident / MIB for name, one in after.items()},
        idle_cpu={name: (one.cpu - before[name].cpu) / settle * 100 for name, one in after.items()},
        command=await _command(),
        status=await _answered(client, gateway, "/v1/admin/status", pause=0.0),
        metrics=await _answered(client, gateway, "/metrics", pause=TTL),
        first_saves=sorted([await _first_save(client, name) for name in new]),
        shards=shards,
        heap_mib=node["jvm"]["mem"]["heap_used_in_bytes"] / MIB,
    )


async def _processes(started: System) -> dict[str, Process]:
    """By name: our own, and the servers'."""
    pids = {child.name: child.pid for child in started.children}
    assert started.engine is not None
    status = await engine.status(started.engine.settings)
    pids |= {server.name: server.pid for server in (status.kafka, status.elasticsearch)}
    found = {}
    for name, pid in pids.items():
        process = psutil.Process(pid)
        times = process.cpu_times()
        found[name] = Process(process.memory_info().rss, times.user + times.system)
    return found


async def _command() -> Asked:
    """`pagewire status`, its start included."""
    seconds, cpu, size = [], [], 0
    for _ in range(LOOKS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = await command("status", "--json")
        except RuntimeError:
            return Asked(inf, inf, 0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(done.seconds)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        size = len(done.output)
    return Asked(median(seconds), fmean(cpu), size / 1024)


async def _answered(client: httpx.AsyncClient, gateway: psutil.Process, url: str, pause: float) -> Asked:
    """`pause`: seconds in which one would be told the same again."""
    seconds, cpu, size = [], [], 0
    for _ in range(LOOKS):
        await asyncio.sleep(pause)
        began, before = perf_counter(), gateway.cpu_times()
        answer = await client.get(url)
        after = gateway.cpu_times()
        seconds.append(perf_counter() - began if answer.is_success else inf)
        cpu.append(after.user + after.system - before.user - before.system)
        size = len(answer.content)
    return Asked(median(seconds), fmean(cpu), size / 1024)


async def _first_save(client: httpx.AsyncClient, site: str) -> float:
    """Seconds until the first page of a site was searchable. Its text is its own: it is embedded."""
    began = perf_counter()
    saved = await _saved(client, site, f"{CONTENT}<p>This is the website of {site}.</p>")
    return perf_counter() - began if saved else inf


def _lines(steps: Sequence[Step]) -> Iterator[Sequence[object]]:
    """One for each figure; of memory also what 1,000 sites took, between the first step with sites and the last."""
    first, last = steps[min(1, len(steps) - 1)], steps[-1]
    thousands = (last.sites - first.sites) / 1000
    for name in last.resident_mib:
        grown = (last.resident_mib[name] - first.resident_mib[name]) / thousands if thousands else ""
        yield (f"{name}, MiB", *(round(step.resident_mib[name]) for step in steps), grown)
    for name in last.idle_cpu:
        yield (f"{name}, % of a core with nothing to do", *(round(step.idle_cpu[name], 1) for step in steps), "")
    for label, asked in (
        ("`pagewire status`", [step.command for step in steps]),
        ("/v1/admin/status", [step.status for step in steps]),
        ("/metrics", [step.metrics for step in steps]),
    ):
        yield (f"{label}, s", *(one.seconds for one in asked), "")
        yield ("... of CPU", *(one.cpu for one in asked), "")
        yield ("... KiB", *(round(one.kib) for one in asked), "")
    yield ("first save of a new site, s", *(median(step.first_saves) for step in steps), "")
    yield ("... the longest", *(max(step.first_saves) for step in steps), "")
    yield ("shards", *(step.shards for step in steps), "")
    yield ("heap of Elasticsearch, MiB", *(round(step.heap_mib) for step in steps), "")
