"""Who may do what, and how a stranger is told that he may not."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pydantic import SecretStr
from structlog.testing import capture_logs

from gateway.app import create_app
from gateway.console.view import SESSION_COOKIE
from gateway.edge.auth import admin_key, token_secret
from gateway.edge.problems import Problem
from gateway.edge.rates import ADDRESS_FACTOR, Cached, DailyBudgets, Rates, network, window
from gateway.edge.tokens import Visitor, VisitorTokens
from pipelines.runtime.counts import DAY, SharedCounts
from pipelines.runtime.errors import Retryable, SettingsError
from schemas.access_key import digest_of
from tests.edge import (
    ADMIN,
    CHAT_ANYWHERE,
    INGEST_TOWN,
    PAGE_ORIGIN,
    assert_problem,
    bearer,
    edge_settings,
)
from tests.fakes.ports import FakePorts
from tests.tracing import traced
from wiring.settings import ChatSettings, Settings, SiteSettings

INGEST = ("PUT", "/v1/sites/town/pages/fees")
ELSEWHERE = ("PUT", "/v1/sites/other/pages/fees")
RECEIPT = ("GET", "/v1/sites/town/pages/fees/receipt")
BULK = ("POST", "/v1/sites/town/pages:bulk")
DELETE = ("DELETE", "/v1/sites/town/pages/fees")
CHAT = ("POST", "/v1/sites/town/chat")
CHAT_ELSEWHERE = ("POST", "/v1/sites/other/chat")
SEARCH = ("GET", "/v1/sites/town/search?q=fees")
RESUME = ("GET", "/v1/sites/town/answers/request-1/events")
STATUS = ("GET", "/v1/admin/status")
LETTERS = (("GET", "/v1/admin/dlq"), ("DELETE", "/v1/admin/dlq/cms.changes/0/1"), ("POST", "/v1/admin/dlq:redrive"))
EVERYTHING = (INGEST, ELSEWHERE, RECEIPT, BULK, DELETE, CHAT, CHAT_ELSEWHERE, SEARCH, RESUME, STATUS, *LETTERS)


@pytest.mark.parametrize("route", EVERYTHING, ids=lambda r: f"{r[0]} {r[1]}")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong"),
        bearer("schlüssel").copy(),
        {"Authorization": "Basic YWRtaW46YWRtaW4="},
        {"Authorization": "Bearer"},
        {"Authorization": f"Token {ADMIN}"},
    ],
    ids=["none", "wrong", "not ASCII", "basic", "empty", "another scheme"],
)
async def test_strangers_are_challenged(
    stranger: httpx.AsyncClient, fakes: FakePorts, route: tuple[str, str], headers: dict[str, str]
) -> None:
    encoded = [(k.encode(), v.encode()) for k, v in headers.items()]
    response = await stranger.request(*route, headers=encoded, content=b"{}")
    assert_problem(response, 401, "unauthorized")
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert fakes.pages.changes == {}


async def test_an_empty_caller_is_nobody_even_where_a_key_is_empty(tmp_path: Path, fakes: FakePorts) -> None:
    """The settings refuse such keys; should one get in all the same, it opens nothing."""
    settings = edge_settings(tmp_path)
    nothing = settings.keys[0].model_copy(update={"sha256": digest_of("")})
    empty = settings.model_copy(update={"admin_key": SecretStr(""), "keys": (nothing,)})
    app = create_app(empty, fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        for header in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer"}, {"Cookie": f"{SESSION_COOKIE}="}):
            assert (await client.request(*STATUS, headers=header)).status_code == 401
            assert (await client.post("/v1/sites/town/visitor-tokens", headers=header)).status_code == 403
        ours = {"Origin": "http://gateway.test"}
        for field in ({"key": ""}, {}):
            signed = await client.post("/console/sign-in", data=field, headers=ours)
            assert signed.status_code != 303
            assert "set-cookie" not in signed.headers
    for caller in (app.state.edge.keys.caller, app.state.edge.sessions.begin, app.state.edge.sessions.caller):
        assert caller("") is None


async def test_a_strangers_body_is_not_read(stranger: httpx.AsyncClient) -> None:
    async def never():  # type: ignore[no-untyped-def]
        raise AssertionError("was read")
        yield b""

    assert_problem(await stranger.post("/v1/sites/town/pages:bulk", content=never()), 401, "unauthorized")


async def test_a_smaller_key_does_not_learn_which_sites_exist(stranger: httpx.AsyncClient) -> None:
    for site in ("other", "nowhere"):
        response = await stranger.put(f"/v1/sites/{site}/pages/x", headers=bearer(INGEST_TOWN), content=b"{}")
        assert_problem(response, 403, "forbidden")


@pytest.mark.parametrize("route", [r for r in EVERYTHING if "/town/" in r[1]], ids=lambda r: f"{r[0]} {r[1]}")
async def test_an_unknown_site_is_unknown_everywhere(client: httpx.AsyncClient, route: tuple[str, str]) -> None:
    method, path = route
    response = await client.request(method, path.replace("/town/", "/nowhere/"), content=b"{}")
    assert_problem(response, 404, "unknown-site")


async def test_keys_and_questions_never_reach_the_log(
    stranger: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with capture_logs() as logs:
        await stranger.get("/v1/sites/town/search?q=private-matter", headers=bearer(ADMIN))
        await stranger.get("/v1/sites/town/search?q=private-matter", headers=bearer("mistyped-key"))
        await stranger.post("/v1/sites/town/chat", headers=bearer(ADMIN), json={"question": "private-matter"})
    seen = [str(line) for line in logs]
    seen += [str(vars(r)) for r in caplog.records if not r.name.startswith(("httpx", "httpcore"))]
    assert any("/v1/sites/town/search" in line for line in seen)
    assert not any(word in line for line in seen for word in (ADMIN, "mistyped-key", "private-matter"))


async def test_open_doors(app: FastAPI, stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert (await stranger.get("/healthz")).json() == {"status": "ok"}
    assert (await stranger.get("/readyz")).json() == {"ready": True, "problems": {}}
    fakes.status.problems["kafka"] = "does not answer"
    app.state.edge = replace(app.state.edge, readiness=Cached(fakes.status.ready))
    response = await stranger.get("/readyz")
    assert (response.status_code, response.json()["problems"]) == (503, {"kafka": "does not answer"})
    metrics = await stranger.get("/metrics")
    assert 'pagewire_http_request_seconds_count{method="GET",route="/readyz",status="503"}' in metrics.text
    assert metrics.headers["content-type"].startswith("text/plain")


async def test_a_scraper_that_asks_for_openmetrics_gets_traces_beside_what_is_counted(
    stranger: httpx.AsyncClient,
) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with traced():
        await stranger.get("/", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"  # as Prometheus does
    scraped = await stranger.get("/metrics", headers={"Accept": accept})
    assert scraped.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    exemplars = [
        sample.exemplar.labels["trace_id"]
        for family in text_string_to_metric_families(scraped.text)
        for sample in family.samples
        if sample.exemplar is not None and sample.name == "pagewire_http_request_seconds_bucket"
    ]
    assert trace in exemplars


# Visitor tokens


@pytest.mark.parametrize("origin", [PAGE_ORIGIN, "http://gateway.test", "https://gateway.test"])
async def test_allowed_pages_get_a_token_that_works(stranger: httpx.AsyncClient, origin: str) -> None:
    response = await stranger.post("/v1/sites/town/visitor-tokens", headers={"Origin": origin})
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    lives = datetime.fromisoformat(response.json()["expires_at"]) - datetime.now(UTC)
    assert 3_500 < lives.total_seconds() <= 3_600
    found = await stranger.get("/v1/sites/town/search?q=x", headers=bearer(response.json()["token"]))
    assert found.status_code == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "http://www.town.example", f"{PAGE_ORIGIN}:444", "http://", ""]
)
async def test_other_pages_get_none(stranger: httpx.AsyncClient, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin}
    response = await stranger.post("/v1/sites/town/visitor-tokens", headers=headers)
    assert_problem(response, 403, "origin-not-allowed")
    # They may read that they are refused, and nothing else.
    assert response.headers["access-control-allow-origin"] == "*"
    preflight = await stranger.options("/v1/sites/town/chat", headers=headers)
    assert "access-control-allow-origin" not in preflight.headers


async def test_an_origin_counts_for_its_own_site(stranger: httpx.AsyncClient) -> None:
    response = await stranger.post("/v1/sites/other/visitor-tokens", headers={"Origin": PAGE_ORIGIN})
    assert_problem(response, 403, "origin-not-allowed")


async def test_no_token_for_an_unknown_site_and_no_list_of_the_others(stranger: httpx.AsyncClient) -> None:
    response = await stranger.post("/v1/sites/nowhere/visitor-tokens", headers={"Origin": PAGE_ORIGIN})
    assert "town" not in assert_problem(response, 404, "unknown-site")["detail"]
    # Its page may read that: there is a mistake in its tag, which the chat tells the page's developer.
    assert response.headers["access-control-allow-origin"] == "*"


def tokens_at(now: float, secret: str = "s" * 32) -> VisitorTokens:
    return VisitorTokens(SecretStr(secret), ttl=60, renewable=1_000, clock=lambda: now)


def test_a_token_speaks_for_one_visitor_of_one_site_for_a_while() -> None:
    issued = tokens_at(1_000).issue("town")
    assert issued.expires_at.timestamp() == 1_060
    visitor = tokens_at(1_059).verify(issued.token)
    assert visitor is not None
    assert visitor.site == "town"
    assert tokens_at(1_060).verify(issued.token) is None
    assert tokens_at(1_000).issue("town").token != issued.token


def test_a_token_that_is_over_is_good_for_a_new_one_for_a_while() -> None:
    first = tokens_at(1_000).issue("town").token
    visitor = tokens_at(1_000).verify(first)
    assert visitor is not None
    renewed = tokens_at(2_059).issue("town", first).token
    assert tokens_at(2_100).verify(renewed) == visitor
    assert tokens_at(2_059).verify(first) is None  # the old one opens nothing
    for site, now, before in (("town", 2_060, first), ("other", 1_000, first), ("town", 1_000, f"{first[:-4]}AAAA")):
        stranger = tokens_at(now).verify(tokens_at(now).issue(site, before).token)
        assert stranger is not None
        assert stranger.visitor != visitor.visitor


def test_an_altered_token_is_nobodys() -> None:
    token = tokens_at(1_000).issue("town").token
    for at in range(len(token) - 1):  # the last character's low bits are padding
        altered = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        assert tokens_at(1_000).verify(altered) is None, at
    assert tokens_at(1_000, secret="t" * 32).verify(token) is None


@pytest.mark.parametrize("token", ["", ".", "pwv1..", "pwv1.e30.", "\ud800.x", "ü.ü", "a.b.c.d", "x" * 100_000])
def test_garbage_is_nobodys(token: str) -> None:
    assert tokens_at(0).verify(token) is None


def test_two_gateways_of_a_home_know_each_others_visitors(tmp_path: Path) -> None:
    home = Settings(home=tmp_path)
    issued = VisitorTokens(token_secret(home), 60).issue("town")
    assert isinstance(VisitorTokens(token_secret(home), 60).verify(issued.token), Visitor)


# Keys on disk


def test_the_admin_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "new")
    key, path = admin_key(settings)
    assert path == tmp_path / "new" / "admin.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(key.get_secret_value()) >= 32
    assert admin_key(settings)[0].get_secret_value() == key.get_secret_value()
    assert [p.name for p in path.parent.iterdir()] == ["admin.key"]


def test_a_configured_admin_key_touches_no_disk(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "new", admin_key=SecretStr("configured-by-hand"))
    assert admin_key(settings) == (SecretStr("configured-by-hand"), None)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", ["", "\n", "k\n", "k" * 15, "k" * 20 + "\n" + "k" * 20])
def test_a_file_that_holds_no_good_secret_is_refused(tmp_path: Path, content: str) -> None:
    for name, secret in (("admin.key", admin_key), ("token.secret", token_secret)):
        (tmp_path / name).write_text(content)
        with pytest.raises(SettingsError) as refused:
            secret(Settings(home=tmp_path))
        message = str(refused.value)
        assert name in message
        assert f"rm {tmp_path / name}" in message
        assert "kkk" not in message
        assert (tmp_path / name).read_text() == content


def test_a_secret_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    key, path = admin_key(settings)
    assert path is not None
    with capture_logs() as said:
        admin_key(settings)
        path.chmod(0o660)
        admin_key(settings)
    assert said == []
    path.chmod(0o604)
    with capture_logs() as said:
        assert admin_key(settings)[0] == key
    assert [line["remedy"] for line in said] == [f"chmod o= {path}"]


def test_a_secret_is_on_the_disk_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    admin_key(Settings(home=tmp_path))
    [draft, folder] = synced
    assert draft.startswith(f"{tmp_path}/admin.key.")
    assert folder == str(tmp_path)


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"admin\.key"):
        admin_key(Settings(home=tmp_path / "file"))


# Rates


class Clock:
    def __init__(self) -> None:
        self.now = 600.0

    def __call__(self) -> float:
        return self.now


def rates_of(rate: str, clock: Clock) -> Rates:
    return Rates(rate, SharedCounts(window(rate), clock), SecretStr("salt"))


def test_a_visitor_has_a_budget_per_window() -> None:
    clock = Clock()
    rates = rates_of("2/minute", clock)
    for visitor in ("a", "b"):
        rates.count("ask", "::1", visitor)
        rates.count("ask", "::1", visitor)
        with pytest.raises(Problem) as refused:
            rates.count("ask", "::1", visitor)
        assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "61"})
        rates.count("search", "::1", visitor)
    clock.now += 60
    rates.count("ask", "::1", "a")


def test_new_tokens_do_not_buy_an_address_more() -> None:
    rates = rates_of("2/minute", Clock())
    for visitor in range(2 * ADDRESS_FACTOR):
        rates.count("ask", "::1", str(visitor))
    with pytest.raises(Problem):
        rates.count("ask", "::1", "yet another")
    rates.count("ask", "2001:db8::1", "elsewhere")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("unknown", "unknown", True),
    ],
)
def test_who_has_a_network_of_ipv6_is_one_address(one: str, other: str, *, same: bool) -> None:
    assert (network(one) == network(other)) is same


def test_neither_visitors_nor_addresses_can_be_read_from_what_is_shared() -> None:
    counts = SharedCounts(60, Clock())
    Rates("2/minute", counts, SecretStr("salt")).count("ask", "192.0.2.1", "visitor-1")
    [said] = counts.changes()
    assert len(said.counts) == 2
    assert "192.0.2.1" not in said.model_dump_json()
    assert "visitor-1" not in said.model_dump_json()


@pytest.mark.parametrize("route", [CHAT, SEARCH])
async def test_visitors_are_limited_and_programs_are_not(
    tmp_path: Path, fakes: FakePorts, route: tuple[str, str]
) -> None:
    app = create_app(edge_settings(tmp_path, visitor_rate="2/day"), fakes.ports)
    visitor = app.state.edge.tokens.issue("town").token
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:

        async def ask(key: str) -> httpx.Response:
            return await client.request(*route, json={"question": "?"}, headers=bearer(key))

        asked = [await ask(visitor) for _ in range(3)]
        assert [r.status_code for r in asked] == [200, 200, 429]
        assert_problem(asked[-1], 429, "too-many-requests")
        assert int(asked[-1].headers["retry-after"]) > 0
        for _ in range(2 * ADDRESS_FACTOR + 1):
            assert (await ask(CHAT_ANYWHERE)).status_code == 200


def test_a_site_has_a_budget_per_day() -> None:
    clock = Clock()
    budgets = DailyBudgets({"town": 2, "other": None}, SharedCounts(DAY, clock))
    for _ in range(2):
        with budgets.question("town"):
            pass
    with pytest.raises(Problem) as refused, budgets.question("town"):
        pytest.fail("let in")
    assert (refused.value.status, refused.value.code) == (429, "daily-budget")
    assert refused.value.headers == {"Retry-After": str(86_400 - 600 + 1)}
    for _ in range(3):
        with budgets.question("other"):
            pass
    clock.now = 86_400.0
    with budgets.question("town"):
        pass


@pytest.mark.parametrize(
    ("ends", "costs"),
    [
        (Problem(409, "answer-under-way", "?"), False),
        (Retryable("no broker"), False),
        (Problem(504, "timeout", "?"), True),
        (asyncio.CancelledError(), True),
    ],
)
def test_what_is_refused_for_another_reason_costs_no_question_of_the_day(ends: BaseException, *, costs: bool) -> None:
    counts = SharedCounts(DAY, Clock())
    budgets = DailyBudgets({"town": 1}, counts)
    with pytest.raises(type(ends)), budgets.question("town"):
        raise ends
    assert counts.of("questions town") == costs


def test_questions_that_are_being_taken_in_count() -> None:
    budgets = DailyBudgets({"town": 1}, SharedCounts(DAY, Clock()))
    with budgets.question("town"), pytest.raises(Problem), budgets.question("town"):
        pytest.fail("let in")


async def test_visitors_share_a_daily_budget_and_programs_do_not(tmp_path: Path, fakes: FakePorts) -> None:
    town = SiteSettings(chat=ChatSettings(daily_questions=2))
    app = create_app(edge_settings(tmp_path, sites={"town": town}), fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:

        async def ask(key: str) -> httpx.Response:
            return await client.request(*CHAT, json={"question": "?"}, headers=bearer(key))

        asked = [await ask(app.state.edge.tokens.issue("town").token) for _ in range(3)]
        assert [r.status_code for r in asked] == [200, 200, 429]
        assert_problem(asked[-1], 429, "daily-budget")
        assert int(asked[-1].headers["retry-after"]) > 0
        assert (await ask(CHAT_ANYWHERE)).status_code == 200


async def test_a_chat_that_is_switched_off_answers_nobody(tmp_path: Path, fakes: FakePorts) -> None:
    app = create_app(
        edge_settings(tmp_path, sites={"town": SiteSettings(chat=ChatSettings(enabled=False))}), fakes.ports
    )
    completion = {"model": "town", "messages": [{"role": "user", "content": "?"}]}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        for key in (app.state.edge.tokens.issue("town").token, CHAT_ANYWHERE, ADMIN):
            refused = await client.request(*CHAT, json={"question": "?"}, headers=bearer(key))
            assert_problem(refused, 403, "chat-off")
        refused = await client.post("/v1/chat/completions", json=completion, headers=bearer(ADMIN))
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "chat-off")
    assert fakes.answers.asked == []
