"""Small sites in shared indexes on the real Elasticsearch: nobody sees another, nor is in another's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import RECEIPTS
from adapters.elastic.pages import PageIndex
from adapters.elastic.tenancy import SHARED_INDEXES
from adapters.elastic.writer import Write
from pipelines.query.search.ports import Candidates, Floors
from pipelines.runtime.indexes import IndexInfo, IndexUnfit, alias, index_name
from schemas.head import Head
from schemas.ingest import EmbeddedChunk, PageEmbeddings, Vector32
from schemas.page import PageMeta
from tests.engine_fixture import Servers
from tests.making import NOON, change
from tests.site_indexes import forget
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

DIMS = 8
MADE_FOR: dict[str, Any] = {"embedder": "fake", "model": "fake-8", "dims": DIMS, "chunker": "content-1000-20"}


def near(closeness: float) -> Vector32:
    """A vector of this cosine to `near(1)`."""
    return np.array([closeness, np.sqrt(1 - closeness**2), *[0] * (DIMS - 2)], dtype=np.float32)


class Fleet:
    """Two sites whose names begin alike, in one shared index of a kind that no other test uses."""

    def __init__(self, elastic: Elastic, model: str) -> None:
        self.elastic = elastic
        self.indexes = elastic.indexes
        self.made_for = MADE_FOR | {"model": model}
        base = f"t{uuid4().hex[:12]}"
        self.town, self.hall = base, f"{base}-hall"

    async def save(self, site: str, page: str, text: str, closeness: float) -> PageIndex:
        index = await self.elastic.pages.live(site, **self.made_for)
        await self.write(index, page, text, closeness)
        return index

    async def write(self, index: PageIndex, page: str, text: str, closeness: float) -> None:
        ref = change(1, page_id=page, site=index.info.site)
        chunk = EmbeddedChunk(field="content", ord=0, text=text, embed_hash=text, vector=near(closeness))
        part = PageEmbeddings(
            change=ref, meta=PageMeta(title="", url=f"/{page}"), part=0, parts=1, chunks=[chunk], **self.made_for
        )
        head = Head(change=ref, state="live", counts={"content": 1}, settled_at=NOON)
        assert await index.write(part, head)
        await index.refresh()

    async def generation(self, site: str, number: int) -> PageIndex:
        made_for = {name: self.made_for[name] for name in ("embedder", "model", "dims", "chunker")}
        await self.indexes.create(site, number, **made_for, shared=True)
        return self.elastic.pages.at(await self.info(site, number))

    async def info(self, site: str, number: int) -> IndexInfo:
        return next(info for info in await self.indexes.generations(site) if info.generation == number)

    async def ask(self, site: str, words: str, hits: int = 10) -> Candidates:
        return await self.elastic.search.candidates(
            site,
            words,
            near(1),
            model=self.made_for["model"],
            floors=Floors(0, 0),
            content_hits=hits,
            keyword_hits=hits,
        )

    async def documents(self, concrete: str) -> set[str]:
        """Who has something in this index, by what its documents say."""
        await self.elastic.es.indices.refresh(index=concrete)
        answer = await self.elastic.es.search(index=concrete, size=1_000, source_includes=["generation"])
        return {hit["_source"]["generation"] for hit in answer["hits"]["hits"]}

    async def aliases(self, info: IndexInfo) -> set[str]:
        found = await self.elastic.es.indices.get_alias(index=info.concrete)
        return {name for name in found[info.concrete]["aliases"] if name.startswith(info.name)}


@pytest.fixture
async def fleet(engine: Servers) -> AsyncIterator[Fleet]:
    model = f"fake-{uuid4().hex[:8]}"
    # As few as there may be: generations of a site soon meet.
    async with Elastic(engine.elasticsearch, Settings(site_index="shared")) as elastic:
        await elastic.indexes.ensure_system(RECEIPTS)
        made = Fleet(elastic, model)
        yield made
        await forget(elastic, made.town, made.hall)
        there = await elastic.es.indices.get_mapping(index="pagewire.shared-*", filter_path="*.mappings._meta.model")
        for name, body in there.items():
            if body["mappings"]["_meta"]["model"] == model:
                await elastic.es.indices.delete(index=name)


async def together(fleet: Fleet) -> str:
    """Both sites have a page; the index that they share."""
    await fleet.save(fleet.town, "pool", "The pool of the town is open.", 0.5)
    await fleet.save(fleet.hall, "opera", "The opera in the hall is open.", 0.99)
    town, hall = await fleet.info(fleet.town, 1), await fleet.info(fleet.hall, 1)
    if town.concrete != hall.concrete:  # they were sent to different ones
        number = 2
        while (index := await fleet.generation(fleet.hall, number)).info.concrete != town.concrete:
            number += 1
        await fleet.write(index, "opera", "The opera in the hall is open.", 0.99)
        await fleet.indexes.swap(fleet.hall, index.info)
    return town.concrete


async def test_a_site_finds_its_own_pages_alone_however_near_those_of_others_are(fleet: Fleet) -> None:
    await together(fleet)
    found = await fleet.ask(fleet.town, "opera pool open", hits=1)
    assert {hit.page_key for hit in [*found.dense, *found.keyword]} == {f"{fleet.town}:en:pool"}
    assert (dict(found.terms), found.total) == ({"opera": 0, "pool": 1, "open": 1}, 1)
    other = await fleet.ask(fleet.hall, "opera pool open", hits=1)
    assert {hit.page_key for hit in [*other.dense, *other.keyword]} == {f"{fleet.hall}:en:opera"}


async def test_status_counts_each_by_itself(fleet: Fleet) -> None:
    await together(fleet)
    await fleet.save(fleet.town, "library", "The library lends books.", 0.4)
    found = await fleet.elastic.site_statuses([fleet.town, fleet.hall])
    assert [(one.pages, one.chunks, one.problem) for one in found] == [(2, 2, None), (1, 1, None)]
    name = index_name(fleet.town, 1)
    documents, size = (await fleet.elastic.rebuilds.sizes(fleet.town))[name]
    assert (documents, (await fleet.elastic.rebuilds.contents(fleet.town, [name]))[name]) == (4, (2, 2))
    assert 0 < size < (await fleet.elastic.rebuilds.sizes(fleet.town))[(await fleet.info(fleet.town, 1)).concrete][1]


async def test_no_two_generations_of_a_site_are_in_one_index(fleet: Fleet) -> None:
    await fleet.save(fleet.town, "pool", "one", 0.5)
    numbers = range(2, SHARED_INDEXES + 1)
    others = [await fleet.generation(fleet.town, number) for number in numbers]
    for index in others:
        await fleet.write(index, "pool", f"of {index.info.name}", 0.5)
    everywhere = {info.concrete for info in await fleet.indexes.generations(fleet.town)}
    assert len(everywhere) == SHARED_INDEXES
    with pytest.raises(IndexUnfit, match="a generation in each of 8 shared indexes"):
        await fleet.generation(fleet.town, SHARED_INDEXES + 1)
    [kept] = (await fleet.ask(fleet.town, "one")).dense
    assert kept.index == (await fleet.info(fleet.town, 1)).concrete


async def test_who_is_put_out_takes_nothing_of_others_along(fleet: Fleet) -> None:
    shared = await together(fleet)
    spare = await fleet.generation(fleet.town, 7)
    await fleet.write(spare, "pool", "spare", 0.5)
    await fleet.indexes.discard(spare.info)
    assert index_name(fleet.town, 7) not in await fleet.documents(spare.info.concrete)
    assert await fleet.aliases(spare.info) == set()
    with pytest.raises(IndexUnfit, match="is live"):
        await fleet.indexes.discard(await fleet.info(fleet.town, 1))
    await forget(fleet.elastic, fleet.town)
    assert not [name for name in await fleet.documents(shared) if name.startswith(f"{alias(fleet.town)}-0")]
    assert [hit.page_key for hit in (await fleet.ask(fleet.hall, "opera")).dense] == [f"{fleet.hall}:en:opera"]


async def test_what_was_written_late_to_one_that_was_put_out_is_in_nobodys_way(fleet: Fleet) -> None:
    await fleet.save(fleet.town, "pool", "live", 0.5)
    spare = await fleet.generation(fleet.town, 2)
    await fleet.write(spare, "pool", "spare", 0.5)
    answer = await fleet.elastic.es.search(index=spare.info.name, version=True, source={"exclude_vectors": False})
    late = [
        Write(spare.info.concrete, hit["_id"], hit["_version"], hit["_source"], aliased=False)
        for hit in answer["hits"]["hits"]
    ]
    await fleet.indexes.discard(spare.info)
    assert {one.status for one in await fleet.elastic.writer.write(late)} == {201}
    number = 3
    while (index := await fleet.generation(fleet.town, number)).info.concrete != spare.info.concrete:
        number += 1
    assert await index.heads([f"{fleet.town}:en:pool"]) == {}
    await fleet.write(index, "pool", "next", 0.5)
    assert {info.name for info in await fleet.indexes.generations(fleet.town)} > {index.info.name}


async def test_who_is_let_in_clears_nothing_away_of_a_site_whose_name_begins_alike(fleet: Fleet) -> None:
    hall = await fleet.save(fleet.hall, "opera", "The opera in the hall is open.", 0.99)
    number = 1
    while (await fleet.generation(fleet.town, number)).info.concrete != hall.info.concrete:
        number += 1
    assert hall.info.name in await fleet.documents(hall.info.concrete)


async def test_a_putting_out_that_was_killed_is_gone_on_with(fleet: Fleet) -> None:
    await fleet.save(fleet.town, "pool", "live", 0.5)
    spare = await fleet.generation(fleet.town, 2)
    await fleet.write(spare, "pool", "spare", 0.5)
    await fleet.elastic.es.indices.delete_alias(index=spare.info.concrete, name=spare.info.write_alias)  # and died
    [_, again] = await fleet.indexes.generations(fleet.town)
    await fleet.indexes.discard(again)
    assert [info.generation for info in await fleet.indexes.generations(fleet.town)] == [1]
    assert spare.info.name not in await fleet.documents(spare.info.concrete)


async def test_the_first_saves_of_a_site_may_come_together(fleet: Fleet, engine: Servers) -> None:
    async with Elastic(engine.elasticsearch, Settings(site_index="shared")) as other:
        both = (fleet.elastic, other) * 4
        indexes = await asyncio.gather(*(each.pages.live(fleet.town, **fleet.made_for) for each in both))
    assert len({(index.info.name, index.info.concrete) for index in indexes}) == 1
    assert len(await fleet.indexes.generations(fleet.town)) == 1


async def test_a_hold_is_of_one_site_alone_and_ends(fleet: Fleet) -> None:
    await together(fleet)
    town = await fleet.indexes.now(fleet.town)
    assert town is not None
    await fleet.indexes.hold(town, seconds=60)
    held, hall = await fleet.indexes.now(fleet.town), await fleet.indexes.now(fleet.hall)
    assert held is not None
    assert hall is not None
    assert (held.held, hall.held) == (True, False)
    await fleet.indexes.hold(town, seconds=30)  # by another promotion: the later one counts
    assert len([name for name in await fleet.aliases(town) if ".held-" in name]) == 1
    await fleet.indexes.release(held)
    released = await fleet.indexes.now(fleet.town)
    assert released is not None
    assert not released.held
    await fleet.indexes.hold(town, seconds=-1)
    over = await fleet.indexes.now(fleet.town)
    assert over is not None
    assert not over.held


async def test_a_site_moves_between_its_own_index_and_a_shared_one(fleet: Fleet, engine: Servers) -> None:
    own = Settings(sites={fleet.town: SiteSettings(index="own")}, site_index="shared", shards=2)
    async with Elastic(engine.elasticsearch, own) as large:
        first = await large.pages.live(fleet.town, **fleet.made_for)
        await fleet.write(first, "pool", "of its own", 0.5)
        assert (first.info.shared, large.indexes.shares(fleet.town)) == (None, False)
        settings = await large.es.indices.get_settings(index=first.info.name)
        assert settings[first.info.name]["settings"]["index"]["number_of_shards"] == "2"
    moved = await fleet.generation(fleet.town, 2)
    await fleet.write(moved, "pool", "among others", 0.5)
    for target, text in ((moved.info, moved.info.concrete), (first.info, first.info.name), (moved.info, "")):
        await fleet.indexes.swap(fleet.town, target)
        live = await fleet.indexes.now(fleet.town)
        assert live is not None
        assert live.name == target.name
        [hit] = (await fleet.ask(fleet.town, "pool")).dense
        assert hit.index == target.concrete or not text
