"""Which searches ask by sparse vectors, and which by BM25."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipelines.query.search.ports import Candidates
from pipelines.query.search.search import Searcher
from schemas.ingest import Vector32
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.sparse_embedder import FakeSparseEmbedder, token
from wiring.settings import Settings, SiteSettings

ASKED = "lending fee"
TOKENS = {token("lending"): 0.7, token("fee"): 0.3}


class Asked:
    """An index that finds nothing, and the embedder of its site. Keeps how it was asked."""

    def __init__(self, model: FakeEmbedder) -> None:
        self.model = model
        self.vector: Vector32 | None = None
        self.how: dict[str, Any] = {}

    async def for_site(self, site: str) -> FakeEmbedder:
        return self.model

    async def candidates(self, site: str, text: str, vector: Vector32 | None, **how: Any) -> Candidates:
        self.vector, self.how = vector, how
        return Candidates([], [], [], 0)


def searcher(asked: Asked) -> Searcher:
    return Searcher(asked, asked, Settings(sites={"town": SiteSettings()}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "by_words", "tokens"),
    [("hybrid", False, TOKENS), ("hybrid", True, None), ("keyword", False, None), ("vector", False, None)],
)
async def test_sparse_vectors_take_the_place_of_bm25_in_the_hybrid_search_alone(
    kind: Any, by_words: bool, tokens: dict[str, float] | None
) -> None:
    asked = Asked(FakeSparseEmbedder())
    await searcher(asked).find("town", ASKED, kind=kind, size=5, by_words=by_words)
    assert asked.how["sparse"] == tokens
    assert asked.model.asked == ([] if kind == "keyword" else [ASKED])  # both vectors by one call


async def test_an_embedder_without_sparse_vectors_is_searched_by_bm25() -> None:
    asked = Asked(FakeEmbedder())
    await searcher(asked).find("town", ASKED, kind="hybrid", size=5)
    assert asked.how["sparse"] is None
    assert asked.how["keyword_hits"] > 0


async def test_a_known_vector_brings_its_sparse_one_from_the_cache() -> None:
    asked = Asked(FakeSparseEmbedder())
    search = searcher(asked)
    _, vector = await search.embedded("town", ASKED)
    await search.pages("town", ASKED, kind="hybrid", size=5, vector=vector)
    assert asked.how["sparse"] == TOKENS
    assert asked.vector is not None
    np.testing.assert_array_equal(asked.vector, vector)
    assert asked.model.asked == [ASKED]
