"""What a broken thing costs its neighbours: a key that is refused, a site whose index is blocked, a page that kills.

          ┌─ Guard: takes one key only ──▶ Elasticsearch
 workers ─┤
          └─ scripted embedder: kills the worker that asks for a page with KILLER in it

One partition, so that the neighbours stand behind what is broken. The whole system, with real servers; only the
embedder is scripted, and the guard stands in for Elasticsearch's security, which the local engine lacks.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import httpx
from aiohttp import ClientSession, web
from rich.progress import track

from adapters.elastic.bundle import Elastic
from bench.report import percentile, report
from bench.servers import servers
from bench.system import home
from cli.up import System, running
from gateway.edge.keys import admin_key
from wiring.settings import Settings
from wiring.settings_file import load

SCENES = SITE, PAGE, KEY = ("site", "page", "key")
HEALTHY, BROKEN = "healthy", "broken"
RIGHT, WRONG = "the-right-key", "a-key-that-has-ended"
KILLER = "qwxkillerqwx"
DIMS = 8
BROKEN_SAVES = 160
SAVE_EVERY = 2.0  # seconds, while the key is wrong
KILLED_FOR = 600.0  # seconds until the killer must be buried
CALM = 30.0  # seconds without a death after which it is: a stage that died before its commit has sent copies
PAUSE = 0.5  # seconds between a neighbour's saves beside it
POLL = 0.2  # seconds
PATIENCE = 300.0  # seconds for what must come by itself


Lines = Sequence[tuple[str, object]]


class Guard:
    """Before Elasticsearch: refuses with 401 whoever does not bring `key`."""

    def __init__(self, behind: str) -> None:
        self._behind = behind
        self.key = RIGHT

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers.get("Authorization") != f"ApiKey {self.key}":
            said = {"type": "security_exception", "reason": "unable to authenticate"}
            return web.json_response({"error": said, "status": 401}, status=401)
        headers = {n: v for n, v in request.headers.items() if n.lower() not in ("host", "authorization")}
        async with (
            ClientSession(auto_decompress=False) as session,
            session.request(request.method, self._behind + request.path_qs, data=body, headers=headers) as answer,
        ):
            kept = {n: v for n, v in answer.headers.items() if n.lower() not in ("transfer-encoding", "content-length")}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)


class Embedder:
    """OpenAI's embeddings over HTTP, made from a hash. `kill` is called for a text with KILLER in it."""

    def __init__(self) -> None:
        self.kill: Callable[[], None] = lambda: None

    async def handle(self, request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        if any(KILLER in text for text in texts):
            self.kill()
            await asyncio.sleep(PATIENCE)  # nobody listens any more
        rows = [{"object": "embedding", "index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]
        return web.json_response({"object": "list", "model": "scripted", "data": rows, "usage": {}})


def _vector(text: str) -> list[float]:
    return [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()[:DIMS]]


def main(scenes: Sequence[str], minutes: float, saves: int) -> None:
    """`minutes` with a key that is refused; `saves` of the healthy site measured each time."""
    with home([HEALTHY, BROKEN]) as settings:
        asyncio.run(_run(settings, scenes, minutes, saves))


async def _run(settings: Settings, scenes: Sequence[str], minutes: float, saves: int) -> None:
    os.environ["PAGEWIRE_PARTITIONS"] = "1"
    async with servers(load()) as direct, Elastic(str(direct.elasticsearch), direct) as elastic:
        guard, embedder = Guard(str(direct.elasticsearch)), Embedder()
        key = Path(settings.home) / "elastic-key"
        key.write_text(RIGHT)
        async with _serving("/{path:.*}", guard.handle) as behind, _serving("/v1/embeddings", embedder.handle) as model:
            os.environ |= {
                "PAGEWIRE_ELASTICSEARCH": behind,
                "PAGEWIRE_ELASTICSEARCH_API_KEY_FILE": str(key),
                "PAGEWIRE_EMBEDDER": "openai:scripted",
                "OPENAI_BASE_URL": f"{model}/v1",
                "OPENAI_API_KEY": "none",
            }
            async with running(load()) as started, _client(started) as client:
                scene = _Scenes(started, client, elastic, guard, embedder, key)
                ways: dict[str, Callable[[], Awaitable[Lines]]] = {
                    SITE: lambda: scene.a_broken_site(saves),
                    PAGE: scene.a_page_that_kills,
                    KEY: lambda: scene.a_refused_key(minutes * 60),
                }
                lines = [line for name in scenes for line in await ways[name]()]
    report("failures", "what is broken, and what it costs its neighbours; one partition", ("", "figure"), lines)


@asynccontextmanager
async def _serving(path: str, handle: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", path, handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _client(started: System) -> AsyncIterator[httpx.AsyncClient]:
    secret, _ = admin_key(started.settings)
    headers = {"Authorization": f"Bearer {secret.get_secret_value()}"}
    async with httpx.AsyncClient(base_url=f"{started.url}/v1", headers=headers, timeout=120) as client:
        yield client


class _Scenes:
    def __init__(
        self,
        started: System,
        client: httpx.AsyncClient,
        elastic: Elastic,
        guard: Guard,
        embedder: Embedder,
        key: Path,
    ) -> None:
        self._started = started
        self._client = client
        self._elastic = elastic
        self._guard = guard
        self._embedder = embedder
        self._key = key
        self._numbers = count()
        self._saved: dict[str, list[str]] = {HEALTHY: [], BROKEN: []}

    async def a_broken_site(self, saves: int) -> Lines:
        """Its index takes no writes; then it does."""
        await self._save(BROKEN, wait=True)
        await self._warm(saves // 4)
        idle = [await self._save(HEALTHY, wait=True) for _ in track(range(saves), "idle")]
        [index] = [info.name for info in await self._elastic.indexes.generations(BROKEN)]
        await self._elastic.es.indices.put_settings(index=index, settings={"index.blocks.write": True})
        broken = [await self._save(BROKEN) for _ in range(BROKEN_SAVES // 2)]
        beside = []
        for turn in track(range(saves), "beside a broken site"):
            if turn % max(1, saves // (BROKEN_SAVES // 2)) == 0 and len(broken) < BROKEN_SAVES:
                broken.append(await self._save(BROKEN))
            beside.append(await self._save(HEALTHY, wait=True))
        parked = next(s["parked"] for s in (await self._get("/admin/status"))["sites"] if s["site"] == BROKEN)
        await self._elastic.es.indices.put_settings(index=index, settings={"index.blocks.write": False})
        back = await self._searchable(BROKEN, len(broken))
        ratio = percentile(beside, 95) / percentile(idle, 95)
        return [
            ("a healthy site's save, idle: p50, p95 ms", _milliseconds(idle)),
            (f"beside {len(broken)} saves of a site whose index is blocked: p50, p95 ms", _milliseconds(beside)),
            ("p95 beside : idle", round(ratio, 2)),
            ("records of the broken site parked; dead letters", f"{parked}; {await self._dead()}"),
            ("seconds until all its saves were searchable, with the block gone", round(back, 1)),
        ]

    async def a_page_that_kills(self) -> Lines:
        """The worker that embeds it is killed, each time; `up` starts it again."""
        await self._warm(1)
        deaths, last = 0, 0.0
        worker = next(child for child in self._started.children if child.name == "worker ingest")

        def kill() -> None:
            nonlocal deaths, last
            deaths, last = deaths + 1, monotonic()
            if worker.pid is not None:
                os.kill(worker.pid, signal.SIGKILL)

        self._embedder.kill = kill
        await self._save(HEALTHY, text=KILLER)
        beside: list[float] = []
        began = monotonic()
        while not await self._dead() or monotonic() - last < CALM:
            assert monotonic() - began < KILLED_FOR, f"{deaths} deaths, and it is not buried"
            beside.append(await self._save(HEALTHY, wait=True))
            await asyncio.sleep(PAUSE)
        letters = [one for one in (await self._get("/admin/dlq"))["letters"] if one["state"] == "open"]
        codes = ", ".join(sorted({one["code"] for one in letters}))
        return [
            (
                "a page that kills its worker: deaths; dead letters, its message's copies; code",
                f"{deaths}; {len(letters)}; {codes}",
            ),
            ("seconds until the last death", round(last - began, 1)),
            (f"its neighbours' {len(beside)} saves meanwhile: p50, p95 ms", _milliseconds(beside)),
        ]

    async def a_refused_key(self, seconds: float) -> Lines:
        """Elasticsearch takes another key than ours, under saves; then ours is changed in its file."""
        await self._warm(1)
        before = await self._dead()
        self._guard.key = WRONG
        began, sent = monotonic(), 0
        for turn in track(range(max(1, round(seconds / SAVE_EVERY))), "with a key that is refused"):
            await asyncio.sleep(max(0.0, began + turn * SAVE_EVERY - monotonic()))
            await self._save(HEALTHY)
            sent += 1
        self._key.write_text(WRONG)
        back = await self._searchable(HEALTHY, sent)
        return [
            (f"saves in {seconds / 60:.0f} minutes with a key that Elasticsearch refuses; accepted", f"{sent}; {sent}"),
            ("dead letters of them", await self._dead() - before),
            ("seconds until all were searchable, with the right key in its file", round(back, 1)),
        ]

    async def _warm(self, saves: int) -> None:
        """What has just been started is slow at first."""
        for _ in range(saves):
            await self._save(HEALTHY, wait=True)

    async def _save(self, site: str, *, wait: bool = False, text: str = "") -> float:
        """Milliseconds. A save that is not accepted ends the benchmark."""
        number = next(self._numbers)
        page = {
            "id": f"page-{number}",
            "title": "Opening hours of the library",
            "content": f"<p>The library has {number} new books this week. {text}</p>",
        }
        options = "?wait=searchable&timeout=100" if wait else ""
        began = perf_counter()
        answer = await self._client.put(f"/sites/{site}/pages/{page['id']}{options}", json=page)
        took = (perf_counter() - began) * 1000
        assert answer.status_code in (200, 202), answer.text
        assert not wait or answer.json()["state"] == "searchable", answer.text
        self._saved[site].append(page["id"])
        return took

    async def _searchable(self, site: str, newest: int) -> float:
        """Seconds until the `newest` pages that were saved last of a site can be found."""
        began = monotonic()
        for page in reversed(self._saved[site][-newest:]):
            while True:
                assert monotonic() - began < PATIENCE, f"{page} of {site} is not searchable"
                answer = await self._client.get(f"/sites/{site}/pages/{page}/receipt?lang=en")
                if answer.is_success and answer.json()["state"] == "searchable":
                    break
                await asyncio.sleep(POLL)
        return monotonic() - began

    async def _dead(self) -> int:
        return sum(letter["state"] == "open" for letter in (await self._get("/admin/dlq?limit=500"))["letters"])

    async def _get(self, path: str) -> dict[str, Any]:
        answer = await self._client.get(path)
        answer.raise_for_status()
        body: dict[str, Any] = answer.json()
        return body


def _milliseconds(times: Sequence[float]) -> str:
    return f"{percentile(times, 50):.0f}, {percentile(times, 95):.0f}"
