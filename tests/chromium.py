"""A real Chromium: Debian's, never a downloaded one. A pytest plugin (tests/conftest.py) with the fixture `browser`."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.async_api import Page


class Browser:
    """Opens pages; everything a page complains about is kept."""

    def __init__(self, launch: Callable[[], Awaitable[Any]]) -> None:
        self._launch = launch
        self._chromium: Any = None
        self.complaints: list[str] = []

    async def open(self, url: str, **options: Any) -> Page:
        """A page in a window of its own; options as for `_open`.

        Chromium has been seen to die while it loaded its first page, once in some thousand: it gets a second try.
        """
        first = self._chromium is None
        if first:
            self._chromium = await self._launch()
        try:
            return await self._open(url, **options)
        except Exception as err:
            if not first or type(err).__name__ != "TargetClosedError":
                raise
        await self.aclose()
        self._chromium = await self._launch()
        return await self._open(url, **options)

    async def aclose(self) -> None:
        if self._chromium is not None:
            await self._chromium.close()

    async def _open(
        self,
        url: str,
        *,
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
        context.set_default_timeout(60_000)
        page: Page = await context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        await page.goto(url)
        return page


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright  # absent where this ring is left out (tests/conftest.py)

    async with async_playwright() as playwright:
        launch = partial(playwright.chromium.launch, executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        browser = Browser(launch)
        yield browser
        await browser.aclose()
