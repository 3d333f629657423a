"""Sparse vectors in the place of BM25, on the real Elasticsearch: from a page's chunks to what a search finds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from elasticsearch import BadRequestError

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import FORMAT, RECEIPTS
from pipelines.ingest.embed import Embedding
from pipelines.ingest.index import index_part
from pipelines.query.search.ports import Candidate, Floors
from pipelines.query.search.search import Searcher
from schemas.ingest import Chunk, Chunker, PageChunks, SparseVector
from schemas.page import PageMeta
from tests.engine_fixture import Servers
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.sparse_embedder import FakeSparseEmbedder, token
from tests.making import NOON, change
from tests.site_indexes import KINDS, forget
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

CHUNKER = Chunker(mode="content", size=1000, overlap=0.0)
PAGES = {"pool": "The pool opens at nine.", "library": "A lending card costs ten euros.", "tax": "Dog tax is due."}
EXACT = 1 / 256  # of a weight: eight bits of it are kept


class Bench:
    """A site whose embedder has sparse vectors. Implements `Embedders`."""

    def __init__(self, elastic: Elastic, settings: Settings, site: str) -> None:
        self.elastic = elastic
        self.site = site
        self.model: FakeEmbedder = FakeSparseEmbedder()
        self.embedding = Embedding(self, elastic.pages)  # type: ignore[arg-type]
        self.searcher = Searcher(elastic.search, self, settings)

    async def for_site(self, site: str) -> FakeEmbedder:
        return self.model

    for_new = for_site

    async def save(self, page_id: str, text: str, groups: tuple[str, ...] | None = None, revision: int = 1) -> None:
        page = PageChunks(
            change=change(revision, page_id=page_id, site=self.site),
            meta=PageMeta(title="", url=f"/{page_id}", groups=groups),
            chunker=CHUNKER,
            chunks=(Chunk(field="content", ord=0, text=text),),
        )
        for part in await self.embedding.embed(page):
            await index_part(part, self.elastic.pages, lambda: NOON)

    async def by_tokens(
        self, sparse: SparseVector | None, text: str = "", groups: tuple[str, ...] = ()
    ) -> list[Candidate]:
        found = await self.elastic.search.candidates(
            self.site, text, None, floors=Floors(0, 0), content_hits=5, keyword_hits=5, sparse=sparse, groups=groups
        )
        return found.keyword


@pytest.fixture(params=KINDS)
async def bench(request: pytest.FixtureRequest, engine: Servers) -> AsyncIterator[Bench]:
    site = f"t{uuid4().hex[:12]}"
    settings = Settings(sites={site: SiteSettings(index=request.param)}, elasticsearch=engine.elasticsearch)
    async with Elastic(engine.elasticsearch, settings) as elastic:
        await elastic.indexes.ensure_system(RECEIPTS)
        yield Bench(elastic, settings, site)
        await forget(elastic, site)


def page_of(found: Candidate) -> str:
    return found.page_key.rpartition(":")[2]


async def test_a_search_by_shared_tokens_alone_finds_the_page(bench: Bench) -> None:
    for page_id, text in PAGES.items():
        await bench.save(page_id, text)
    [first] = await bench.by_tokens({token("lending"): 0.7, token("euros"): 0.2, token("zoo"): 1.0})
    assert page_of(first) == "library"
    assert first.bm25 == pytest.approx(0.7 * 0.7 + 0.5 * 0.2, rel=EXACT)  # the product of both
    assert await bench.by_tokens({}, "lending card") == []
    assert await bench.by_tokens({token("zoo"): 1.0}, "lending card") == []
    assert [page_of(each) for each in await bench.by_tokens(None, "lending card")] == ["library"]  # BM25 stays there


async def test_a_hybrid_search_has_both_vectors(bench: Bench) -> None:
    for page_id, text in PAGES.items():
        await bench.save(page_id, text)
    found = await bench.searcher.find(bench.site, "lending card", kind="hybrid", size=3)
    assert found.hits[0].page_id == "library"
    assert found.hits[0].bm25 == pytest.approx(0.7**2 + 0.4**2, rel=EXACT)
    assert dict(found.candidates.terms)["card"] == 1


async def test_no_token_shows_a_page_to_those_who_may_not_see_it(bench: Bench) -> None:
    await bench.save("pay", "Wages of the lending desk.", groups=("staff",))
    await bench.save("library", PAGES["library"])
    lending = {token("lending"): 1.0}
    assert {page_of(each) for each in await bench.by_tokens(lending)} == {"library"}
    assert {page_of(each) for each in await bench.by_tokens(lending, groups=("staff",))} == {"library", "pay"}


async def test_weights_are_known_again_and_stay_when_others_may_see_the_page(bench: Bench) -> None:
    await bench.save("library", PAGES["library"])
    lending = {token("lending"): 1.0}
    [before] = await bench.by_tokens(lending)
    bench.embedding, bench.model = Embedding(bench, bench.elastic.pages), FakeSparseEmbedder()  # type: ignore[arg-type]
    await bench.save("library", PAGES["library"], groups=("staff",), revision=2)
    assert bench.model.embedded == []
    assert await bench.by_tokens(lending) == []
    [after] = await bench.by_tokens(lending, groups=("staff",))
    index = await bench.elastic.pages.there(bench.site)
    assert index is not None
    [head] = (await index.heads([after.page_key])).values()
    assert await index.regroup(head, head.change.model_copy(update={"revision": 3}), None)
    await index.refresh()
    [everybody] = await bench.by_tokens(lending)
    assert before.bm25 == after.bm25 == everybody.bm25


async def test_only_an_index_of_such_an_embedder_has_the_field(bench: Bench) -> None:
    await bench.save("library", PAGES["library"])
    es, live = bench.elastic.es, await bench.elastic.indexes.now(bench.site)
    assert live is not None
    found = (await es.indices.get_mapping(index=live.concrete))[live.concrete]["mappings"]
    assert found["properties"]["sparse"]["type"] == "sparse_vector"
    assert found["_meta"]["format"] == FORMAT  # earlier versions refuse it: they would write no sparse vectors
    await bench.elastic.indexes.create(bench.site, 2, "fake", "fake-1-64", 64, CHUNKER.fingerprint)
    other = f"pagewire-{bench.site}-000002"
    plain = (await es.indices.get_mapping(index=other))[other]["mappings"]
    assert "sparse" not in plain["properties"]
    assert plain["_meta"]["format"] < FORMAT
    with pytest.raises(BadRequestError, match="strict"):
        await es.index(index=other, document={"sparse": {"7": 0.5}})
