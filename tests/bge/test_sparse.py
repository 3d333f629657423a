"""bge-m3's sparse vectors through the real FlagEmbedding, torch and Elasticsearch, with a tiny model of random weights.

Which token weighs how much means nothing here. That shared tokens find a page is the real thing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from shutil import copytree
from uuid import uuid4

import numpy as np
import pytest
import pytest_asyncio

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import RECEIPTS
from adapters.embedders.bge_m3 import MOST_WEIGHTS, BgeM3Embedder, BgeM3SparseEmbedder
from adapters.embedders.registry import ModelMismatch, make_embedder, require_same
from pipelines.ingest.embed import Embedding
from pipelines.ingest.index import index_part
from pipelines.query.search.ports import Floors
from pipelines.query.search.search import Searcher
from pipelines.runtime.errors import Permanent
from schemas.ingest import Chunk, Chunker, PageChunks, SparseVector
from schemas.page import PageMeta
from tests.bge.test_bge_m3 import MIXED, ODD_TEXTS, WIDTH, make_weights
from tests.engine_fixture import Servers
from tests.making import NOON, change
from tests.site_indexes import forget
from wiring.settings import Settings, SiteSettings

pytestmark = [
    pytest.mark.bge,
    # Of the libraries, about themselves.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

POOL, TAX = "The pool opens at nine.", "Dog tax is due in February."


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("bge-m3-sparse"), seed=3)


@pytest_asyncio.fixture
async def embedder(weights: Path) -> AsyncIterator[BgeM3SparseEmbedder]:
    made = make_embedder("bge-m3-sparse", Settings(bge_model=str(weights)))
    assert isinstance(made, BgeM3SparseEmbedder)
    await made.start()
    try:
        yield made
    finally:
        await made.aclose()


def same(one: SparseVector, other: SparseVector) -> bool:
    """But for weights of next to nothing, which one of both may round away."""
    return all(abs(one.get(token, 0.0) - other.get(token, 0.0)) <= 2e-3 for token in one | other)


async def test_both_vectors_are_what_the_library_answers(embedder: BgeM3SparseEmbedder, weights: Path) -> None:
    from FlagEmbedding import BGEM3FlagModel

    texts = [*MIXED, POOL, TAX]
    model = BGEM3FlagModel(str(weights), use_fp16=False, devices="cpu")
    expected = model.encode(texts, batch_size=1, max_length=8192, return_sparse=True)
    dense, sparse = await embedder.passages_and_weights(texts)
    assert (dense * expected["dense_vecs"]).sum(axis=1).min() > 0.999
    assert any(len(own) > 3 for own in sparse)
    for own, theirs in zip(sparse, expected["lexical_weights"], strict=True):
        assert same(own, {token: float(weight) for token, weight in theirs.items()})


async def test_several_texts_a_call_and_half_precision_answer_alike(embedder: BgeM3SparseEmbedder) -> None:
    dense, sparse = await embedder.passages_and_weights(MIXED)
    embedder._model.call_tokens = 3_000  # with padding, as on a GPU
    embedder._model._model.half()
    half, halves = await embedder.passages_and_weights(MIXED)
    assert (half * dense).sum(axis=1).min() > 0.999
    assert all(map(same, halves, sparse))


async def test_questions_and_pages_are_embedded_alike(embedder: BgeM3SparseEmbedder) -> None:
    vector, sparse = await embedder.query_and_weights(POOL)
    dense, [own] = await embedder.passages_and_weights([POOL])
    np.testing.assert_allclose(vector, dense[0], atol=1e-3)
    np.testing.assert_allclose(vector, await embedder.query(POOL), atol=1e-3)
    assert same(sparse, own)


async def test_any_text_has_a_bounded_sparse_vector(embedder: BgeM3SparseEmbedder) -> None:
    dense, sparse = await embedder.passages_and_weights([*ODD_TEXTS, " ".join(map(str, range(5_000)))])
    assert np.isfinite(dense).all()
    assert sparse[0] == {}
    assert max(map(len, sparse)) <= MOST_WEIGHTS
    empty, nothing = await embedder.passages_and_weights([])
    assert (empty.shape, nothing) == ((0, WIDTH), [])


async def test_an_index_of_the_same_weights_without_sparse_vectors_is_another_ones(weights: Path) -> None:
    plain, sparse = BgeM3Embedder(str(weights)), BgeM3SparseEmbedder(str(weights))
    assert sparse.fingerprint.startswith(plain.fingerprint)
    assert sparse.fingerprint != plain.fingerprint


async def test_weights_without_those_of_sparse_vectors_are_refused(weights: Path, tmp_path: Path) -> None:
    # FlagEmbedding would make random ones.
    copytree(weights, tmp_path, dirs_exist_ok=True)
    (tmp_path / "sparse_linear.pt").unlink()
    model = BgeM3SparseEmbedder(str(tmp_path))
    with pytest.raises(Permanent, match=r"not complete: no sparse_linear\.pt"):
        await model.start()
    await model.aclose()


class OneModel:
    """The embedder of every site."""

    def __init__(self, model: BgeM3SparseEmbedder) -> None:
        self.model = model

    async def for_site(self, site: str) -> BgeM3SparseEmbedder:
        return self.model

    for_new = for_site


@pytest.mark.engine
async def test_shared_tokens_alone_find_the_right_chunk(embedder: BgeM3SparseEmbedder, engine: Servers) -> None:
    site = f"t{uuid4().hex[:12]}"
    settings = Settings(sites={site: SiteSettings()}, elasticsearch=engine.elasticsearch)
    async with Elastic(engine.elasticsearch, settings) as elastic:
        await elastic.indexes.ensure_system(RECEIPTS)
        models = OneModel(embedder)
        page = PageChunks(
            change=change(1, site=site),
            meta=PageMeta(title="Town", url="/town"),
            chunker=Chunker(mode="content", size=1000, overlap=0.0),
            chunks=tuple(Chunk(field="content", ord=ord, text=text) for ord, text in enumerate((POOL, TAX))),
        )
        for part in await Embedding(models, elastic.pages).embed(page):  # type: ignore[arg-type]
            await index_part(part, elastic.pages, lambda: NOON)
        own = [await embedder.query_and_weights(text) for text in (POOL, TAX)]
        for ord, (_, sparse) in enumerate(own):
            rare = {token: weight for token, weight in sparse.items() if token not in own[1 - ord][1]}
            assert rare
            found = await elastic.search.candidates(
                site, "", None, floors=Floors(0, 0), content_hits=2, keyword_hits=2, sparse=rare
            )
            assert [each.ord for each in found.keyword] == [ord]
        searcher = Searcher(elastic.search, models, settings)
        found_by_both = await searcher.find(site, TAX, kind="hybrid", size=2)
        assert found_by_both.hits[0].text == TAX
        product = sum(weight**2 for weight in own[1][1].values())
        assert found_by_both.hits[0].bm25 == pytest.approx(product, rel=0.01)
        live = await elastic.indexes.now(site)
        assert live is not None
        with pytest.raises(ModelMismatch, match="rebuild"):
            require_same(BgeM3Embedder(embedder._name), live)
        await forget(elastic, site)
