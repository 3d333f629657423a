"""axe-core finds nothing to complain about: in the rules of WCAG 2.2 AA and in those of good practice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import WIDGET, Host
from tests.browser.scripts import LIBRARY
from tests.chromium import Browser
from tests.fakes.ports import FakePorts

pytestmark = [pytest.mark.browser, pytest.mark.node]

WORDS = {
    "en": ("Ask a question", "Sources", "Not helpful", "Your conversations", "Rename"),
    "de": ("Frage stellen", "Quellen", "Nicht hilfreich", "Ihre Gespräche", "umbenennen"),
}


async def violations(page: Any) -> list[str]:
    """What axe says is wrong, in the page as it is."""
    if not await page.evaluate("'axe' in window"):
        # Not as a script tag: the page's policy would refuse it.
        await page.evaluate((WIDGET / "node_modules/axe-core/axe.min.js").read_text("utf-8"))
    found = await page.evaluate("axe.run(document, { rules: { 'target-size': { enabled: true } } })")
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("lang", WORDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_closed_open_with_an_answer_and_with_the_list(
    browser: Browser, host: Host, fakes: FakePorts, lang: str, scheme: str
) -> None:
    opener, sources, unhelpful, past, rename = WORDS[lang]
    fakes.answers.script = LIBRARY
    async with host.serving(lang=lang, theme=scheme, examples="A?\nB?", privacy="/privacy") as url:
        page = await browser.open(url)
        assert await violations(page) == []
        await page.get_by_role("button", name=opener).click()
        assert await violations(page) == []
        await page.get_by_role("textbox").fill("?")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name=sources).wait_for()
        await page.locator(".chip").first.click()
        await page.get_by_role("button", name=unhelpful).click()
        await page.locator(".comment textarea").wait_for()
        assert await violations(page) == []
        await page.get_by_role("button", name=past).click()
        await page.get_by_role("button", name=rename).click()
        assert await violations(page) == []


@pytest.mark.parametrize("accent", ["yellow", "#777", "white", "black", "#a3195b", "oklch(0.8 0.2 140)"])
async def test_a_brand_of_any_colour_can_be_read(browser: Browser, host: Host, fakes: FakePorts, accent: str) -> None:
    fakes.answers.script = LIBRARY
    for theme in ("light", "dark"):
        async with host.serving(accent=accent, theme=theme) as url:
            page = await browser.open(url)
            await page.get_by_role("button", name="Ask a question").click()
            await page.get_by_role("textbox").fill("?")
            await page.keyboard.press("Enter")
            await page.get_by_role("heading", name="Sources").wait_for()
            await page.get_by_role("button", name="Not helpful").click()
            await page.locator('[aria-pressed="true"]').wait_for()
            assert await violations(page) == []


@pytest.mark.parametrize("path", ["/", "/?lang=de", "/widget/", "/widget/narrow", "/widget/rtl"])
async def test_our_own_pages(browser: Browser, url: str, path: str) -> None:
    for scheme in ("light", "dark"):
        page = await browser.open(url + path, scheme=scheme)
        await page.locator("section.panel, .launcher, iframe").first.wait_for()
        assert await violations(page) == []
