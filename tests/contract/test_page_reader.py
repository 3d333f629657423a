"""What coverage relies on when it reads pages, the same for the real Elasticsearch and for its in-memory sibling."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pytest

from adapters.elastic import page_vectors
from adapters.elastic.bundle import Elastic
from adapters.elastic.page_vectors import ElasticPageVectors
from adapters.fake_page_vectors import FakePageVectors
from pipelines.query.log.ports import PageReader, SitePage
from pipelines.runtime.embedder import Matrix32
from schemas.head import Head
from schemas.ingest import EmbeddedChunk, PageEmbeddings
from schemas.page import PageMeta
from tests.engine_fixture import Servers
from tests.making import NOON, change
from tests.site_indexes import KINDS, forget
from wiring.settings import Settings

DIMS = 256
MADE_FOR = {"embedder": "fake", "model": "fake", "dims": DIMS, "chunker": "c"}
# The sibling keeps what it is given, and knows one model.
REAL = pytest.mark.parametrize("site", [pytest.param(kind, marks=pytest.mark.engine) for kind in KINDS], indirect=True)
Save = Callable[[str, Matrix32, Sequence[str] | None], Awaitable[None]]


class Site(NamedTuple):
    """A site of its own, and who reads its pages."""

    name: str
    reader: PageReader
    save: Save


def chunks(seed: int, count: int) -> Matrix32:
    """As real ones are: quantising distorts vectors of few or mostly empty dimensions."""
    made = np.random.default_rng(seed).standard_normal((count, DIMS))
    unit: Matrix32 = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.fixture(params=["fake", *(pytest.param(kind, marks=pytest.mark.engine) for kind in KINDS)])
async def site(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    name = f"t{uuid4().hex[:12]}"
    if request.param == "fake":
        kept = FakePageVectors()

        async def put(id: str, vectors: Matrix32, groups: Sequence[str] | None) -> None:
            kept.put(name, SitePage(id, "en", id.title(), f"/{id}"), vectors, groups)

        yield Site(name, kept, put)
        return
    monkeypatch.setattr(page_vectors, "BATCH", 3)  # pages lie over the ends of batches
    engine: Servers = request.getfixturevalue("engine")
    async with Elastic(engine.elasticsearch, Settings(site_index=request.param)) as elastic:

        async def write(id: str, vectors: Matrix32, groups: Sequence[str] | None) -> None:
            ref = change(1, page_id=id, site=name)
            part = PageEmbeddings(
                change=ref,
                meta=PageMeta(title=id.title(), url=f"/{id}", groups=None if groups is None else tuple(groups)),
                part=0,
                parts=1,
                chunks=[
                    EmbeddedChunk(
                        field="content" if ord else "name",
                        ord=max(ord - 1, 0),
                        text=f"{id} {ord}",
                        embed_hash=f"{id}/{ord}",
                        vector=vector,
                    )
                    for ord, vector in enumerate(vectors)
                ],
                **MADE_FOR,
            )
            index = await elastic.pages.live(name, **MADE_FOR)  # type: ignore[arg-type]
            assert await index.write(part, Head(change=ref, state="live", settled_at=NOON))
            await index.refresh()

        yield Site(name, ElasticPageVectors(elastic.es), write)
        await forget(elastic, name)


async def read(site: Site, groups: Sequence[str] | None = (), most: int = 100) -> tuple[list[str], int, bool]:
    found = await site.reader.vectors(site.name, "fake", DIMS, groups, most)
    assert found.vectors.shape == (len(found.pages), DIMS)
    return [page.page_id for page in found.pages], found.hidden, found.cut


async def test_a_page_is_the_middle_of_its_chunks(site: Site) -> None:
    assert await read(site) == ([], 0, False)  # before there is an index
    saved = {id: chunks(seed, count) for seed, (id, count) in enumerate({"pool": 4, "library": 2, "sauna": 1}.items())}
    for id, vectors in saved.items():
        await site.save(id, vectors, None)
    found = await site.reader.vectors(site.name, "fake", DIMS, (), 100)
    assert found.pages == tuple(SitePage(id, "en", id.title(), f"/{id}") for id in ("library", "pool", "sauna"))
    for page, vector in zip(found.pages, found.vectors, strict=True):
        middle = saved[page.page_id].sum(axis=0)
        assert float(vector @ (middle / np.linalg.norm(middle))) == pytest.approx(1, abs=1e-3)


async def test_pages_of_groups_are_read_by_those_who_have_one_of_them(site: Site) -> None:
    for seed, (id, groups) in enumerate({"pool": None, "board": ("staff", "board"), "nobody": ()}.items()):
        await site.save(id, chunks(seed, 2), groups)
    assert await read(site) == (["pool"], 2, False)
    assert await read(site, ["board", "press"]) == (["board", "pool"], 1, False)
    assert await read(site, None) == (["board", "nobody", "pool"], 0, False)


async def test_of_very_many_pages_the_first_are_read(site: Site) -> None:
    for seed, id in enumerate(("pool", "library", "sauna")):
        await site.save(id, chunks(seed, 2), None)
    assert await read(site, most=2) == (["library", "pool"], 0, True)
    assert await read(site, most=3) == (["library", "pool", "sauna"], 0, False)


@REAL
async def test_of_a_long_page_the_beginning_is_read(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_vectors, "FIRST_CHUNKS", 2)
    saved = chunks(1, 9)
    await site.save("pool", saved, None)
    [vector] = (await site.reader.vectors(site.name, "fake", DIMS, (), 9)).vectors
    middle = saved[:3].sum(axis=0)  # the name, and two of the content
    assert float(vector @ (middle / np.linalg.norm(middle))) == pytest.approx(1, abs=1e-3)


@REAL
async def test_vectors_of_another_model_are_no_pages(site: Site) -> None:
    await site.save("pool", chunks(1, 2), None)
    assert (await site.reader.vectors(site.name, "another", DIMS, (), 9)).pages == ()
