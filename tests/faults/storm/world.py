"""Everything of one storm in one place: servers, what stands between, Pagewire's processes, the driver's knowledge."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import yaml

from infra.engine.state import any_free
from schemas.keys import page_key
from tests.faults.storm.crew import COMMAND, Crew, environment
from tests.faults.storm.elastic_proxy import ElasticProxy
from tests.faults.storm.history import History, Order
from tests.faults.storm.own_engine import OwnEngine
from tests.faults.storm.pages import Draft, word_of
from tests.faults.storm.scripted_embedder import MODEL, ScriptedEmbedder

KEY = "key-of-the-storm"
PARTITIONS = 3
LANGUAGES = ("en", "de")
HTTP_TIMEOUT = 30.0  # seconds


@dataclass(frozen=True)
class Shape:
    """How large a storm is."""

    workers: int = 2
    gateways: int = 2
    pages: int = 60
    writers: int = 4
    rate: float = 12.0  # changes a second
    patience: float = 25.0  # seconds an editor waits for an answer; what comes later is unknown
    program: str = COMMAND  # what the workers run, ...
    extra: Mapping[str, str] = field(default_factory=dict)  # ... and what they find in their environment besides
    settings: Mapping[str, str] = field(default_factory=dict)  # of workers, gateways and commands, besides ours


@dataclass
class World:
    """One storm's system. `say` tells whoever watches."""

    folder: Path
    seed: str
    shape: Shape
    engine: OwnEngine
    proxy: ElasticProxy
    embedder: ScriptedEmbedder
    http: aiohttp.ClientSession
    site: str
    prefix: str
    say: Callable[[str], None]
    history: History
    crew: Crew
    gateways: dict[str, str] = field(default_factory=dict)  # name -> URL
    drafts: list[Draft] = field(default_factory=list)
    partitions: defaultdict[str, int] = field(default_factory=lambda: defaultdict(lambda: PARTITIONS))  # by topic
    # Page and change of messages that were deleted before they were read: nobody can say what became of those.
    unread: set[tuple[str, Order]] = field(default_factory=set)
    # Who breaks something holds it; two faults never work on the same thing at once.
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    @property
    def kafka(self) -> str:
        return self.engine.kafka.address

    @property
    def elastic(self) -> str:
        """Elasticsearch itself, past the proxy."""
        return self.engine.elastic.address

    @property
    def workers(self) -> list[str]:
        """Those that are always there."""
        return [f"worker-{n}" for n in range(1, self.shape.workers + 1)]

    def random(self, what: str) -> Random:
        """A random source of its own for each purpose, so that one does not disturb the other."""
        return Random(f"{self.seed}:{what}")

    def note(self, what: str) -> None:
        """Write down what happened, and say it."""
        self.say(str(self.history.note(what)))

    async def ask_elastic(self, method: str, path: str, body: Any = None) -> Any:
        """Elasticsearch's own answer, past the proxy; raises AssertionError when it is none."""
        async with self.http.request(method, self.elastic + path, json=body) as answer:
            said = await answer.json(content_type=None)
            assert answer.status < 300, f"{method} {path}: {answer.status} {said}"
            return said


@asynccontextmanager
async def open_world(
    engine: OwnEngine, folder: Path, seed: str, shape: Shape, say: Callable[[str], None], name: str = "storm"
) -> AsyncIterator[World]:
    """Workers and gateways at work on `engine`; ends them all."""
    config = _configured(folder, name)
    history = History()
    timeout = aiohttp.ClientTimeout(total=HTTP_TIMEOUT)
    async with (
        ElasticProxy(f"{seed}:proxy", engine.elastic.address, *engine.spare_elastics) as proxy,
        ScriptedEmbedder() as embedder,
        aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http,
    ):
        http._retry_connection = False  # by itself it would send a change twice when a gateway dies
        settings = environment(
            PAGEWIRE_HOME=str(folder / "home"),
            PAGEWIRE_CONFIG=str(config),
            PAGEWIRE_ADMIN_KEY=KEY,
            PAGEWIRE_TOPIC_PREFIX=f"{name}-",
            PAGEWIRE_PARTITIONS=str(PARTITIONS),
            PAGEWIRE_KAFKA=engine.kafka.address,
            PAGEWIRE_ELASTICSEARCH=proxy.url,
            PAGEWIRE_EMBEDDER=f"openai:{MODEL}",
            PAGEWIRE_LOG_LEVEL="warning",
            OPENAI_BASE_URL=embedder.url,
            OPENAI_API_KEY="none",
            **shape.settings,
        )
        world = World(
            folder=folder,
            seed=seed,
            shape=shape,
            engine=engine,
            proxy=proxy,
            embedder=embedder,
            http=http,
            site=name,
            prefix=f"{name}-",
            say=say,
            history=history,
            crew=Crew(folder, settings, history),
            drafts=_drafts(name, shape.pages),
        )
        try:
            await _start(world)
            yield world
        finally:
            await world.crew.close()


def _configured(folder: Path, site: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "pagewire.yaml"
    config.write_text(yaml.safe_dump({"sites": {site: {"languages": list(LANGUAGES)}}}))
    return config


async def _start(world: World) -> None:
    crew = world.crew
    for name in world.workers:
        crew.add(name, "worker", "ingest", program=world.shape.program, extra=world.shape.extra)
        crew.start(name)
    taken: set[int] = set()
    for n in range(1, world.shape.gateways + 1):
        port = any_free(taken)
        taken.add(port)
        name = f"gateway-{n}"
        crew.add(name, "gateway", "--port", str(port))
        world.gateways[name] = f"http://127.0.0.1:{port}"
        crew.start(name)
    await crew.ready(*crew.members)
    crew.keep()


def _drafts(site: str, count: int) -> list[Draft]:
    languages = (LANGUAGES[n % len(LANGUAGES)] for n in range(count))
    return [
        Draft(f"page/{n}", lang, page_key(site, lang, f"page/{n}"), word_of("w", n)) for n, lang in enumerate(languages)
    ]
