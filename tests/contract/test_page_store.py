"""What the index stage relies on, the same for the real Elasticsearch and its in-memory sibling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import RECEIPTS, alias
from adapters.fakes import FakePages
from pipelines.runtime.settings import Settings, SiteSettings
from schemas.head import Head
from schemas.ingest import ReceiptEvent
from schemas.page import ChangeRef
from tests.engine_fixture import Servers
from tests.making import DIMS, NOON, change, parts_of

Store = Any  # FakePages or adapters.elastic.pages.Pages


@pytest.fixture
def site() -> str:
    return f"t{uuid4().hex[:12]}"


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.engine)])
async def store(request: pytest.FixtureRequest, site: str) -> AsyncIterator[Store]:
    if request.param == "fake":
        pages = FakePages()
        await pages.ensure(site, embedder="fake", model="fake-4", dims=DIMS, chunker="c")
        yield pages
        return
    engine: Servers = request.getfixturevalue("engine")
    settings = Settings(sites={site: SiteSettings()}, elasticsearch=engine.elasticsearch)
    async with Elastic(engine.elasticsearch, settings) as elastic:
        await elastic.indexes.ensure_receipts()
        await elastic.pages.ensure(site, embedder="fake", model="fake-4", dims=DIMS, chunker="c")
        yield elastic.pages
        await elastic.es.indices.delete(index=f"{alias(site)}-000001")


def head(ref: ChangeRef, **counts: int) -> Head:
    return Head(change=ref, state="deleted" if ref.op == "delete" else "live", counts=counts, settled_at=NOON)


async def write(store: Store, ref: ChangeRef, *texts: str) -> bool:
    (part,) = parts_of(ref, {"content": list(texts)})
    return bool(await store.write(part, head(ref, content=len(texts))))


async def found(store: Store, site: str, *hashes: str) -> set[str]:
    await store.refresh(site)
    return set(await store.vectors(site, hashes))


async def test_ensure_answers_the_model_the_index_was_made_with(store: Store, site: str) -> None:
    assert await store.ensure(site, embedder="x", model="later", dims=8, chunker="d") == "fake-4"


async def test_a_written_head_can_be_read_at_once(store: Store, site: str) -> None:
    ref = change(3, site=site)
    assert await write(store, ref, "one")
    assert (await store.heads(site, [ref.page_key, "town:en:other"])) == {ref.page_key: head(ref, content=1)}


async def test_an_older_revision_is_refused_and_the_same_is_not(store: Store, site: str) -> None:
    assert await write(store, change(5, site=site), "five")
    assert not await write(store, change(4, site=site), "four")
    assert await write(store, change(5, site=site), "five again")
    assert await found(store, site, "five/fake-4", "four/fake-4", "five again/fake-4") == {"five again/fake-4"}


async def test_known_vectors_come_back_as_they_were(store: Store, site: str) -> None:
    (part,) = parts_of(change(1, site=site), {"content": ["one", "two"]})
    await store.write(part, None)
    await store.refresh(site)
    known = await store.vectors(site, ["one/fake-4", "nothing/fake-4"])
    assert list(known) == ["one/fake-4"]
    np.testing.assert_allclose(known["one/fake-4"], part.chunks[0].vector, rtol=1e-6)


async def test_remove_takes_only_what_is_not_newer(store: Store, site: str) -> None:
    await write(store, change(2, site=site), "a", "b", "c")
    await store.remove(change(1, site=site), [("content", 0)])
    await store.remove(change(2, site=site), [("content", 1), ("content", 9)])
    assert await found(store, site, "a/fake-4", "b/fake-4", "c/fake-4") == {"a/fake-4", "c/fake-4"}


async def test_strays_are_chunks_up_to_the_revision(store: Store, site: str) -> None:
    await write(store, change(2, site=site), "a", "b")
    await store.refresh(site)
    assert list(await store.strays(change(1, site=site))) == []
    assert sorted(await store.strays(change(2, site=site))) == [("content", 0), ("content", 1)]


async def test_the_newest_and_most_final_receipt_is_kept(store: Store, site: str) -> None:
    def event(revision: int, state: Any) -> ReceiptEvent:
        return ReceiptEvent(change=change(revision, site=site), state=state, at=NOON)

    key = change(1, site=site).page_key
    for given in (event(2, "queued"), event(2, "searchable"), event(2, "queued"), event(1, "failed")):
        await store.put_receipt(given)
    assert (await store.receipts([key]))[key].state == "searchable"
    await store.put_receipt(event(3, "queued"))
    assert (await store.receipts([key, "x:y:z"])) == {key: event(3, "queued")}


@pytest.mark.engine
async def test_a_document_that_can_never_be_written_says_which(site: str, engine: Servers) -> None:
    from adapters.elastic.client import ElasticsearchRefused
    from adapters.elastic.writer import Write

    settings = Settings(elasticsearch=engine.elasticsearch)
    async with Elastic(engine.elasticsearch, settings) as elastic:
        await elastic.indexes.ensure_receipts()
        fine = Write(RECEIPTS, f"{site}:fine", 1, {"site": site}, aliased=False)
        bad = Write(RECEIPTS, f"{site}:bad", 1, {"no_such_field": 1}, aliased=False)
        with pytest.raises(ElasticsearchRefused, match=f"{site}:bad"):
            await elastic.writer.write([fine, bad])
        # A neighbour in the same bulk is not harmed.
        assert [w.status for w in await elastic.writer.write([fine])] == [200]
