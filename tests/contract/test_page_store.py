"""What the index stage relies on, the same for the real Elasticsearch and its in-memory sibling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import PARTS, RECEIPTS
from adapters.elastic.parts import WaitingParts
from pipelines.ingest.ports import HeadConflict, PartGone, PartPosition
from schemas.head import Head
from schemas.ingest import ChunkUnit, PageEmbeddings, ReceiptEvent
from schemas.page import ChangeRef, Op
from tests.engine_fixture import Servers
from tests.fakes.pages import FakeIndex, FakePages
from tests.making import DIMS, NOON, change, parts_of
from tests.site_indexes import KINDS, forget
from wiring.settings import Settings, SiteSettings

MADE_FOR = {"embedder": "fake", "model": "fake-4", "dims": DIMS, "chunker": "content-1000-20"}


@dataclass
class Bench:
    """A site with a live index."""

    site: str
    pages: Any  # FakePages or adapters.elastic.pages.ElasticPages
    index: Any  # FakeIndex or adapters.elastic.pages.PageIndex

    def change(self, revision: int, op: Op = "upsert") -> ChangeRef:
        return change(revision, op, site=self.site)

    async def write(self, ref: ChangeRef, *texts: str) -> bool:
        """With a head, in place of the one that is there."""
        [part] = parts_of(ref, {"content": list(texts)})
        there = (await self.index.heads([ref.page_key])).get(ref.page_key)
        token = there.token if there else None
        return bool(await self.index.write(part, head(ref, content=len(texts)).model_copy(update={"token": token})))

    async def head(self, page_key: str) -> Head:
        return (await self.index.heads([page_key]))[page_key]  # type: ignore[no-any-return]

    async def groups(self, page_key: str) -> set[tuple[str, ...] | None]:
        """Who may find the page's chunks."""
        if isinstance(self.index, FakeIndex):
            return self.index.groups(page_key)
        query = {"bool": {"filter": [{"term": {"page_key": page_key}}, {"term": {"kind": "chunk"}}]}}
        answer = await self.index._es.search(index=self.index.info.name, query=query)
        seen = [hit["_source"].get("groups") for hit in answer["hits"]["hits"]]
        return {None if groups is None else tuple(groups) for groups in seen}

    async def found(self, *texts: str) -> set[str]:
        """Which of the texts can be found."""
        await self.index.refresh()
        known = await self.pages.vectors(self.site, [f"{text}/fake-4" for text in texts])
        return {name.removesuffix("/fake-4") for name in known}


@pytest.fixture
def model() -> str:
    """Fingerprint of the bench's model; a test may be for another one."""
    return "fake-4"


@pytest.fixture(params=["fake", *(pytest.param(kind, marks=pytest.mark.engine) for kind in KINDS)])
async def bench(request: pytest.FixtureRequest, model: str) -> AsyncIterator[Bench]:
    site = f"t{uuid4().hex[:12]}"
    if request.param == "fake":
        pages = FakePages()
        yield Bench(site, pages, await pages.live(site, embedder="fake", model=model, dims=DIMS, chunker="c"))
        return
    engine: Servers = request.getfixturevalue("engine")
    settings = Settings(sites={site: SiteSettings(index=request.param)}, elasticsearch=engine.elasticsearch)
    async with Elastic(engine.elasticsearch, settings) as elastic:
        await elastic.indexes.ensure_system(RECEIPTS)
        made_for: dict[str, Any] = MADE_FOR | {"model": model}
        yield Bench(site, elastic.pages, await elastic.pages.live(site, **made_for))
        await forget(elastic, site)


def with_units(part: PageEmbeddings) -> PageEmbeddings:
    """Each chunk of the content is one unit."""
    chunks = [
        chunk.model_copy(
            update={
                "units": (ChunkUnit(start=n, text=chunk.text, kind="item", headings=("Fees", "Cards"), block=3),),
                "unit_vectors": bytes((n, 0, 127, 255)),
            }
        )
        if chunk.field == "content"
        else chunk
        for n, chunk in enumerate(part.chunks)
    ]
    return part.model_copy(update={"chunks": tuple(chunks)})


def head(ref: ChangeRef, **counts: int) -> Head:
    return Head(change=ref, state="deleted" if ref.op == "delete" else "live", counts=counts, settled_at=NOON)


async def test_the_live_index_stays_what_it_was_made_for(bench: Bench) -> None:
    again = await bench.pages.live(bench.site, embedder="x", model="later", dims=8, chunker="d")
    assert (again.model, again.chunker) == ("fake-4", "content-1000-20")
    assert await bench.pages.still_live(again)


async def test_a_written_head_can_be_read_at_once(bench: Bench) -> None:
    ref = bench.change(3)
    assert await bench.write(ref, "one")
    found = await bench.index.heads([ref.page_key, "town:en:other"])
    assert found == await bench.pages.heads(bench.site, [ref.page_key])
    assert list(found) == [ref.page_key]
    assert found[ref.page_key].token is not None
    assert found[ref.page_key].model_copy(update={"token": None}) == head(ref, content=1)


async def test_a_head_takes_the_place_only_of_the_one_its_writer_has_seen(bench: Bench) -> None:
    ref = bench.change(3)
    nothing = parts_of(ref, {})[0]
    assert await bench.index.write(nothing, head(ref))
    seen = await bench.head(ref.page_key)
    with pytest.raises(HeadConflict):
        await bench.index.write(nothing, head(bench.change(4)))  # it was to be the first
    assert await bench.index.write(nothing, head(ref, content=1).model_copy(update={"token": seen.token}))
    late = head(bench.change(5)).model_copy(update={"token": seen.token})
    with pytest.raises(HeadConflict):
        await bench.index.write(nothing, late)
    assert (await bench.head(ref.page_key)).counts == {"content": 1}


async def test_an_older_revision_is_refused_and_the_same_is_not(bench: Bench) -> None:
    assert await bench.write(bench.change(5), "five")
    assert not await bench.write(bench.change(4), "four")
    assert await bench.write(bench.change(5), "five again")
    assert await bench.found("five", "four", "five again") == {"five again"}


async def test_an_older_revision_is_refused_in_part_where_a_newer_one_has_begun(bench: Bench) -> None:
    newer, _ = parts_of(bench.change(5), {"content": ["a", "b"]}, per_part=1)
    assert await bench.index.write(newer, None)
    assert not await bench.write(bench.change(4), "old", "beside")
    assert await bench.found("a", "old", "beside") == {"a", "beside"}
    key = bench.change(4).page_key
    assert (await bench.index.heads([key]))[key].change.revision == 4


async def test_known_vectors_come_back_as_they_were(bench: Bench) -> None:
    [part] = parts_of(bench.change(1), {"content": ["one", "two"]})
    await bench.index.write(part, None)
    await bench.index.refresh()
    known = await bench.pages.vectors(bench.site, ["one/fake-4", "nothing/fake-4"])
    assert list(known) == ["one/fake-4"]
    np.testing.assert_allclose(known["one/fake-4"].vector, part.chunks[0].vector, rtol=1e-6)
    assert known["one/fake-4"].sparse == {}


@pytest.mark.parametrize("model", ["fake-4+sparse"])
async def test_known_sparse_vectors_come_back_and_stay_for_other_groups(bench: Bench, model: str) -> None:
    [part] = parts_of(bench.change(1), {"content": ["one", "none"]}, model=model)
    one, none = part.chunks
    weights = {str(token): 1 / token for token in range(2, 200)}
    await bench.index.write(
        part.model_copy(update={"chunks": (one.model_copy(update={"sparse": weights}), none)}), None
    )
    await bench.index.refresh()
    for _ in range(2):
        known = await bench.pages.vectors(bench.site, [one.embed_hash, none.embed_hash])
        assert known[one.embed_hash].sparse == pytest.approx(weights, rel=1 / 256)  # eight bits are kept
        assert known[none.embed_hash].sparse == {}
        np.testing.assert_allclose(known[one.embed_hash].vector, one.vector, rtol=1e-6)
        assert await bench.index.regroup(head(part.change, content=2), bench.change(2), ("staff",))
        await bench.index.refresh()


async def test_known_units_come_back_as_they_were(bench: Bench) -> None:
    part = with_units(*parts_of(bench.change(1), {"title": ["Fees"], "content": ["One.", "Two.", "Three."]}))
    await bench.index.write(part, None)
    await bench.index.refresh()
    found = await bench.pages.units(bench.site, part.change.page_key, "fake-4")
    kept = {unit.text: (each.title, unit, each.vectors) for each in found for unit in each.units}
    assert kept == {
        chunk.text: ("Fees", chunk.units[0], chunk.unit_vectors) for chunk in part.chunks if chunk.field == "content"
    }
    assert not await bench.pages.units(bench.site, part.change.page_key, "another model")
    assert not await bench.pages.units(bench.site, change(page_id="other", site=bench.site).page_key, "fake-4")


async def test_remove_takes_only_what_is_not_newer(bench: Bench) -> None:
    await bench.write(bench.change(2), "a", "b", "c")
    await bench.index.remove(bench.change(1), [("content", 0)])
    await bench.index.remove(bench.change(2), [("content", 1), ("content", 9)])
    assert await bench.found("a", "b", "c") == {"a", "c"}


async def test_what_was_removed_is_not_written_again_by_an_older_revision(bench: Bench) -> None:
    await bench.write(bench.change(2), "a", "b")
    await bench.index.remove(bench.change(3), [("content", 1)])
    assert not await bench.write(bench.change(2), "a", "b")
    assert await bench.found("a", "b") == {"a"}


async def test_parts_put_aside_wait_where_no_search_looks(bench: Bench) -> None:
    first, middle, last = parts_of(bench.change(2), {"content": ["a", "b", "c"]}, per_part=1)
    assert await bench.index.kept(last) == {}
    await bench.index.keep(first, PartPosition(7, 1, (0, 3)))
    await bench.index.keep(middle, PartPosition(9, 1))
    await bench.index.keep(middle, PartPosition(8, 1))  # an older copy
    assert await bench.index.kept(last) == {0: PartPosition(7, 1, (0, 3)), 1: PartPosition(9, 1)}
    assert (await bench.index.take(last, 0)).encode() == first.encode()
    assert await bench.found("a", "b") == set()
    _, other, _ = parts_of(bench.change(3), {"content": ["a", "b", "c"]}, per_part=1)
    assert await bench.index.kept(other) == {}


@pytest.mark.engine
async def test_an_index_of_parts_that_was_deleted_is_made_again_as_it_was(engine: Servers) -> None:
    settings = Settings(sites={"town": SiteSettings()}, elasticsearch=engine.elasticsearch)
    first, last = parts_of(change(2, page_id=uuid4().hex), {"content": ["a", "b"]}, per_part=1)
    async with Elastic(engine.elasticsearch, settings) as elastic:
        waiting = WaitingParts(elastic.es, elastic.indexes, elastic.writer)
        await waiting.keep("some-index", first, PartPosition(1))
        await elastic.es.indices.delete(index=PARTS)
        await waiting.keep("some-index", first, PartPosition(1))
        assert await waiting.kept("some-index", last) == {0: PartPosition(1)}
        made = await elastic.es.indices.get_mapping(index=PARTS)
        assert made[PARTS]["mappings"]["dynamic"] == "strict"


async def test_parts_are_dropped_but_for_copies_that_came_since(bench: Bench) -> None:
    first, middle, last = parts_of(bench.change(2), {"content": ["a", "b", "c"]}, per_part=1)
    await bench.index.keep(first, PartPosition(7, 1))
    await bench.index.keep(middle, PartPosition(9, 1))
    await bench.index.drop(last, {0: PartPosition(7), 1: PartPosition(8), 2: PartPosition(10)})
    assert await bench.index.kept(last) == {1: PartPosition(9, 1)}
    with pytest.raises(PartGone):
        await bench.index.take(last, 0)


def of_groups(part: PageEmbeddings, groups: tuple[str, ...] | None) -> PageEmbeddings:
    assert part.meta
    return part.model_copy(update={"meta": part.meta.model_copy(update={"groups": groups})})


async def test_groups_are_taken_away_and_what_nobody_could_see_stays_so(bench: Bench) -> None:
    first, last = parts_of(bench.change(2), {"content": ["a", "b"]}, per_part=1)
    await bench.index.write(of_groups(first, None), None)
    await bench.index.write(of_groups(last, ("staff", "board")), None)
    assert await bench.index.regroup(head(first.change, content=2), None, ("board", "press"))
    await bench.index.refresh()
    assert await bench.groups(first.change.page_key) == {("board", "press"), ("board",)}
    assert await bench.index.regroup(head(first.change, content=2), None, ())
    await bench.index.refresh()
    assert {groups or ("",) for groups in await bench.groups(first.change.page_key)} == {("",)}
    assert await bench.found("a", "b") == {"a", "b"}
    assert await bench.write(bench.change(2), "a", "b")  # it is the same revision still


async def test_a_later_change_takes_over_chunks_with_other_groups(bench: Bench) -> None:
    [part] = parts_of(bench.change(2), {"content": ["a", "b"]})
    await bench.index.write(of_groups(part, ("staff",)), None)
    assert not await bench.index.regroup(head(part.change, content=3), bench.change(3), None)
    assert await bench.index.regroup(head(part.change, content=2), bench.change(3), None)
    await bench.index.refresh()
    assert await bench.groups(part.change.page_key) == {None}
    assert await bench.found("a", "b") == {"a", "b"}
    known = await bench.pages.vectors(bench.site, ["a/fake-4"])
    np.testing.assert_allclose(known["a/fake-4"].vector, part.chunks[0].vector, rtol=1e-6)
    assert not await bench.write(bench.change(2), "a", "b")  # a later change has them now


async def test_strays_are_chunks_up_to_the_revision(bench: Bench) -> None:
    await bench.write(bench.change(2), "a", "b")
    await bench.index.refresh()
    assert list(await bench.index.strays(bench.change(1))) == []
    assert sorted(await bench.index.strays(bench.change(2))) == [("content", 0), ("content", 1)]


async def test_the_newest_and_most_final_receipt_is_kept(bench: Bench) -> None:
    def event(revision: int, state: Any) -> ReceiptEvent:
        return ReceiptEvent(change=bench.change(revision), state=state, at=NOON)

    key = bench.change(1).page_key
    for given in (event(2, "queued"), event(2, "searchable"), event(2, "queued"), event(1, "failed")):
        await bench.pages.put_receipt(given)
    assert (await bench.pages.receipts([key]))[key].state == "searchable"
    await bench.pages.put_receipt(event(3, "queued"))
    assert (await bench.pages.receipts([key, "x:y:z"])) == {key: event(3, "queued")}


@pytest.mark.engine
async def test_an_index_of_receipts_that_was_deleted_is_made_again_as_it_was(engine: Servers) -> None:
    event = ReceiptEvent(change=change(2, page_id=uuid4().hex), state="searchable", at=NOON)
    settings = Settings(sites={"town": SiteSettings()}, elasticsearch=engine.elasticsearch)
    async with Elastic(engine.elasticsearch, settings) as elastic:
        await elastic.indexes.ensure_system(RECEIPTS)
        before = (await elastic.es.indices.get_mapping(index=RECEIPTS))[RECEIPTS]
        await elastic.es.indices.delete(index=RECEIPTS)
        await elastic.pages.put_receipt(event)
        assert await elastic.pages.receipts([event.change.page_key]) == {event.change.page_key: event}
        assert (await elastic.es.indices.get_mapping(index=RECEIPTS))[RECEIPTS] == before


@pytest.mark.engine
async def test_a_document_that_can_never_be_written_says_which(engine: Servers) -> None:
    from adapters.elastic.client import ElasticsearchRefused
    from adapters.elastic.writer import Write

    site = f"t{uuid4().hex[:12]}"
    settings = Settings(elasticsearch=engine.elasticsearch)
    async with Elastic(engine.elasticsearch, settings) as elastic:
        await elastic.indexes.ensure_system(RECEIPTS)
        fine = Write(RECEIPTS, f"{site}:fine", 1, {"site": site}, aliased=False)
        bad = Write(RECEIPTS, f"{site}:bad", 1, {"no_such_field": 1}, aliased=False)
        with pytest.raises(ElasticsearchRefused, match=f"{site}:bad"):
            await elastic.writer.write([fine, bad])
        # A neighbour in the same bulk is not harmed.
        assert [w.status for w in await elastic.writer.write([fine])] == [200]
