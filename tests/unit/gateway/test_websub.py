"""The callback of WebSub subscriptions, at the edge."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from connectors.cms.sitemap.websub import Subscription
from gateway.app import create_app
from gateway.content import changed
from schemas.changed import ChangedAddress
from tests.edge import assert_problem, edge_settings, until
from tests.fakes.ports import FakePorts

SITE = "https://www.town.example"
TOPIC = f"{SITE}/feed?kind=news"
OWN_SECRET = "the secret of all gateways of this test"
WEB = {"kind": "sitemap", "url": SITE, "websub": "https://chat.example.org", "feeds": [TOPIC]}
SUBSCRIPTION = Subscription("town", "news", TOPIC, SecretStr(OWN_SECRET))
FEED = (
    b"<rss version='2.0'><channel><item><link>/a</link></item><item><link>https://other.example/x</link></item>"
    b"<item><link>//[</link></item><item><link>/a</link></item></channel></rss>"
)


def made(tmp_path: Path, fakes: FakePorts, **more: Any) -> httpx.AsyncClient:
    sites = {"town": {"connectors": {"news": WEB, "silent": {"kind": "sitemap", "url": SITE}}}}
    app = create_app(edge_settings(tmp_path, sites=sites, token_secret=OWN_SECRET, **more), fakes.ports)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test")


def callback(subscription: Subscription = SUBSCRIPTION) -> str:
    return subscription.callback("http://gateway.test")


async def test_a_hub_hears_whether_this_was_subscribed(tmp_path: Path, fakes: FakePorts) -> None:
    async with made(tmp_path, fakes) as hub:

        async def asked(url: str = callback(), **more: str) -> httpx.Response:
            query = {"mode": "subscribe", "topic": TOPIC, "challenge": "c<b>1", "lease_seconds": "864000"} | more
            said = httpx.URL(url).copy_merge_params({f"hub.{name}": value for name, value in query.items() if value})
            return await hub.get(said)

        answer = await asked()
        assert (answer.status_code, answer.text) == (200, "c<b>1")
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await asked(mode="denied", reason="no such topic", challenge="")).status_code == 200
        for wrong in ({"mode": "unsubscribe"}, {"topic": f"{TOPIC}&x"}, {"challenge": ""}, {"mode": "publish"}):
            assert_problem(await asked(**wrong), 404, "unknown-connector")
        for other in (
            Subscription("town", "silent", TOPIC, SecretStr(OWN_SECRET)),
            Subscription("twon", "news", TOPIC, SecretStr(OWN_SECRET)),
            Subscription("town", "news", TOPIC, SecretStr("of somebody else")),
        ):
            assert_problem(await asked(callback(other)), 404, "unknown-connector")
        assert_problem(await asked(callback().replace("kind%3Dnews", "kind%3Dother")), 404, "unknown-connector")
        assert_problem(await asked(mode="x" * 30), 422, "invalid")
        assert_problem(await hub.get("/v1/sites/town/connectors/news/websub"), 422, "invalid")


async def test_entries_are_visited_if_the_hub_has_signed_them(
    tmp_path: Path, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited: list[list[str]] = []

    async def take(_: Any, site: str, name: str, urls: list[str], *ports: Any) -> list[ChangedAddress]:
        visited.append(urls)
        return [ChangedAddress(url=url, state="accepted") for url in urls]

    monkeypatch.setattr(changed, "take_changed", take)
    async with made(tmp_path, fakes) as hub:

        async def sent(body: bytes, key: str = SUBSCRIPTION.key, url: str = callback()) -> httpx.Response:
            signature = f"sha256={hmac.digest(key.encode(), body, 'sha256').hex()}"
            return await hub.post(url, content=body, headers={"X-Hub-Signature": signature})

        answer = await sent(FEED)
        assert (answer.status_code, answer.content) == (202, b"")
        await until(lambda: visited)
        assert visited == [[f"{SITE}/a"]]
        for left_alone in (sent(FEED, "another key"), sent(b"<html>"), sent(b""), hub.post(callback(), content=FEED)):
            assert (await left_alone).status_code == 202
        assert_problem(await sent(FEED, url=callback().replace("token=", "token=x")), 404, "unknown-connector")
        assert_problem(await sent(b"x" * (5 * 1024 * 1024 + 1)), 413, "too-large")
        assert len(visited) == 1


async def test_hubs_are_counted_by_address(tmp_path: Path, fakes: FakePorts) -> None:
    async with made(tmp_path, fakes, visitor_rate="1/hour") as hub:
        tried = [(await hub.post(f"{callback()}x", content=b"")).status_code for _ in range(6)]
    assert tried == [404] * 5 + [429]
