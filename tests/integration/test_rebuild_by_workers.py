"""A rebuild by two workers on the real Kafka and Elasticsearch, while somebody saves, one worker is killed and the
rebuild itself begins again: the index is that which one process makes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from adapters.elastic.bundle import Elastic
from adapters.kafka import ensure_topics
from adapters.kafka.sender import Outgoing
from cli.rebuild_steps import Fleet, RebuildOptions, rebuild_fleet
from pipelines.evaluate.non_inferiority import MARGIN
from schemas.ingest import ReceiptEvent
from schemas.keys import page_key
from schemas.page import Op, PageChange, PageDocument
from schemas.rebuild import Rebuild, RebuildBy
from schemas.topics import CHANGES
from tests.acceptance.system import Instance
from tests.acceptance.word_embedder import WordEmbedder, word_embedder
from tests.engine_fixture import Servers
from tests.making import NOON
from tests.site_indexes import forget
from wiring.clients import Clients
from wiring.settings import Settings
from wiring.settings_file import load

pytestmark = pytest.mark.engine

PAGES = 12
BY_WORKERS = RebuildOptions("changes", "openai:words-32", None, None, None, MARGIN, True, False, False, "workers")
PATIENCE = 120.0  # seconds


@pytest.fixture
def embedder() -> Iterator[WordEmbedder]:
    with word_embedder() as made:
        yield made


@pytest.fixture
def instance(engine: Servers, tmp_path: Path, embedder: WordEmbedder) -> Instance:
    return Instance(
        tmp_path, engine, PAGEWIRE_EMBEDDER="openai:words-64", OPENAI_BASE_URL=embedder.url, OPENAI_API_KEY="k"
    )


@pytest.fixture
async def settings(instance: Instance) -> AsyncIterator[Settings]:
    made = load(instance.environment)
    await ensure_topics(str(made.kafka), made)
    yield made
    async with Elastic(str(made.elasticsearch), made) as elastic:
        await forget(elastic, instance.site)


class Town:
    """The site, and what is in its indexes."""

    def __init__(self, site: str, clients: Clients) -> None:
        self.site = site
        self.clients = clients

    def change(self, page: str, revision: int, op: Op = "upsert") -> PageChange:
        boats = "Boats" if revision == 1 else "Ships"  # what is saved meanwhile is not held up
        document = PageDocument(
            id=page,
            lang="en",
            title=page,
            content=f"<h2>Room {page}</h2><p>{boats} of the lake, as of revision {revision}.</p>" * 3,
            groups=("staff",) if page == "page3" else None,
        )
        return PageChange(
            op=op,
            site=self.site,
            lang="en",
            page_id=page,
            revision=revision,
            accepted_at=NOON,
            source="t",
            page=document if op == "upsert" else None,
        )

    async def save(self, *changes: PageChange) -> None:
        """Return when all of them are what editors and visitors see."""
        sender = await self.clients.sender()
        await sender.send_many([Outgoing(CHANGES, change.page_key, change) for change in changes])
        await until(lambda: self._shown(changes))

    async def _shown(self, changes: tuple[PageChange, ...]) -> bool:
        receipts = await self.receipts([change.page_key for change in changes])
        return all((got := receipts.get(c.page_key)) and got.change.revision == c.revision for c in changes)

    async def receipts(self, keys: list[str]) -> dict[str, ReceiptEvent]:
        return await self.clients.elastic.pages.receipts(keys)

    async def rebuild(self, embedder: str, by: RebuildBy) -> Rebuild:
        """Begun or gone on with, audited, live."""
        async with self.clients.elastic.rebuilds.lease(self.site):
            rebuilder = await self.clients.rebuilder(self.site, by=by)
            filled = await rebuilder.fill(await rebuilder.begin("changes", embedder=embedder))

            async def audit(index: str) -> bool:
                return (await (await self.clients.auditor()).audit(self.site, index=index)).clean

            await rebuilder.verify(filled, audit)
            return await rebuilder.promote()

    async def holds(self, index: str) -> dict[str, dict[str, Any]]:
        """Documents by id, but for the model and what tells of this rebuild alone."""
        es = self.clients.elastic.es
        await es.indices.refresh(index=index)
        found = await es.search(index=index, size=1_000, source={"exclude_vectors": True})
        return {hit["_id"]: _comparable(hit["_source"]) for hit in found["hits"]["hits"]}


def _comparable(source: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in source.items() if name not in ("model", "embed_hash", "embedding", "units")}
    if "head" in kept:
        kept["head"] = {name: value for name, value in kept["head"].items() if name not in ("model", "token")}
    return kept


async def until(look: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await look():  # noqa: ASYNC110  # what happens elsewhere announces nothing
            await asyncio.sleep(0.1)


async def test_an_index_by_workers_of_whom_one_is_killed_is_the_one_that_a_single_process_makes(
    instance: Instance, settings: Settings, embedder: WordEmbedder
) -> None:
    with ExitStack() as processes:
        workers = (("chunk", "embed", "index"), ("rebuild",), ("rebuild", "--lane", "bulk"))
        *_, doomed = await asyncio.gather(
            *(asyncio.to_thread(processes.enter_context, instance.started("worker", *w)) for w in workers)
        )
        async with Clients(settings) as clients:
            town = Town(instance.site, clients)
            await town.save(*(town.change(f"page{n}", 1) for n in range(PAGES)))
            await town.save(town.change("page1", 2, "delete"))
            with embedder.holding("Boats"):
                first = asyncio.create_task(town.rebuild("openai:words-32", "workers"))

                async def held() -> bool:
                    if first.done():
                        first.result()
                    return embedder.kept_waiting >= PAGES - 1  # each page that is there is with a worker

                await until(held)
                await town.save(town.change("page2", 2), town.change("page4", 2, "delete"), town.change("new", 2))
                doomed.kill()
                first.cancel()  # and so is whoever ordered them
                await asyncio.gather(first, return_exceptions=True)
            receipts = await town.receipts([page_key(town.site, "en", f"page{n}") for n in range(PAGES)])
            # Who goes on is the command `pagewire index rebuild --sites SITE --by workers`.
            came = await rebuild_fleet(settings, Fleet(town.site, 1, again=True), BY_WORKERS)
            assert [(one.outcome, one.why) for one in came] == [("live", "")]
            by_workers = next(one for one in await clients.elastic.rebuilds.of_site(town.site) if one.generation == 2)
            assert (by_workers.state, by_workers.failures) == ("live", 0)
            assert await town.receipts(list(receipts)) == receipts, "a rebuild is no save"
            by_one = await town.rebuild("openai:words-16", "self")
            assert by_one.generation == 3
            made = await town.holds(by_workers.index)
            assert made == await town.holds(by_one.index)
            live = {source["page_id"] for source in made.values() if source["kind"] == "chunk"}
            assert live == {"new", *(f"page{n}" for n in range(PAGES) if n not in (1, 4))}
