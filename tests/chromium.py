"""A real Chromium: Debian's, never a downloaded one. A pytest plugin (tests/conftest.py) with the fixture `browser`."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.async_api import Page


class Browser:
    """Opens pages; everything a page complains about is kept."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self.complaints: list[str] = []

    async def open(
        self,
        url: str,
        width: int = 1000,
        height: int = 800,
        scheme: str = "light",
        init: str = "",
        **context_options: Any,
    ) -> Page:
        """`init`: a script that runs before those of the page."""
        context = await self._chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", **context_options
        )
        if init:
            await context.add_init_script(init)
        context.set_default_timeout(20_000)
        page: Page = await context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        await page.goto(url)
        return page


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright  # absent where this ring is left out (tests/conftest.py)

    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield Browser(chromium)
        await chromium.close()
