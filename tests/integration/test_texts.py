"""Versions of texts in a real Elasticsearch, beside the in-memory sibling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.texts import ElasticTexts
from pipelines.query.live.live_texts import LiveTexts, TextStore
from pipelines.query.live.privacy_changes import PrivacyChanges
from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.live.text_changes import Place, TextChanged, TextChanges
from schemas.privacy import PrivacyChange, PrivacyOrder
from schemas.text_version import NewText, TextChange
from tests.engine_fixture import Servers
from tests.fakes.stores import FakeTextStore
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine


@pytest.fixture(params=["elasticsearch", "memory"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[TextStore]:
    if request.param == "memory":
        yield FakeTextStore()
        return
    servers: Servers = request.getfixturevalue("engine")
    async with Elastic(servers.elasticsearch, Settings()) as elastic:
        yield ElasticTexts(elastic.es, elastic.indexes)


async def test_what_a_site_keeps_stands_beside_its_texts(store: TextStore) -> None:
    site = f"t{uuid4().hex[:10]}"
    settings, prompts = Settings(sites={site: SiteSettings()}), SitePrompts()
    texts = TextChanges(store, settings, lambda: datetime.now(UTC))
    changes, privacy = PrivacyChanges(texts, settings, lambda: datetime.now(UTC)), SitePrivacy(settings.sites)
    live = LiveTexts(store, prompts.take, privacy.take)
    assert not live.seen
    await texts.put(Place(site, "canned", "lead-in.en"), NewText(text="A"), "anna")
    await changes.put(site, PrivacyOrder(log_questions="off", outcomes=400), "anna")
    assert await live.look()
    assert live.seen
    rules = privacy.of(site)
    assert (rules and rules.log_questions, prompts.of(site).phrases.say("lead-in", "en")) == ("off", "A")
    state = await changes.roll_back(site, PrivacyChange(sure=True), "ben")
    assert (state.rules, [one.version for one in state.versions]) == (state.filed, [2, 1])


async def test_more_texts_are_live_than_an_answer_has(store: TextStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.elastic.texts.AT_ONCE", 2)
    site = f"t{uuid4().hex[:10]}"
    changes = TextChanges(store, Settings(sites={site: SiteSettings()}), lambda: datetime.now(UTC))
    langs = ("ar", "de", "en", "fr", "he")
    for said in ("old", "new"):
        for lang in langs:
            await changes.put(Place(site, "contact", lang), NewText(text=f"{said} {lang}"), "anna")
    assert sorted(one.text or "" for one in await store.live(site)) == [f"new {lang}" for lang in langs]
    assert {f"new {lang}" for lang in langs} <= {one.text for one in await store.live()}


async def test_more_sites_have_changed_a_text_than_an_answer_has(
    store: TextStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.elastic.texts.AT_ONCE", 2)
    sites = {f"t{uuid4().hex[:10]}" for _ in range(5)}
    changes = TextChanges(store, Settings(sites={site: SiteSettings() for site in sites}), lambda: datetime.now(UTC))
    for site in sites:
        await changes.put(Place(site, "contact", "en"), NewText(text="Call."), "anna")
    assert sites <= await store.changed("contact", "en")
    assert not sites & await store.changed("contact", "de")


async def test_versions_are_kept_found_and_never_overwritten(store: TextStore) -> None:
    site, other = (f"t{uuid4().hex[:10]}" for _ in range(2))
    changes = TextChanges(
        store, Settings(sites={site: SiteSettings(), other: SiteSettings()}), lambda: datetime.now(UTC)
    )
    lead_in, contact = Place(site, "canned", "lead-in.en"), Place(site, "contact", "en")
    prompts = SitePrompts()
    live = LiveTexts(store, prompts.take)
    assert await live.look()
    before = await store.state()
    await changes.put(lead_in, NewText(text="A"), "anna")
    assert await store.state() != before
    await changes.put(lead_in, NewText(text="B", note="better"), "anna")
    await changes.propose(lead_in, NewText(text="C"), "anna")
    await changes.put(contact, NewText(text="Call."), "anna")
    await changes.put(Place(other, "canned", "lead-in.en"), NewText(text="X"), "anna")
    assert await live.look()
    assert [prompts.of(each).phrases.say("lead-in", "en") for each in (site, other)] == ["B", "X"]
    assert {(one.name, one.version, one.text) for one in await store.live(site)} == {
        ("lead-in.en", 2, "B"),
        ("en", 1, "Call."),
    }
    history = await changes.history(lead_in)
    assert [(one.version, one.text, one.candidate) for one in history.versions] == [
        (3, "C", True),
        (2, "B", False),
        (1, "A", False),
    ]
    changed = await store.changed("canned", "lead-in.en")
    assert {site, other} <= changed
    assert site in (contacts := await store.changed("contact", "en"))
    assert other not in contacts
    assert not await store.add(history.versions[1].model_copy(update={"text": "overwritten"}))
    await changes.remove(lead_in, TextChange(over=2), "ben")
    assert await live.look()
    assert prompts.of(site).phrases.say("lead-in", "en") == "The website says:"
    with pytest.raises(TextChanged):
        await changes.put(lead_in, NewText(text="D", over=2), "anna")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(changes.put(contact, NewText(text=text), "anna")) for text in "PQR"]
    assert sorted(task.result().version for task in tasks) == [2, 3, 4]
