"""The search field on somebody else's page: suggestions, results, the way into the chat, and life without scripts."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Route

from pipelines.query.log.frequent import FrequentQuestion, FrequentQuestions, wording_of
from pipelines.query.search.typeahead import TitleCandidate
from schemas.http import SearchHit, Snippet, SnippetPart
from tests.browser.conftest import Host
from tests.browser.scripts import LIBRARY
from tests.browser.test_accessibility import violations
from tests.chromium import Browser
from tests.edge import until
from tests.fakes.ports import FakePorts
from wiring.settings import ChatSettings, SiteSettings

pytestmark = pytest.mark.browser

FORM = (
    '<pagewire-search site="town" {attributes}><form action="{gateway}/v1/sites/town/results">'
    '<label>Find <input type="search" name="q"></label> <button>Go</button></form></pagewire-search>'
    '<script src="{gateway}/search.js" defer></script>'
)
SHOWS = SiteSettings(chat=ChatSettings(frequent_questions=True))
QUESTION = "What does a library card cost?"


def element(attributes: str = "") -> Any:
    return lambda gateway: FORM.format(gateway=gateway, attributes=attributes)


def hit(title: str, url: str, text: str, match: str, lang: str = "en", **more: Any) -> SearchHit:
    before, _, after = text.partition(match)
    parts = (SnippetPart(text=before), SnippetPart(text=match, match=True), SnippetPart(text=after))
    values: dict[str, Any] = {
        "page_id": url,
        "lang": lang,
        "title": title,
        "url": url,
        "field": "content",
        "ord": 0,
        "text": text,
        "score": 0.9,
        "revision": 1,
        "snippet": Snippet(parts=parts, fragment=":~:text=A%20library,a%20year.", heading="Fees"),
    }
    return SearchHit.model_validate(values | more)


STAMP = {"page_kind": "FAQPage", "published_at": "2025-01-07T00:00:00Z", "changed_at": "2026-03-02T23:30:00Z"}
HITS = [
    hit("Town library", "/services/library", "A library card costs 12 euros a year.", "card", **STAMP),
    hit("Town library", "/services/library", "Bring your identity card.", "card", ord=1),
    hit("Parking card", "/living/parking", "A parking card costs 30 euros a year.", "card"),
    hit("כרטיס קורא", "/living/card", "כרטיס קורא עולה שמונה עשר אירו לשנה.", "כרטיס", lang="he", **STAMP),
    hit("Odd", "javascript:alert(1)", "No card.", "card"),
]


class Frequent(FrequentQuestions):
    """Knows one question."""

    def __init__(self) -> None:
        self.question = FrequentQuestion(QUESTION, "en", 5, frozenset((("library", "en"),)), wording_of(QUESTION))

    def shown(self, site: str) -> bool:
        return True

    def of(self, site: str) -> list[FrequentQuestion]:
        return [self.question]


@pytest.fixture
def stocked(host: Host, fakes: FakePorts) -> Host:
    """A website with suggestions, results and what others have asked."""
    fakes.search.found = HITS
    fakes.typeahead.titled = [
        TitleCandidate("Library rules", "/rules", "en"),
        TitleCandidate("Town library", "/services/library", "en"),
    ]
    fakes.typeahead.headed = [TitleCandidate("Town library", "/services/library", "en", ("Library cards",))]

    class Ports(FakePorts):
        @property
        def ports(self) -> Any:
            return replace(super().ports, frequent=Frequent())

    fakes.answers.script = LIBRARY
    host.fakes = Ports(**{name: getattr(fakes, name) for name in fakes.__dataclass_fields__})
    return host


async def picture(page: Any, name: str) -> None:
    if folder := os.environ.get("PICTURES"):
        await page.screenshot(path=f"{folder}/{name}.png")


def refused(status: int) -> Any:
    async def fulfil(route: Any) -> None:
        await route.fulfill(status=status, json={"code": "x"})

    return fulfil


def options(page: Any) -> Any:
    return page.get_by_role("option")


async def test_suggestions_are_chosen_by_the_keyboard_and_the_field_keeps_the_focus(
    browser: Browser, stocked: Host, fakes: FakePorts
) -> None:
    async with stocked.serving(more=element()) as url:
        page = await browser.open(url)
        field = page.get_by_role("combobox", name="Search this website")
        assert await field.get_attribute("aria-expanded") == "false"
        await field.press_sequentially("lib")
        await options(page).first.wait_for()
        assert await field.get_attribute("aria-expanded") == "true"
        assert await options(page).all_inner_texts() == [
            "Library rules",  # begins like this
            "Town library",
            "Library cards Town library",
            QUESTION,
        ]
        groups = [await each.get_attribute("aria-label") for each in await page.get_by_role("group").all()]
        assert groups == ["Pages", "Sections", "Often asked"]
        await page.keyboard.press("ArrowUp")  # the last one
        assert await field.get_attribute("aria-activedescendant") == "option-3"
        assert await page.locator('[aria-selected="true"]').inner_text() == QUESTION
        await page.keyboard.press("ArrowDown")  # the field itself
        assert await field.get_attribute("aria-activedescendant") is None
        await page.keyboard.press("Escape")
        assert await field.get_attribute("aria-expanded") == "false"
        assert await field.input_value() == "lib"
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        async with page.expect_navigation():
            await page.keyboard.press("Enter")
        assert page.url.startswith(f"{url}/services/library")
        assert browser.complaints == []


async def later(route: Route) -> None:
    """A welcome that comes behind the first answer."""
    await asyncio.sleep(0.5)
    await route.continue_()


async def test_results_have_marks_and_open_at_the_sentence_and_go_on_in_the_chat(
    browser: Browser, stocked: Host, fakes: FakePorts
) -> None:
    async with stocked.serving(more=element(), site=SHOWS) as url:
        page = await browser.open(url)
        await page.route("**/welcome?*", later)
        await page.get_by_role("combobox").fill("card")
        await page.keyboard.press("Enter")
        results = page.locator("pagewire-search li")
        await results.first.wait_for()
        assert await results.count() == 4
        link = results.first.get_by_role("link", name="Town library")
        assert await link.get_attribute("href") == f"{url}/services/library#:~:text=A%20library,a%20year."
        assert await results.first.locator("mark").all_inner_texts() == ["card", "card"]
        assert await results.nth(3).get_by_role("link").count() == 0  # javascript:
        assert await page.get_by_role("status").all_inner_texts() != []
        assert await results.first.locator(".about").inner_text() == "Questions and answers · As of March 2, 2026"
        assert await results.locator(".about").count() == 2  # of pages that say what and of when they are
        # By the section of the website
        await page.get_by_role("group", name="Show only").get_by_role("button", name="living").click()
        assert await page.locator("pagewire-search li .title").all_inner_texts() == ["Parking card", "כרטיס קורא"]
        await page.get_by_role("button", name="All").click()
        assert await results.count() == 4
        await page.get_by_role("button", name="Ask this in the chat").click()
        await page.get_by_role("dialog").get_by_role("heading", name="Sources").wait_for()
        assert [asked.question for asked in fakes.answers.asked] == ["card"]
        # What others have asked about the page that the answer cites
        await page.get_by_role("heading", name="Others also asked").wait_for()
        await page.get_by_role("button", name=QUESTION).click()
        await until(lambda: [asked.question for asked in fakes.answers.asked] == ["card", QUESTION])
        assert browser.complaints == []


async def test_a_frequent_question_is_asked_in_the_chat_or_searched_where_there_is_none(
    browser: Browser, stocked: Host, fakes: FakePorts
) -> None:
    async with stocked.serving(more=element()) as url:
        for chat in (True, False):
            page = await browser.open(url)
            if not chat:
                await page.evaluate("document.querySelector('pagewire-chat').remove()")
            await page.get_by_role("combobox").press_sequentially("library card")
            await options(page).last.click()
            if chat:
                await page.get_by_role("dialog").get_by_role("heading", name="Sources").wait_for()
            else:
                await page.locator("pagewire-search li").first.wait_for()
                assert await page.get_by_role("button", name="Ask this in the chat").count() == 0
    assert [asked.question for asked in fakes.answers.asked] == [QUESTION]
    assert [query for _, query, _, _ in fakes.search.searches] == [QUESTION]


async def test_labels_are_filters_where_pages_have_some(browser: Browser, stocked: Host) -> None:
    asked: list[str] = []

    async def labelled(route: Any) -> None:
        asked.append(route.request.url)
        answer = await route.fetch()
        found = await answer.json()
        for each, kind in zip(found["hits"], ["form", "form", "page", "page", "page"], strict=True):
            each["labels"] = {"kind": [kind], "author": [f"Ada of {kind}s"]}
        await route.fulfill(response=answer, body=json.dumps(found))

    async with stocked.serving(more=element()) as url:
        page = await browser.open(url)
        await page.route("**/search?*", labelled)
        await page.get_by_role("combobox").fill("card")
        await page.keyboard.press("Enter")
        await page.get_by_role("group", name="kind").get_by_role("button", name="form").click()
        assert not await page.get_by_role("group", name="author").count()
        await page.locator('[aria-label="kind"] [aria-pressed="true"]', has_text="form").wait_for()
        await until(lambda: len(asked) == 2)
        assert asked[1].endswith("&label=kind%3Aform")
        await page.get_by_role("group", name="kind").get_by_role("button", name="All").click()
        await until(lambda: len(asked) == 3)
        assert "label" not in asked[2]


async def test_a_long_text_is_not_completed_and_a_refusal_is_told_in_words(
    browser: Browser, stocked: Host, fakes: FakePorts
) -> None:
    async with stocked.serving(more=element()) as url:
        page = await browser.open(url)
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        field = page.get_by_role("combobox")
        await field.fill("👍" * 4_000)  # 8,000 units; the field takes 4,000
        await page.keyboard.press("Enter")
        await page.locator("pagewire-search li").first.wait_for()
        assert not [seen for seen in requests if "/suggest" in seen]
        for status, words in [(429, "Too many searches"), (503, "not available right now")]:
            await page.route("**/search?*", refused(status))
            await field.fill("card")
            await page.keyboard.press("Enter")
            await page.locator(".trouble", has_text=words).wait_for()


async def test_without_scripts_the_form_leads_to_a_page_of_results(browser: Browser, stocked: Host) -> None:
    async with stocked.serving(more=element()) as url:
        page = await browser.open(url, java_script_enabled=False)
        await page.get_by_label("Find").fill("card")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/results?q=card")
        assert "Results for “card”: 4" in await page.content()
        assert await page.locator(".about").all_inner_texts() == ["Questions and answers · As of March 2, 2026"] * 2
        await page.get_by_role("link", name="Town library").click()
        await page.wait_for_url(f"{url}/services/library*")


@pytest.mark.node
@pytest.mark.parametrize(("around", "paper"), [("light dark", "rgb(22, 28, 32)"), ("normal", "rgb(255, 255, 255)")])
async def test_without_a_theme_it_is_light_or_dark_as_the_page_around_it(
    browser: Browser, stocked: Host, around: str, paper: str
) -> None:
    async with stocked.serving(more=element()) as url:
        page = await browser.open(url, scheme="dark")
        await page.evaluate("(around) => { document.documentElement.style.colorScheme = around; }", around)
        frame = page.locator("pagewire-search .frame")
        assert await frame.evaluate("(frame) => getComputedStyle(frame).backgroundColor") == paper


@pytest.mark.parametrize("lang", ["en", "he"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1000])
async def test_every_state_can_be_used_by_everybody(
    browser: Browser, stocked: Host, lang: str, scheme: str, width: int
) -> None:
    direction = "rtl" if lang == "he" else "ltr"
    async with stocked.serving(
        more=element(f'theme="{scheme}"'), lang=lang, dir=direction, theme=scheme, launcher="none"
    ) as url:
        page = await browser.open(url, width=width, scheme=scheme)
        name = f"search-{lang}-{scheme}-{width}"
        field = page.get_by_role("combobox")
        await field.wait_for()
        assert await violations(page) == []
        await field.press_sequentially("lib")
        await options(page).first.wait_for()
        await page.keyboard.press("ArrowDown")
        assert await violations(page) == []
        await picture(page, f"{name}-suggestions")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Enter")
        await page.locator("pagewire-search li").first.wait_for()
        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        await picture(page, f"{name}-results")
        await page.route("**/search?*", refused(503))
        await page.get_by_role("combobox").press("Enter")
        await page.locator(".trouble").wait_for()
        assert await violations(page) == []
        plain = await browser.open(
            f"{stocked.gateway}/v1/sites/town/results?q=card&lang={lang}", width=width, scheme=scheme
        )
        assert await violations(plain) == []
        await picture(plain, f"{name}-plain")
