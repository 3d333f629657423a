"""The console behind a proxy that signs people in, over real connections. No Kafka needed.

    browser ─▶ proxy: takes out what the browser says of itself, puts in whom it knows ─▶ gateway, as `main` serves it

The proxy connects from an address of its own, 127.0.0.2, so that the gateway can tell it from whoever else is on this
machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from bs4 import BeautifulSoup
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.app import create_app
from gateway.edge.rates import Rates
from gateway.main import server_config
from pipelines.runtime.counts import SharedCounts
from tests.edge import edge_settings, served
from tests.fakes.ports import FakeIntake, FakePorts

PROXY = "127.0.0.2"
SETTINGS = {"proxies": [PROXY], "roles": [{"group": "it", "scope": "admin"}]}
ANNA = {"x-forwarded-email": "anna@town.example", "x-forwarded-groups": "staff,it"}
# Whom the proxy knows, by a cookie of its own.
KNOWN = {"_oauth2_proxy=anna": ANNA, "_oauth2_proxy=guest": ANNA | {"x-forwarded-groups": "guests"}}
HOPS = frozenset({"connection", "content-length", "transfer-encoding"})


def header_proxy(upstream: str) -> ASGIApp:
    """As oauth2-proxy does it by default: `--pass-user-headers`, `--pass-host-header`."""

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        known = KNOWN.get(request.headers.get("cookie", "").partition(";")[0], {})
        kept = [(name, value) for name, value in request.headers.items() if name not in ANNA.keys() | HOPS]
        assert request.client is not None
        sent = [*kept, *known.items(), ("x-forwarded-for", request.client.host)]
        transport = httpx.AsyncHTTPTransport(local_address=PROXY)
        async with httpx.AsyncClient(transport=transport, base_url=upstream, timeout=20) as client:
            target = f"{request.url.path}?{request.url.query}"
            answer = await client.request(request.method, target, headers=sent, content=await request.body())
        response = Response(answer.content, answer.status_code)
        response.raw_headers = [
            (name, value) for name, value in answer.headers.raw if name.lower().decode() not in ("transfer-encoding",)
        ]
        await response(scope, receive, send)

    return proxy


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakeIntake({"town": "en"}))


@pytest.fixture
async def gateway(fakes: FakePorts, tmp_path: Path) -> AsyncIterator[str]:
    app = create_app(edge_settings(tmp_path, proxy_sign_in=SETTINGS), fakes.ports)
    app.state.edge = replace(
        app.state.edge, rates=Rates("2/minute", SharedCounts(60, lambda: 0.0), SecretStr("salt"))
    )  # no minute ends meanwhile
    async with served(app, server_config(app)) as url:
        yield url


@pytest.fixture
async def browser(gateway: str) -> AsyncIterator[httpx.AsyncClient]:
    async with served(header_proxy(gateway)) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        yield client


async def test_whom_the_proxy_knows_is_signed_in_and_named(browser: httpx.AsyncClient, fakes: FakePorts) -> None:
    anna = {"Cookie": "_oauth2_proxy=anna"}
    page = BeautifulSoup((await browser.get("/console/keys", headers=anna)).text, "lxml")
    assert page.select(".who span")[0].get_text() == "Signed in: anna@town.example"
    form = {"token": str(page.select("main input[name=token]")[0]["value"]), "name": "new", "scope-view": "yes"}
    ours = {"Origin": str(browser.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert (await browser.post("/console/keys", data=form, headers=anna)).status_code == 403
    assert (await browser.post("/console/keys", data=form, headers=anna | ours)).status_code == 200
    [entry] = fakes.audit_log.kept
    assert (entry.who, entry.action, entry.target) == ("user:anna@town.example", "keys.create", "new")


async def test_the_proxy_lets_nobody_name_themselves(browser: httpx.AsyncClient) -> None:
    forged = {"X-Forwarded-Email": "anna@town.example", "X-Forwarded-Groups": "it"}
    answer = await browser.get("/console/keys", headers=forged)
    assert (answer.status_code, answer.headers["location"][:16]) == (303, "/console/sign-in")
    answer = await browser.get("/console/keys", headers=forged | {"Cookie": "_oauth2_proxy=guest"})
    assert answer.status_code == 403


@pytest.mark.parametrize("forwarded", ["", PROXY, f"203.0.113.9, {PROXY}", f"{PROXY}, 127.0.0.1"])
async def test_past_the_proxy_the_headers_mean_nothing(gateway: str, forwarded: str) -> None:
    """From 127.0.0.1, whose X-Forwarded-For uvicorn believes."""
    async with httpx.AsyncClient(base_url=gateway, timeout=20) as stranger:
        answer = await stranger.get("/console/keys", headers=ANNA | {"X-Forwarded-For": forwarded})
        assert (answer.status_code, answer.headers["location"][:16]) == (303, "/console/sign-in")


async def test_rates_still_count_by_the_browsers_address(gateway: str) -> None:
    """What uvicorn does with X-Forwarded-For, it does as before: each address has attempts of its own."""
    async with httpx.AsyncClient(base_url=gateway, timeout=20) as client:
        counted = [
            (await client.post("/console/sign-in", headers={"X-Forwarded-For": address})).status_code
            for address in ("203.0.113.1", "203.0.113.2")
            for _ in range(2)
        ]
        over = await client.post("/console/sign-in", headers={"X-Forwarded-For": "203.0.113.1"})
    assert (set(counted), over.status_code) == ({403}, 429)
