"""What keeps the callers of a route from keeping all others waiting: of each kind of bound, that it is one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import SecretStr

from gateway.app import create_app
from gateway.chat import conversations
from gateway.edge import gauges
from gateway.edge.bounds import Bound, bound_of
from gateway.edge.problems import Problem
from gateway.edge.rates import TIMES, AtOnce, Cached, Rates
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.errors import Retryable
from tests.edge import assert_problem, bearer, edge_settings, until
from tests.fakes.ports import FakePorts
from tests.signing import SECRET, signed

FILLED = {"site": "town", "model:path": "town", "path:path": "", "name": "light"}


def routes_of(app: FastAPI, *bounds: Bound) -> list[tuple[str, str]]:
    """Method and path of those that are bounded so."""
    return [
        (method, re.sub(r"\{([^}]+)\}", lambda found: FILLED.get(found[1], "abcdefgh"), known.path))
        for known in (route.original_route for route in iter_route_contexts(app.routes))
        if isinstance(known, APIRoute) and bound_of(known) in bounds
        for method in known.methods or ()
    ]


def test_every_route_says_what_bounds_it(app: FastAPI) -> None:
    silent = [route.path for route in iter_route_contexts(app.routes) if bound_of(route.original_route) is None]
    assert silent == []
    router = APIRouter()
    router.get("/forgotten")(lambda: None)
    assert bound_of(router.routes[0]) is None


async def test_visitors_are_counted_on_every_route_that_is_theirs(
    app: FastAPI, stranger: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "LISTED_WITHIN", 0)
    theirs = routes_of(app, "visitor")
    assert len(theirs) == 26
    for method, path in theirs:
        rates = Rates("1/day", SharedCounts(86_400, lambda: 0.0), SecretStr("salt"))
        app.state.edge = replace(app.state.edge, rates=rates)
        token = app.state.edge.tokens.issue("town").token
        tried = [
            (await stranger.request(method, path, headers=bearer(token), content=b"{}")).status_code
            for _ in range(max(TIMES.values()) + 1)
        ]
        assert tried[0] != 429, path
        assert tried[-1] == 429, path


class Untouched:
    """Ports of which none may be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the port {name} was asked")


async def test_what_is_answered_from_memory_asks_no_server(tmp_path: Path, fakes: FakePorts) -> None:
    app = create_app(edge_settings(tmp_path, sites={"town": {}, "demo": {}}), fakes.ports)
    app.state.edge = replace(app.state.edge, ports=Untouched())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        free = routes_of(app, "memory")
        assert {("GET", path) for path in ("/", "/healthz", "/widget.js", "/site/", "/console/sign-in")} < set(free)
        for method, path in free:
            assert (await client.request(method, path)).status_code < 400, path


async def at_once(client: httpx.AsyncClient, path: str, **more: Any) -> list[httpx.Response]:
    return list(await asyncio.gather(*(client.get(path, **more) for _ in range(16))))


async def test_what_is_kept_is_worked_out_once_for_all_who_ask(
    app: FastAPI, stranger: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {path for _, path in routes_of(app, "kept")} == {"/readyz", "/metrics", "/openapi.json"}
    asked: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def told(*given: Any) -> Any:
            asked.append(name)
            return real(*given)

        return told

    app.state.edge = replace(app.state.edge, readiness=Cached(counted("/readyz", fakes.status.ready), 1.0))
    monkeypatch.setattr(gauges.Exposition, "_write", counted("/metrics", gauges.Exposition._write))
    app.state.edge = replace(app.state.edge, exposition=gauges.Exposition(app.state.edge.gauges))
    for path in ("/readyz", "/metrics"):
        assert {(each.status_code, each.content) for each in await at_once(stranger, path)} != set()
        assert asked.count(path) == 1
    for accept in ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text; version=7.x"):
        scraped = await stranger.get("/metrics", headers={"Accept": accept})
        assert scraped.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert asked.count("/metrics") == 2


async def test_the_openapi_document_is_made_once_and_sent_once(app: FastAPI, stranger: httpx.AsyncClient) -> None:
    first, *others = await at_once(stranger, "/openapi.json")
    assert first.headers["content-type"] == "application/json"
    assert first.json()["openapi"].startswith("3.")
    assert {each.content for each in others} == {first.content}
    again = await stranger.get("/openapi.json", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_what_is_kept_is_made_anew_when_it_is_old_and_after_a_failure() -> None:
    now, made = 0.0, 0

    async def make() -> int:
        nonlocal made
        made += 1
        if made == 2:
            raise Retryable("away")
        return made

    kept = Cached(make, 1.0, lambda: now)
    assert await asyncio.gather(kept.get(), kept.get()) == [1, 1]
    now = 1.0
    with pytest.raises(Retryable):
        await kept.get()
    assert [await kept.get(), await kept.get()] == [3, 3]


def test_one_address_has_a_part_of_what_is_in_hand_at_once() -> None:
    hand = AtOnce(3, 2)
    with hand.one("192.0.2.1"), hand.one("2001:db8::1"), hand.one("::ffff:192.0.2.1"):
        with pytest.raises(Problem) as refused, hand.one("198.51.100.1"):  # of all
            pytest.fail("taken")
        assert (refused.value.status, refused.value.headers["Retry-After"]) == (429, "2")
    with hand.one("192.0.2.1"), hand.one("192.0.2.1"):
        with pytest.raises(Problem), hand.one("192.0.2.1"):  # of one
            pytest.fail("taken")
        with hand.one("192.0.2.2"):
            pass


async def test_deliveries_whose_sender_is_not_known_yet_are_few(tmp_path: Path, fakes: FakePorts) -> None:
    town = {"connectors": {"blog": {"kind": "push", "secret": SECRET}}}
    app = create_app(edge_settings(tmp_path, sites={"town": town}), fakes.ports)
    app.state.edge = replace(app.state.edge, deliveries=AtOnce(4, 1))
    more, body = asyncio.Event(), b'{"page": {"id": "a", "revision": 1}}'

    async def drips() -> AsyncIterator[bytes]:
        yield body[:9]
        await more.wait()
        yield body[9:]

    hook = "/v1/sites/town/webhooks/blog"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as sender:
        slow = asyncio.create_task(sender.post(hook, content=drips(), headers=signed(body)))
        await until(lambda: app.state.edge.deliveries._in_hand)
        assert_problem(await sender.post(hook, content=body, headers=signed(body)), 429, "too-many-requests")
        more.set()
        assert (await slow).status_code == 200
        assert (await sender.post(hook, content=body, headers=signed(body))).status_code == 200
