"""A real Chromium (Debian's, never a downloaded one) looking at the gateway over its fakes."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.app import create_app
from gateway.fakes import FakePages, FakePorts
from tests.edge import edge_settings, served

if TYPE_CHECKING:
    from playwright.async_api import Page


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakePages({"town": "en", "other": "fr"}))


@pytest.fixture
def wrapped() -> list[Any]:
    """ASGI middlewares that a test puts around the gateway, to break connections for example."""
    return []


@pytest.fixture
async def url(fakes: FakePorts, wrapped: list[Any], tmp_path: Path) -> AsyncIterator[str]:
    """Where the gateway listens."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        handler: Any = gateway
        for middleware in wrapped:
            handler = middleware(handler)
        await handler(scope, receive, send)

    gateway = create_app(edge_settings(tmp_path), fakes.ports)
    async with served(app) as url:
        yield url


class Browser:
    """Opens pages; everything a page complains about is kept."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self.complaints: list[str] = []

    async def open(self, url: str, width: int = 1000, height: int = 800, scheme: str = "light") -> Page:
        context = await self._chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
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
