"""Visitors search while another index becomes live: every answer is from one index, asked in its own model's words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.embedders.base import Vectors
from pipelines.query.ports import NoTrialIndex
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.ports import Candidates, Floors, QueryModelOutdated
from pipelines.query.search.search import Searcher
from pipelines.runtime.indexes import IndexInfo, alias
from schemas.head import Head
from schemas.ingest import EmbeddedChunk, PageEmbeddings
from schemas.page import PageMeta
from schemas.query import Rephrased
from tests.asking import question
from tests.engine_fixture import Servers
from tests.fakes.embedder import FakeEmbedder
from tests.making import NOON, change
from tests.site_indexes import KINDS, forget
from wiring.index_search import SiteIndexes
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

CHUNKER = "fixed-20-0"
OLD = FakeEmbedder(dims=64, version="1")
SAME_LENGTH = FakeEmbedder(dims=64, version="2")
OTHER_LENGTH = FakeEmbedder(dims=96, version="3")


class Bench:
    """A visitors' process that knows the old index, and an operator's process that promotes."""

    def __init__(self, elastic: Elastic, operator: Elastic, site: str) -> None:
        self.site = site
        self.elastic = elastic
        self.operator = operator
        self.models = {model.fingerprint: model for model in (OLD, SAME_LENGTH, OTHER_LENGTH)}
        self.settings = Settings(sites={site: SiteSettings()}, hits=5, neighbours=1)
        self.searcher = Searcher(elastic.search, self, self.settings)

    async def for_site(self, site: str) -> FakeEmbedder:
        live = await self.elastic.indexes.live(site)
        assert live is not None
        return self.models[live.model]

    async def generation(self, number: int, model: FakeEmbedder, word: str) -> IndexInfo:
        """An index whose one page says `word` in each of its chunks."""
        indexes = self.operator.indexes
        made = ("fake", model.fingerprint, model.dims, CHUNKER)
        await indexes.create(self.site, number, *made, live=number == 1, shared=indexes.shares(self.site))
        info = next(info for info in await indexes.generations(self.site) if info.generation == number)
        texts = [f"{word} pool hours {n}. " for n in range(4)]
        chunks = [
            EmbeddedChunk(field="content", ord=ord, text=text, embed_hash=f"{word}/{ord}", vector=vector)
            for ord, (text, vector) in enumerate(zip(texts, await model.passages(texts), strict=True))
        ]
        part = PageEmbeddings(
            change=change(1, page_id="pool", site=self.site),
            meta=PageMeta(title="Pool", url="/pool"),
            chunker=CHUNKER,
            embedder="fake",
            model=model.fingerprint,
            dims=model.dims,
            part=0,
            parts=1,
            chunks=chunks,
        )
        head = Head(change=part.change, state="live", settled_at=NOON)
        assert await self.operator.pages.at(info).write(part, head)
        await indexes.searchable(info)
        return info

    async def words(self, kind: Any) -> set[str]:
        """The words of the indexes that the hits are from."""
        hits = await self.searcher.hits(self.site, "pool hours", kind=kind, size=10)
        assert len(hits) == 4
        return {hit.text.split()[0] for hit in hits}

    async def candidates(self, model: FakeEmbedder) -> Candidates:
        return await self.elastic.search.candidates(
            self.site,
            "pool hours",
            await model.query("pool hours"),
            model=model.fingerprint,
            floors=Floors(-1.0, -1.0),
            content_hits=5,
            keyword_hits=5,
        )


class Named:
    """One model, whatever it is called."""

    def __init__(self, model: FakeEmbedder) -> None:
        self._model = model

    async def by_name(self, spec: str) -> FakeEmbedder:
        return self._model


@pytest.fixture(params=KINDS)
async def bench(request: pytest.FixtureRequest, engine: Servers) -> AsyncIterator[Bench]:
    settings, site = Settings(site_index=request.param), f"t{uuid4().hex[:12]}"
    async with Elastic(engine.elasticsearch, settings) as elastic, Elastic(engine.elasticsearch, settings) as operator:
        yield Bench(elastic, operator, site)
        await forget(operator, site)


@pytest.fixture(params=[SAME_LENGTH, OTHER_LENGTH, OLD], ids=["same length", "other length", "same model"])
def model(request: pytest.FixtureRequest) -> FakeEmbedder:
    """Of the index that is promoted."""
    assert isinstance(request.param, FakeEmbedder)
    return request.param


@pytest.mark.parametrize("kind", ["hybrid", "vector", "keyword"])
async def test_the_first_search_after_a_promotion_is_in_the_new_index_and_its_model(
    bench: Bench, model: FakeEmbedder, kind: Any
) -> None:
    await bench.generation(1, OLD, "old")
    new = await bench.generation(2, model, "new")
    assert await bench.words(kind) == {"old"}
    await bench.operator.indexes.swap(bench.site, new)
    asked = len(model.asked)
    assert await bench.words(kind) == {"new"}
    # The vector of the question by the same model is kept from the search before.
    assert len(model.asked) - asked == (0 if kind == "keyword" or model is OLD else 1)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        pytest.param(SAME_LENGTH, False, id="same length"),
        pytest.param(OTHER_LENGTH, False, id="other length"),
        pytest.param(SAME_LENGTH, True, id="same length, seen by another"),
        pytest.param(OTHER_LENGTH, True, id="other length, seen by another"),
    ],
)
async def test_a_promotion_while_the_question_is_being_embedded_is_seen(
    bench: Bench, model: FakeEmbedder, known: bool
) -> None:
    """Also when another visitor's request has seen it first."""
    await bench.generation(1, OLD, "old")
    new = await bench.generation(2, model, "new")

    class Slow(FakeEmbedder):
        promoted = False

        async def query(self, text: str) -> Vectors:
            if not self.promoted:
                self.promoted = True
                await bench.operator.indexes.swap(bench.site, new)
                if known:
                    await bench.elastic.indexes.now(bench.site)
            return await super().query(text)

    bench.models[OLD.fingerprint] = Slow(OLD.dims, "1")
    asked = len(model.asked)
    assert await bench.words("hybrid") == {"new"}
    assert len(model.asked) - asked == 1


async def test_a_trial_searches_an_index_that_is_not_live_with_its_own_model(bench: Bench, model: FakeEmbedder) -> None:
    await bench.generation(1, OLD, "old")
    new = await bench.generation(2, model, "new")
    of_trials = Searcher(bench.elastic.search, bench, bench.settings, SiteIndexes(bench.elastic, Named(model)).of)
    other = await of_trials.on(bench.site, new.name)
    kinds: tuple[Any, ...] = ("hybrid", "vector", "keyword")
    for kind in kinds:
        hits = await other.hits(bench.site, "pool hours", kind=kind, size=10)
        assert {hit.text.split()[0] for hit in hits} == {"new"}
    asked = Rephrased(
        request=question().model_copy(update={"site": bench.site}), question="pool hours", mode="semantic"
    )
    found = await retrieve(asked, other, bench.elastic.search, bench.settings)
    assert found.sources
    assert all("old" not in source.text for source in found.sources)
    assert await bench.words("hybrid") == {"old"}
    for name, reason in (("pagewire-town-000009", "has no index"), (new.name, "is of")):
        with pytest.raises(NoTrialIndex, match=reason):
            await SiteIndexes(bench.elastic, Named(FakeEmbedder(dims=8, version="9"))).of(bench.site, name)


async def test_a_vector_of_another_model_finds_nothing_and_says_why(bench: Bench) -> None:
    await bench.generation(1, OLD, "old")
    for stranger in (SAME_LENGTH, OTHER_LENGTH):
        with pytest.raises(QueryModelOutdated):
            await bench.candidates(stranger)
    assert (await bench.candidates(OLD)).dense


async def test_what_stands_around_a_hit_is_read_from_the_index_of_the_hit(bench: Bench) -> None:
    """A visitor's answer is not put together from two indexes, of which one may be cut in another way."""
    await bench.generation(1, OLD, "old")
    new = await bench.generation(2, SAME_LENGTH, "new")

    class PromotedInBetween:
        """Reads chunks after the swap, for hits from before."""

        async def chunks(self, index: str, addresses: Any) -> Any:
            await bench.operator.indexes.swap(bench.site, new)
            return await bench.elastic.search.chunks(index, addresses)

        async def field(self, index: str, page_key: str, field: Any) -> Any:
            await bench.operator.indexes.swap(bench.site, new)
            return await bench.elastic.search.field(index, page_key, field)

    modes: tuple[Any, ...] = ("semantic", "keyword")
    for mode in modes:
        asked = Rephrased(
            request=question().model_copy(update={"site": bench.site}), question="old pool hours", mode=mode
        )
        found = await retrieve(asked, bench.searcher, PromotedInBetween(), bench.settings)
        assert found.sources
        assert all("old" in source.text and "new" not in source.text for source in found.sources)
        await bench.operator.indexes.swap(bench.site, (await bench.operator.indexes.generations(bench.site))[0])
        await bench.elastic.indexes.now(bench.site)


async def test_searches_while_indexes_are_promoted_and_rolled_back_mix_nothing(
    bench: Bench, model: FakeEmbedder
) -> None:
    generations = [await bench.generation(1, OLD, "old"), await bench.generation(2, model, "new")]
    kinds: tuple[Any, ...] = ("hybrid", "vector", "keyword")
    seen: set[str] = set()
    for turn in range(6):
        live = generations[(turn + 1) % 2]
        *answers, _ = await asyncio.gather(
            *(bench.words(kind) for kind in kinds), bench.operator.indexes.swap(bench.site, live)
        )
        for words in answers:
            assert len(words) == 1
            seen |= words
        assert await bench.words("hybrid") == {"new" if live.generation == 2 else "old"}
    assert seen == {"old", "new"}
    assert (await bench.operator.es.indices.get_alias(name=alias(bench.site))).body.keys() == {generations[0].concrete}
