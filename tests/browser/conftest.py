"""A real Chromium (Debian's, never a downloaded one) that opens the gateway over its fakes."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.app import create_app
from tests.edge import edge_settings, served
from tests.fakes.ports import FakeIntake, FakePorts
from wiring.settings import SiteSettings

if TYPE_CHECKING:
    from playwright.async_api import Page


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}))


@pytest.fixture
def wrapped() -> list[Any]:
    """ASGI middlewares that a test puts around the gateway, for example to break connections."""
    return []


@pytest.fixture
async def url(fakes: FakePorts, wrapped: list[Any], tmp_path: Path) -> AsyncIterator[str]:
    """Where the gateway listens."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        handler: Any = gateway
        for middleware in wrapped:
            handler = middleware(handler)
        await handler(scope, receive, send)

    # A title as long as they come, with a word that cannot be broken.
    sites = {
        "town": SiteSettings(languages=("en", "de"), title="Kranichmünde"),
        "other": SiteSettings(languages=("fr",)),
    }
    gateway = create_app(edge_settings(tmp_path, sites=sites), fakes.ports)
    async with served(app) as url:
        yield url


# A body whose children have gaps between them: a chat that took part in its flow would move it.
HOST_PAGE = """<!DOCTYPE html>
<html lang="{lang}" dir="{dir}"><head><meta charset="utf-8"><title>Ours</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/host.css"></head>
<body><main><h1>Ours</h1><p>Read <a href="/more">more</a>.</p>{more}</main>
<script {kind}src="{gateway}/widget.js" {attributes}></script></body></html>"""
HOST_CSS = "html { font-size: 62.5% } body { display: grid; gap: 40px; font-size: 1.6rem }"
# The strictest that can be: everything else is forbidden, and no string becomes HTML or script.
STRICT = (
    "default-src 'none'; script-src {gateway}; connect-src {asked}; img-src data:; style-src 'self'; "
    "require-trusted-types-for 'script'"
)


class Host:
    """Another website, with the chat on its page."""

    def __init__(self, fakes: FakePorts, home: Path) -> None:
        self.fakes = fakes
        self.home = home
        self.origin = ""
        self.gateway = ""
        self._page = b""
        self._asked = ""  # origins that the page's scripts may call

    @asynccontextmanager
    async def serving(
        self,
        *,
        site: SiteSettings | None = None,
        invited: bool = True,
        lang: str = "en",
        dir: str = "ltr",
        kind: str = "",
        around: Any = lambda app: app,
        tag: Callable[[str], str] = str,
        more: Callable[[str], str] = lambda gateway: "",
        **attributes: str,
    ) -> AsyncIterator[str]:
        """The page's address.

        Args:
            site: its settings but the origins.
            around: a middleware of the gateway.
            tag: changes the attributes of the script tag, as they are written.
            more: HTML of the page besides, given the gateway's address.
        """

        async def website(scope: Any, receive: Any, send: Any) -> None:  # uvicorn would not know a method for ASGI 3
            await self._website(scope, send)

        async with served(website) as loopback:
            self.origin = loopback.replace("127.0.0.1", "localhost")  # another site, not just another port
            town = (site or SiteSettings()).model_copy(update={"origins": (self.origin,) if invited else ()})
            settings = edge_settings(self.home, sites={"town": town}, keys=())
            async with served(around(create_app(settings, self.fakes.ports))) as self.gateway:
                given = {"site": "town", "lang": lang, "heading": "the town", **attributes}
                own = {"token-url", "gateway"} & set(attributes)
                self._asked = f"{self.gateway} 'self'" if own else self.gateway
                written = tag(" ".join(f'data-{name}="{escape(value)}"' for name, value in given.items()))
                self._page = HOST_PAGE.format(
                    lang=lang, dir=dir, kind=kind, gateway=self.gateway, attributes=written, more=more(self.gateway)
                ).encode()
                yield self.origin

    async def _website(self, scope: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        css = scope["path"] == "/host.css"
        headers = [
            (b"content-type", b"text/css" if css else b"text/html"),
            (b"content-security-policy", STRICT.format(gateway=self.gateway, asked=self._asked).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": HOST_CSS.encode() if css else self._page})


WIDGET = Path(__file__).parents[2] / "widget"


@pytest.fixture(scope="session")
def markdown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """widget/src/markdown.ts as a script that sets the global `markdown`."""
    built = tmp_path_factory.mktemp("widget") / "markdown.js"
    esbuild = [WIDGET / "node_modules/.bin/esbuild", WIDGET / "src/markdown.ts", "--bundle", "--global-name=markdown"]
    subprocess.run([*esbuild, f"--outfile={built}", "--log-level=error"], check=True, timeout=60)
    return built.read_text("utf-8").replace("var markdown =", "globalThis.markdown =", 1)


@pytest.fixture
def host(fakes: FakePorts, tmp_path: Path) -> Host:
    return Host(fakes, tmp_path)


async def overflow(page: Page) -> list[int]:
    """The overflow, in pixels, of the page, the panel's head and its scroller."""
    found: list[int] = await page.evaluate(
        """() => {
          const root = document.querySelector("pagewire-chat").shadowRoot;
          return [document.documentElement, root.querySelector(".head"), root.querySelector(".scroller")]
            .map((node) => node.scrollWidth - node.clientWidth);
        }"""
    )
    return found


async def chips(page: Page) -> list[str]:
    """(number, title) of each shown source."""
    return [" ".join((await chip.inner_text()).split()) for chip in await page.locator(".chip").all()]
