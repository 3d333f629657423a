"""Generations of a site's index on the real Elasticsearch: what is live, what is refused, and what never comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import RECEIPTS
from adapters.elastic.pages import PageIndex
from pipelines.ingest.index import index_part
from pipelines.ingest.ports import IndexReplaced
from pipelines.query.search.ports import Floors
from pipelines.runtime.indexes import IndexGone, IndexInfo, IndexUnfit, alias, index_name
from schemas.head import Head
from schemas.ingest import Chunker, ReceiptEvent
from tests.engine_fixture import Servers
from tests.making import DIMS, NOON, change, parts_of
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

CHUNKER = "content-1000-20"


class Bench:
    """A site of its own, seen by one process."""

    def __init__(self, elastic: Elastic) -> None:
        self.site = f"t{uuid4().hex[:12]}"
        self.elastic = elastic
        self.indexes = elastic.indexes
        self.pages = elastic.pages

    def name(self, generation: int = 1) -> str:
        return index_name(self.site, generation)

    async def live(self, site: str | None = None) -> PageIndex:
        return await self.pages.live(site or self.site, embedder="fake", model="fake-4", dims=DIMS, chunker=CHUNKER)

    async def save(self, revision: int, *texts: str, site: str | None = None) -> PageIndex:
        index = await self.live(site)
        await self.write(index, revision, *texts)
        return index

    async def write(self, index: PageIndex, revision: int, *texts: str) -> None:
        ref = change(revision, site=index.info.site)
        [part] = parts_of(ref, {"content": list(texts)})
        await index.write(part, Head(change=ref, state="live", counts={"content": len(texts)}, settled_at=NOON))
        await index.refresh()

    async def generation(self, number: int, model: str = "fake-4", dims: int = DIMS) -> IndexInfo:
        """One more index, which is not live."""
        await self.indexes.create(self.site, number, "fake", model, dims, CHUNKER)
        return next(info for info in await self.indexes.generations(self.site) if info.generation == number)

    async def move_alias(self, *actions: tuple[str, str]) -> None:
        await self.elastic.es.indices.update_aliases(
            actions=[{verb: {"index": name, "alias": alias(self.site)}} for verb, name in actions]
        )

    async def exists(self, name: str) -> bool:
        return bool(await self.elastic.es.indices.exists(index=name))


@pytest.fixture
async def bench(engine: Servers) -> AsyncIterator[Bench]:
    async with Elastic(engine.elasticsearch, Settings(sites={"town": SiteSettings()})) as elastic:
        await elastic.indexes.ensure_system(RECEIPTS)
        made = Bench(elastic)
        yield made
        found = await elastic.es.indices.get(index=f"{alias(made.site)}*", allow_no_indices=True)
        if found.body:
            await elastic.es.indices.delete(index=",".join(found.body))


async def test_of_an_index_is_known_what_it_was_made_for(bench: Bench) -> None:
    index = await bench.live()
    info = index.info
    assert (info.name, info.site, info.generation) == (bench.name(), bench.site, 1)
    assert (info.embedder, info.model, info.dims, info.chunker) == ("fake", "fake-4", DIMS, CHUNKER)
    assert info.cut == Chunker(mode="content", size=1000, overlap=0.2)
    assert not info.held


async def test_two_workers_that_meet_a_new_site_make_one_index(bench: Bench, engine: Servers) -> None:
    async with Elastic(engine.elasticsearch, Settings()) as other:
        first = await bench.live()
        second = await other.pages.live(bench.site, embedder="x", model="other", dims=8, chunker="fixed-512-20")
    assert second.info == first.info
    assert len(await bench.indexes.generations(bench.site)) == 1


async def test_who_finds_an_index_that_somebody_else_is_just_making_can_ask_it_at_once(bench: Bench) -> None:
    async def made_and_asked() -> dict[str, Head]:
        await bench.indexes.create(bench.site, 1, "fake", "fake-4", DIMS, CHUNKER, live=True)
        index = await bench.live()
        return await index.heads([f"{bench.site}:en:page"])

    assert await asyncio.gather(*(made_and_asked() for _ in range(4))) == [{}] * 4


# An index that was deleted.


def _writes(index: PageIndex) -> list[Callable[[], Awaitable[Any]]]:
    ref = change(2, site=index.info.site)
    [part] = parts_of(ref)
    head = Head(change=ref, state="live", settled_at=NOON)
    return [
        lambda: index.write(part, head),
        lambda: index.write(part, None),
        lambda: index.remove(ref, [("content", 0)]),
        lambda: index.heads([ref.page_key]),
    ]


@pytest.mark.parametrize("which", range(4), ids=["write", "write a part", "remove", "heads"])
async def test_a_deleted_index_is_missed_and_no_write_brings_it_back(bench: Bench, which: int) -> None:
    index = await bench.save(1, "one")
    await bench.elastic.es.indices.delete(index=bench.name())
    with pytest.raises(IndexGone, match=f"{bench.name()} is gone"):
        await _writes(index)[which]()
    assert not await bench.exists(f"{bench.name()},{alias(bench.site)}")
    assert not await bench.exists(index.info.write_alias)


async def test_a_site_whose_pages_were_searchable_gets_no_new_empty_index(bench: Bench, engine: Servers) -> None:
    index = await bench.save(1, "one")
    receipt = ReceiptEvent(change=change(1, site=bench.site), state="searchable", at=NOON)
    await bench.pages.put_receipt(receipt)
    await bench.elastic.es.indices.delete(index=index.info.name)
    async with Elastic(engine.elasticsearch, Settings()) as worker:  # a fresh process
        missing = f"site {bench.site} is gone, 1 pages were in it.*pagewire index rebuild {bench.site} --from"
        with pytest.raises(IndexGone, match=missing):
            await worker.pages.live(bench.site, embedder="fake", model="fake-4", dims=DIMS, chunker=CHUNKER)
        with pytest.raises(IndexGone, match=missing):
            await worker.search.candidates(bench.site, "one", None, floors=Floors(0, 0), content_hits=1, keyword_hits=1)
        assert await worker.indexes.now(bench.site) is None
    assert not await bench.exists(bench.name())


async def test_a_site_without_pages_may_begin_again(bench: Bench) -> None:
    for state in ("queued", "failed", "deleted"):
        event = ReceiptEvent(change=change(1, site=bench.site), state=state, at=NOON)
        await bench.pages.put_receipt(event)
    assert (await bench.live()).info.name == bench.name()


async def test_the_first_saves_of_a_site_may_come_together(bench: Bench) -> None:
    indexes = await asyncio.gather(*(bench.live() for _ in range(8)))
    assert {index.info.name for index in indexes} == {bench.name()}


# An alias that is not what it must be.


async def test_an_alias_that_points_to_two_indexes_is_refused(bench: Bench) -> None:
    await bench.live()
    await bench.generation(2)
    await bench.move_alias(("add", bench.name(2)))
    for look in (bench.indexes.now(bench.site), bench.pages.still_live(bench.pages.at(await bench.generation(2)))):
        with pytest.raises(IndexUnfit, match=f"points to 2 indexes: {bench.name(1)}, {bench.name(2)}"):
            await look
    with pytest.raises(IndexUnfit, match="points to 2 indexes"):
        await bench.elastic.search.candidates(
            bench.site, "one", None, floors=Floors(0, 0), content_hits=1, keyword_hits=1
        )


async def test_an_alias_that_points_nowhere_is_explained(bench: Bench, engine: Servers) -> None:
    await bench.live()
    await bench.generation(2)
    await bench.move_alias(("remove", bench.name(1)))
    async with Elastic(engine.elasticsearch, Settings()) as worker:
        nowhere = f"its alias {alias(bench.site)} points nowhere"
        missing = f"{bench.name(1)}, {bench.name(2)}, but {nowhere}.*pagewire index rebuild"
        with pytest.raises(IndexUnfit, match=missing):
            await worker.pages.live(bench.site, embedder="fake", model="fake-4", dims=DIMS, chunker=CHUNKER)
        with pytest.raises(IndexUnfit, match=missing):
            await worker.search.candidates(bench.site, "one", None, floors=Floors(0, 0), content_hits=1, keyword_hits=1)
    assert not await bench.exists(bench.name(3))


async def test_an_index_of_a_newer_version_is_left_alone(bench: Bench) -> None:
    index = await bench.live()
    mapping = await bench.elastic.es.indices.get_mapping(index=bench.name())
    meta = mapping[bench.name()]["mappings"]["_meta"] | {"format": 99}
    await bench.elastic.es.indices.put_mapping(index=bench.name(), meta=meta)
    with pytest.raises(IndexUnfit, match=rf"{bench.name()} was written by a newer version \(format 99.*update"):
        await bench.indexes.now(bench.site)
    with pytest.raises(IndexUnfit, match="newer version"):
        await bench.pages.still_live(index)


async def test_an_index_of_somebody_else_is_not_taken_for_ours(bench: Bench) -> None:
    await bench.elastic.es.indices.create(index=bench.name(), aliases={alias(bench.site): {}})
    with pytest.raises(IndexUnfit, match=f"{bench.name()} does not say what it holds.*not made by Pagewire"):
        await bench.live()


async def test_an_index_under_the_name_of_the_alias_is_not_taken_for_ours(bench: Bench) -> None:
    await bench.elastic.es.indices.create(index=alias(bench.site))
    with pytest.raises(IndexUnfit, match="not made by Pagewire"):
        await bench.live()


async def test_a_chunker_nobody_knows_any_more_is_refused_where_it_is_needed(bench: Bench) -> None:
    await bench.indexes.create(bench.site, 1, "fake", "fake-4", DIMS, "by-moonlight", live=True)
    info = await bench.indexes.now(bench.site)
    assert info is not None
    with pytest.raises(IndexUnfit, match="by-moonlight"):
        _ = info.cut


# A promotion.


async def test_a_promotion_is_seen_at_once_by_who_looks_now(bench: Bench, engine: Servers) -> None:
    async with Elastic(engine.elasticsearch, Settings()) as operator:
        old = await bench.live()
        new = await bench.generation(2)
        assert await bench.pages.still_live(old)
        await operator.indexes.swap(bench.site, new)
        assert not await bench.pages.still_live(old)
        assert (await bench.live()).info.name == new.name


async def test_a_held_index_is_live_but_not_for_long(bench: Bench) -> None:
    old = await bench.live()
    await bench.indexes.hold(old.info, seconds=60)
    assert not await bench.pages.still_live(old)
    held = await bench.indexes.now(bench.site)
    assert held is not None
    assert held.held
    assert held.held_until is not None
    assert 30 < (held.held_until - datetime.now(UTC)).total_seconds() <= 60
    await bench.indexes.release(held)
    assert await bench.pages.still_live(old)


async def test_a_hold_ends_by_itself_should_the_promotion_die(bench: Bench) -> None:
    old = await bench.live()
    await bench.indexes.hold(old.info, seconds=-0.001)
    assert await bench.pages.still_live(old)


async def test_a_write_lands_in_the_index_it_was_made_for_whatever_is_live(bench: Bench) -> None:
    old = await bench.live()
    new = bench.pages.at(await bench.generation(2))
    await bench.indexes.swap(bench.site, new.info)
    await bench.write(old, 1, "late")
    key = change(1, site=bench.site).page_key
    assert set(await old.heads([key])) == {key}
    assert await new.heads([key]) == {}


async def test_the_index_stage_does_its_work_again_in_the_index_that_was_promoted_meanwhile(
    bench: Bench, engine: Servers
) -> None:
    old = await bench.live()
    new = await bench.generation(2)
    [part] = parts_of(change(1, site=bench.site), {"content": ["one"]})
    async with Elastic(engine.elasticsearch, Settings()) as operator:
        await operator.indexes.hold(old.info, seconds=60)
        with pytest.raises(IndexReplaced):
            await index_part(part, bench.pages, lambda: NOON)
        await operator.indexes.searchable(new)
        await operator.indexes.swap(bench.site, new)
    with pytest.raises(IndexReplaced):  # what it knew is less than two seconds old
        await index_part(part, bench.pages, lambda: NOON)
    outcome = await index_part(part, bench.pages, lambda: NOON)
    assert outcome.receipt is not None
    assert outcome.receipt.state == "searchable"
    key = part.change.page_key
    assert set(await bench.pages.at(new).heads([key])) == {key}


async def test_an_index_that_is_live_is_not_deleted_by_mistake(bench: Bench) -> None:
    index = await bench.live()
    spare = await bench.generation(2)
    with pytest.raises(IndexUnfit, match="is live"):
        await bench.indexes.discard(index.info)
    await bench.indexes.discard(spare)
    assert await bench.exists(bench.name(1))
    assert not await bench.exists(bench.name(2))


# What the model made once.


async def test_vectors_are_known_across_the_generations_of_a_site_but_never_across_sites(bench: Bench) -> None:
    hall = f"{bench.site}-hall"
    await bench.save(1, "first")
    await bench.write(bench.pages.at(await bench.generation(2)), 1, "second")
    await bench.save(1, "third", site=hall)
    names = ["first/fake-4", "second/fake-4", "third/fake-4"]
    assert set(await bench.pages.vectors(bench.site, names)) == set(names[:2])
    assert set(await bench.pages.vectors(hall, names)) == {names[2]}
    assert [info.name for info in await bench.indexes.generations(bench.site)] == [bench.name(1), bench.name(2)]


async def test_a_site_never_indexed_knows_no_vectors(bench: Bench) -> None:
    assert await bench.pages.vectors(bench.site, ["first/fake-4"]) == {}
