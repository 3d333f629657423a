"""A wrong answer is put right: an editor's clicks in the console, and the chat of the running system ten seconds later.

In the folder LOOK, if there is one, it leaves the screens, light and dark, on a desk and on a phone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from cli.demo import sample_pages
from tests.acceptance.system import Instance, save
from tests.chromium import Browser
from tests.edge import bearer
from tests.engine_fixture import Servers

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.engine]

KEY = "key-of-the-acceptance-ring"
IN_FORCE = 10.0  # seconds
ASKED = "May I take my parrot to the library?"
IN_OTHER_WORDS = "Can I take a parrot to the library"
FIXED = "<b>Parrots</b> may come along on Fridays."
PINNED = "Where do I learn what my puppy costs?"


@pytest.fixture(scope="module")
def instance(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Instance:
    """Where the sample site is served, without a model."""
    return Instance(tmp_path_factory.mktemp("demo"), engine, PAGEWIRE_CONFIG="")


@pytest.fixture(scope="module")
def demo(instance: Instance) -> Iterator[str]:
    """Where it serves its site, of which it has three pages."""
    with instance.started("up") as started:
        with instance.client(started.url, "demo") as client:
            for page in sample_pages(started.url):
                if page.id in ("dog-tax", "library", "wedding"):
                    save(client, page)
        yield started.url


async def look(page: Page, name: str) -> None:
    if not (folder := os.environ.get("LOOK")):
        return
    for where, size in (("phone", (360, 740)), ("desk", (1100, 800))):
        await page.set_viewport_size({"width": size[0], "height": size[1]})
        for scheme in ("dark", "light"):
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            await page.screenshot(path=Path(folder) / f"{name}-{where}-{scheme}.png", full_page=where == "phone")


async def answer(client: httpx.AsyncClient, question: str) -> dict[str, Any]:
    told = (await client.post("/v1/sites/demo/chat", json={"question": question})).raise_for_status()
    found: dict[str, Any] = told.json()
    return found


async def cited(client: httpx.AsyncClient, question: str) -> list[str]:
    return [source["page_id"] for source in (await answer(client, question))["sources"] if source["cited"]]


async def put_right(page: Page, demo: str, asked: str, kind: str) -> None:
    """From the list of questions to the form, whose question is filled in."""
    await page.goto(f"{demo}/console/questions")
    async with asyncio.timeout(60):
        while asked not in await page.locator(".question").all_inner_texts():
            await page.reload()
    await page.get_by_role("link", name=asked).click()
    await look(page, "question")
    await page.get_by_role("link", name=kind).click()


async def keep(page: Page) -> None:
    """Show what it does, say that it is meant, and keep it."""
    await page.get_by_role("button", name="Show the effect").click()
    await page.get_by_text("would get this correction").wait_for()
    await page.get_by_label("Yes, answer these questions like this from now on").check()
    await look(page, "tried")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Saved. The correction is used within ten seconds.").wait_for()


async def test_a_wrong_answer_is_right_within_ten_seconds_of_the_editors_last_click(
    browser: Browser, demo: str
) -> None:
    async with httpx.AsyncClient(base_url=demo, headers=bearer(KEY), timeout=60) as client:
        assert "Parrots" not in (await answer(client, ASKED))["answer"]
        assert await cited(client, PINNED) == ["dog-tax"]
        page = await browser.open(f"{demo}/console/questions", width=1100, height=800)
        await page.get_by_label("Key").fill(KEY)
        await page.keyboard.press("Enter")
        await page.locator(".who").wait_for()
        await put_right(page, demo, ASKED, "This is the answer")
        assert await page.get_by_label("For these questions").input_value() == ASKED
        await page.get_by_label("Text for visitors").fill(FIXED)
        await page.locator("#other").fill("library")
        await keep(page)
        async with asyncio.timeout(IN_FORCE):
            while "Fridays" not in (told := await answer(client, IN_OTHER_WORDS))["answer"]:
                pass
        assert (told["certainty"], told["generated_by"]) == ("said", "site")
        assert await cited(client, IN_OTHER_WORDS) == ["library"]

        await put_right(page, demo, PINNED, "This page is right")
        await page.locator("#other").fill(f"{demo}/site/en/library")
        await keep(page)
        async with asyncio.timeout(IN_FORCE):
            while await cited(client, PINNED) != ["library"]:
                pass
        await look(page, "corrections")
        await page.get_by_role("link", name="Change or remove").last.click()
        await page.get_by_role("heading", name="History").wait_for()
        await look(page, "correction")

        chat = await browser.open(f"{demo}/site/en/library", width=1100, height=800)
        await chat.locator(".launcher").click()
        await chat.get_by_role("textbox").fill(ASKED)
        await chat.keyboard.press("Enter")
        await chat.locator(".turn .answer", has_text="Fridays").wait_for()
        # As it was typed: no visitor's browser takes it for HTML.
        assert FIXED in await chat.locator(".turn .answer").inner_text()
        assert await chat.locator(".turn .answer b").count() == 0
        assert "word for word" not in await chat.locator(".turn").inner_text()
        await look(chat, "chat")
    assert browser.complaints == []
