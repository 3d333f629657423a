"""Addresses that a website says have changed, at the edge."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app import VISITS_OF_ONE, create_app
from gateway.content import changed as route
from pipelines.runtime.errors import Retryable
from schemas.changed import ChangedAddress
from tests.edge import CHAT_ANYWHERE, INGEST_TOWN, assert_problem, bearer, edge_settings, until
from tests.fakes.ports import FakePorts
from tests.signing import SECRET

WEB = {"kind": "sitemap", "url": "https://www.town.example"}
PUSH = {"kind": "push", "secret": SECRET}
URL = "/v1/sites/town/connectors/web/changed"


async def test_the_door_and_the_shape(tmp_path: Path, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = edge_settings(tmp_path, sites={"town": {"connectors": {"web": WEB, "hook": PUSH}}, "other": {}})
    urls = ["https://www.town.example/a"]

    async def take(_: Any, site: str, name: str, told: tuple[str, ...], *ports: Any) -> list[ChangedAddress]:
        return [ChangedAddress(url=url, state="accepted", detail=f"{site} {name}") for url in told]

    app = create_app(settings, fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:

        async def post(url: str = URL, key: str = INGEST_TOWN, **body: Any) -> httpx.Response:
            return await client.post(url, json=body, headers=bearer(key))

        assert_problem(await client.post(URL, json={"urlList": urls}), 401, "unauthorized")
        assert_problem(await post(key=CHAT_ANYWHERE, urlList=urls), 403, "forbidden")
        assert_problem(await post(URL.replace("web", "wbe"), urlList=urls), 404, "unknown-connector")
        assert_problem(await post(URL.replace("web", "hook"), urlList=urls), 409, "no-source")
        assert_problem(await post(urlList=urls * 101), 413, "too-large")
        assert_problem(await post(urlList=urls * 50_000), 413, "too-large")
        for wrong in ([], [""], "x", [1]):
            assert_problem(await post(urlList=wrong), 422, "invalid")
        monkeypatch.setattr(route, "take_changed", take)
        told = await post(host="www.town.example", key_="x", urlList=urls)  # IndexNow's other fields
        assert (told.status_code, told.json()["addresses"][0]["detail"]) == (200, "town web")


async def test_indexnow_is_accepted_by_its_key_and_visited_in_turn(
    tmp_path: Path, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a1b2c3d4-indexnow"
    sites = {"town": {"connectors": {"web": WEB | {"indexnow_key": key}, "silent": WEB, "hook": PUSH}}}
    urls = ["https://www.town.example/a", "http://WWW.town.example/b"]
    order = {"host": "www.town.example", "key": key, "keyLocation": f"https://x.example/{key}.txt", "urlList": urls}
    visited: list[tuple[str, ...]] = []
    at_work, open_door = [], asyncio.Event()

    async def take(_: Any, site: str, name: str, told: tuple[str, ...], *ports: Any) -> list[ChangedAddress]:
        at_work.append(name)
        assert at_work == ["web"], "two at once"
        await open_door.wait()
        at_work.clear()
        visited.append(told)
        if len(visited) == 2:
            raise Retryable("the broker is down")
        return [ChangedAddress(url=url, state="accepted") for url in told]

    monkeypatch.setattr(route, "take_changed", take)
    app = create_app(edge_settings(tmp_path, sites=sites, visitor_rate="100/minute"), fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:

        async def post(connector: str = "web", body: Any = None, **more: Any) -> httpx.Response:
            return await client.post(
                f"/v1/sites/town/connectors/{connector}/indexnow", json=order | more if body is None else body
            )

        for unknown in ("silent", "hook", "wbe"):
            assert_problem(await post(unknown), 404, "unknown-connector")
        assert_problem(
            await client.post("/v1/sites/twon/connectors/web/indexnow", json=order), 404, "unknown-connector"
        )
        for wrong in ("", "a1b2c3d4-indexnov", "ü" * 8):
            assert (await post(key=wrong)).status_code == (403 if wrong else 400), wrong
        for odd in ([], {}, {"urlList": urls}, order | {"urlList": []}, order | {"urlList": [1]}, order | {"key": 1}):
            assert_problem(await post(body=odd), 400, "invalid")
        broken = await client.post("/v1/sites/town/connectors/web/indexnow", content=b"{")
        assert_problem(broken, 400, "bad-json")
        for foreign in ("https://other.example/x", "http://127.0.0.1/x", "https://www.town.example:99999/", "x", "//["):
            assert_problem(await post(urlList=[*urls, foreign]), 422, "invalid")
        for host in ("other.example", "town.example", "["):
            assert_problem(await post(host=host), 422, "invalid")
        assert_problem(await post(urlList=["https://www.town.example/"] * 101), 422, "invalid")
        assert_problem(await post(urlList=["https://www.town.example/"] * 50_000), 413, "too-large")
        assert not at_work

        pushed = [asyncio.create_task(post()) for _ in range(VISITS_OF_ONE)]
        await until(lambda: at_work and sum(app.state.edge.visits._in_hand.values()) == VISITS_OF_ONE)
        refused = await post()
        assert_problem(refused, 429, "too-many-requests")
        assert "Retry-After" in refused.headers
        open_door.set()
        answers = await asyncio.gather(*pushed)
        assert {(answer.status_code, answer.content) for answer in answers} == {(202, b"")}
        assert visited == [tuple(urls)] * VISITS_OF_ONE
        assert (await post()).status_code == 202  # nothing is held any more

        async def get(url: str, **more: str) -> httpx.Response:
            return await client.get("/v1/sites/town/connectors/web/indexnow", params={"url": url, "key": key} | more)

        assert ((await get(urls[1])).status_code, visited[-1]) == (202, (urls[1],))
        for foreign in ("https://other.example/x", "//[", ""):
            assert_problem(await get(foreign), 422, "invalid")
        assert_problem(await get(urls[0], key="another-key"), 403, "forbidden")
        assert len(visited) == VISITS_OF_ONE + 2

    app = create_app(edge_settings(tmp_path, sites=sites, visitor_rate="1/hour"), fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        tried = [await post(key="another-key") for _ in range(6)]
        assert [answer.status_code for answer in tried] == [403] * 5 + [429]
