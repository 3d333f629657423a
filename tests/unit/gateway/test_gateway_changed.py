"""Addresses that a website says have changed, at the edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app import create_app
from gateway.content import changed as route
from gateway.fakes import FakePorts
from schemas.changed import ChangedAddress
from tests.edge import CHAT_ANYWHERE, INGEST_TOWN, assert_problem, bearer, edge_settings
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
