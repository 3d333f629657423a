"""The gate with the bundled model on pages of the sample site: what they answer passes, what they do not is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.elastic.bundle import Elastic
from adapters.embedders.lite import LiteEmbedder
from bench.vectors import KeptVectors
from bench.website import OneModel, publish
from pipelines.query.answer.canned import refused, reply
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.retrieve.search import Searcher
from pipelines.runtime.indexes import alias
from prompts.phrases import Phrases
from schemas.page import PageDocument
from schemas.query import Rephrased, Retrieved
from sites.content import DEMO, page_documents
from tests.asking import question
from tests.engine_fixture import Servers
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

SITE = "gate-on-a-site"
PAGES = {"swimming-pool", "library", "dog-tax"}


class Visitor:
    """Asks, and gets what the answer stage would."""

    def __init__(self, elastic: Elastic, model: KeptVectors, settings: Settings) -> None:
        self._chunks = elastic.search
        self._searcher = Searcher(elastic.search, OneModel(model), settings)
        self._settings = settings

    async def asks(self, text: str, lang: str = "en", *, writes: bool = False) -> Retrieved:
        request = question(text, lang=lang).model_copy(update={"site": SITE})
        asked = Rephrased(request=request, question=text, mode="semantic")
        return await retrieve(asked, self._searcher, self._chunks, self._settings, writes=writes)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def visitor(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Visitor]:
    settings = Settings(sites={SITE: SiteSettings()})
    documents = [PageDocument.model_validate(page) for page in page_documents(DEMO, "https://town.example")]
    pages = [page for page in documents if page.id in PAGES and page.lang == "en"]
    kept: Path = tmp_path_factory.mktemp("vectors")
    async with Elastic(engine.elasticsearch, settings) as elastic, KeptVectors(LiteEmbedder(), kept) as model:
        await publish(elastic, SITE, pages, model, settings)
        await elastic.es.indices.refresh(index=alias(SITE))
        yield Visitor(elastic, model, settings)
        await elastic.es.indices.delete(index=f"{alias(SITE)}-000001")


@pytest.mark.asyncio(loop_scope="module")
async def test_across_languages_a_model_is_asked_and_nothing_is_quoted_that_is_not_sure(visitor: Visitor) -> None:
    text = "Wie warm ist das Wasser im Lehrschwimmbecken?"
    assert not refused((await visitor.asks(text, "de", writes=True)).grade)
    sure = (await visitor.asks(text, "de")).sure
    assert sure is None or sure.of != "unit"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("How much is a season ticket for the lido?", "en"),
        ("How warm is the water in the teaching pool?", "en"),
        ("When is the sauna reserved for women?", "en"),
        ("How much is the tax for a second dog?", "en"),
    ],
)
async def test_what_the_pages_answer_passes(visitor: Visitor, text: str, lang: str) -> None:
    found = await visitor.asks(text, lang)
    assert not refused(found.grade), found.gate


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("How do I exchange a foreign driving licence?", "en"),
        ("Who won the football world cup in 1998?", "en"),
        ("Which planet has the most moons?", "en"),
        ("Wie hoch ist der Hebesatz der Gewerbesteuer?", "de"),
    ],
)
async def test_what_no_page_answers_gets_a_reply_with_the_nearest_pages(visitor: Visitor, text: str, lang: str) -> None:
    found = await visitor.asks(text, lang)
    assert refused(found.grade), found.gate
    said = reply(found, Phrases.load())
    assert Phrases.load().say("see-pages", lang) in said
    assert 1 <= said.count("](<https://town.example/") <= 3
