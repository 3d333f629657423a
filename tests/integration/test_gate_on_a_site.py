"""The gate with the bundled model on pages of the sample site: what they answer passes, what they do not is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.elastic.bundle import Elastic
from adapters.elastic.texts import ElasticTexts
from adapters.embedders.lite import LiteEmbedder
from bench.website import KeptVectors, OneModel, publish
from pipelines.query.extractive.replies import refused, reply
from pipelines.query.live.live_texts import LiveTexts
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.live.text_changes import Place, TextChanges
from pipelines.query.retrieve.handler import retrieve_handler
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.search import Searcher
from pipelines.runtime.indexes import alias
from pipelines.runtime.record import Record
from prompts.phrases import Phrases
from schemas.page import PageDocument
from schemas.query import Rephrased, Retrieved
from schemas.text_version import NewText, TextChange
from schemas.topics import REPHRASED
from sites.content import DEMO, page_documents
from tests.asking import question
from tests.engine_fixture import Servers
from tests.fakes.pages import FakeSender
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

SITE = "gate-on-a-site"
A_MINUTE = timedelta(minutes=1)
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

    async def asks_the_stage(self, text: str, site_prompts: SitePrompts) -> Retrieved:
        handle = retrieve_handler(self._settings, self._searcher, self._chunks, site_prompts=site_prompts)
        request = question(text, lang="en").model_copy(update={"site": SITE, "deadline": datetime.now(UTC) + A_MINUTE})
        asked, sender = Rephrased(request=request, question=text, mode="semantic"), FakeSender()
        await handle(Record(REPHRASED.name, 0, 0, b"conversation-1", asked.encode()), sender)
        [sent] = sender.sent
        assert isinstance(sent.message, Retrieved)
        return sent.message


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
    "text",
    [
        "How do I exchange a foreign driving licence?",
        "Who won the football world cup in 1998?",
        "Which planet has the most moons?",
    ],
)
async def test_what_no_page_answers_is_refused_without_pages_about_something_else(visitor: Visitor, text: str) -> None:
    found = await visitor.asks(text)
    assert refused(found.grade), found.gate
    assert found.sources
    assert "https://town.example/" not in reply(found, Phrases.load())


@pytest.mark.asyncio(loop_scope="module")
async def test_in_another_language_what_no_page_answers_is_refused_and_nothing_is_quoted(visitor: Visitor) -> None:
    """The likeliest pages may be named all the same: two languages share no words that could rule a page out."""
    found = await visitor.asks("Wie hoch ist der Hebesatz der Gewerbesteuer?", "de")
    assert refused(found.grade), found.gate
    assert found.sources
    assert "\n> " not in reply(found, Phrases.load())


@pytest.mark.asyncio(loop_scope="module")
async def test_a_page_is_found_by_a_word_that_an_editor_puts_into_the_glossary(
    visitor: Visitor, engine: Servers
) -> None:
    settings, text = Settings(sites={SITE: SiteSettings()}), "How much is the splashorama?"
    async with Elastic(engine.elasticsearch, settings) as elastic:
        store, site_prompts = ElasticTexts(elastic.es, elastic.indexes), SitePrompts()
        live, changes = LiveTexts(store, site_prompts.take), TextChanges(store, settings, lambda: datetime.now(UTC))
        assert await live.look()
        before = await visitor.asks_the_stage(text, site_prompts)
        assert refused(before.grade), before.gate
        terms = NewText(text="season ticket for the lido: {en: splashorama}")
        made = await changes.put(Place(SITE, "glossary", "terms"), terms, "anna")
        assert await live.look()
        found = await visitor.asks_the_stage(text, site_prompts)
        await changes.remove(Place(SITE, "glossary", "terms"), TextChange(over=made.version), "anna")
        assert await live.look()
        after = await visitor.asks_the_stage(text, site_prompts)
    assert not refused(found.grade), found.gate
    assert {source.page_id for source in found.sources} == {"swimming-pool"}
    assert refused(after.grade), after.gate
