"""What assistants get follows the editor's save: a page's Markdown, llms.txt, the tools over HTTP and stdio."""

from __future__ import annotations

import json

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation, TextContent

from tests.acceptance.conftest import System
from tests.acceptance.system import PAGEWIRE
from tests.acceptance.test_story import put

pytestmark = pytest.mark.engine

SAID = {"@type": "Article", "datePublished": "2026-03-02", "author": [{"name": "Ada Lind"}, {"name": "Bo Vik"}]}
FARES = "<h2>Fares</h2><p>A ticket for the cable car costs {} euros.</p>"
QUESTION = "How much is a ticket for the cable car?"


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def heard(client: Client) -> tuple[str, str, str]:
    """What the three tools say of the page."""
    found = await client.call_tool("search", {"query": "cable car ticket", "limit": 3})
    answer = await client.call_tool("ask", {"question": QUESTION, "lang": "en"})
    page = await client.call_tool("get_page", {"url": "https://town.example/cable-car"})
    return text_of(found), text_of(answer), text_of(page)


async def test_a_save_is_what_assistants_get_and_a_deleted_page_is_gone_from_all(system: System) -> None:
    site = system.site
    put(site, "cable-car", FARES.format(7), 10, title="Cable car")
    first = site.get("/pages/cable-car.md", headers={"Accept": "text/markdown"})
    assert "costs 7 euros" in first.text
    machine = f'<script type="application/ld+json">{json.dumps(SAID)}</script>'
    saved = put(site, "cable-car", machine + FARES.format(8), 11, title="Cable car")
    assert saved.json()["searchable_revision"] == 11
    twin = site.get("/pages/cable-car.md", headers={"If-None-Match": first.headers["etag"]})
    assert (twin.status_code, "\nrevision: 11\n" in twin.text) == (200, True)
    assert twin.text.endswith("---\n\n## Fares\n\nA ticket for the cable car costs 8 euros.\n")
    assert "\n  author:\n  - Ada Lind\n  - Bo Vik\n" in twin.text
    assert "\npublished_at: '2026-03-02T00:00:00+00:00'\n" in twin.text
    assert "[Cable car](pages/cable-car.md?lang=en)" in site.get("/llms.txt").text

    here = system.instance
    stdio = StdioServerParameters(command=str(PAGEWIRE), args=["mcp", here.site], env=here.environment)
    async with (
        httpx2.AsyncClient(timeout=60) as http,  # without a key
        Client(streamable_http_client(f"{system.url}/v1/sites/{here.site}/mcp", http_client=http)) as remote,
        Client(stdio, client_info=Implementation(name="town-desk", version="2")) as local,
    ):
        for client in (remote, local):
            for said in await heard(client):
                assert "8 euros" in said
                assert "7 euros" not in said
        site.delete("/pages/cable-car", params={"lang": "en", "revision": 12, "wait": "searchable", "timeout": 60})
        for client in (remote, local):
            found, answer, page = await heard(client)
            assert not any("8 euros" in said or "cable-car" in said for said in (found, answer, page))
            assert page.startswith("unknown-page")
    assert site.get("/pages/cable-car.md").status_code == 404
    assert "cable-car" not in site.get("/llms.txt").text + site.get("/llms-full.txt").text
    logged = here.run("questions", here.site, "--json")
    assert QUESTION in logged.stdout, logged.stderr
    assert '"client": "town-desk"' in logged.stdout  # the assistant that started `pagewire mcp`
