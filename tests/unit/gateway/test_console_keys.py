"""Keys and the audit log in the console, over the gateway's fakes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from bs4 import BeautifulSoup
from fastapi import FastAPI

from gateway.console import console
from pipelines.operate.access_keys import FiledKey
from pipelines.runtime.errors import Retryable
from schemas.access_key import digest_of, key_id
from schemas.audit_log import AuditEntry
from tests.console import ACT, EVIL, KEY, console_ports
from tests.edge import ADMIN, INGEST_TOWN, bearer
from tests.fakes.ports import FakePorts
from tests.making import NOON

OURS = {"Origin": "http://gateway.test"}
KEYS = "/console/keys"
LOG = "/console/audit-log"


@pytest.fixture
def fakes() -> FakePorts:
    filed = FiledKey("cms", digest_of(INGEST_TOWN), ("ingest",), "town", ())
    made = replace(console_ports(), filed=(filed,))
    made.keys.kept[KEY.name] = KEY
    return made


@pytest.fixture
async def operator(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await stranger.post("/console/sign-in", data={"key": ADMIN}, headers=OURS)).status_code == 303
    return stranger


def page_of(answer: httpx.Response, status: int = 200) -> BeautifulSoup:
    assert answer.status_code == status, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return BeautifulSoup(answer.text, "lxml")


def said(page: BeautifulSoup, selector: str) -> list[str]:
    return [" ".join(found.get_text(" ").split()) for found in page.select(selector)]


async def sent(client: httpx.AsyncClient, path: str, **form: str) -> httpx.Response:
    [token, *_] = page_of(await client.get(KEYS)).select(".who input[name=token]")
    return await client.post(path, data=form | {"token": str(token["value"])}, headers=OURS)


def noted(fakes: FakePorts) -> list[tuple[str, str, str, str | None, str, str]]:
    return [(each.who, each.via, each.action, each.site, each.target, each.code) for each in fakes.audit_log.kept]


async def test_keys_are_listed_with_what_they_may(operator: httpx.AsyncClient) -> None:
    page = page_of(await operator.get(KEYS))
    assert said(page, "tbody tr") == [
        "cms ingest town valid in pagewire.yaml",
        "press-office edit town staff, board valid 2 Aug 2026, 12:00 4 May 2026, 12:00",
    ]
    assert KEY.sha256 not in str(page)


async def test_a_key_that_is_made_is_shown_once_and_works(
    operator: httpx.AsyncClient, stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    order = {"name": "webmaster-2", "scope-view": "yes", "scope-chat": "yes", "site": "town", "groups": "staff, board"}
    page = page_of(await sent(operator, KEYS, **order, expires="2026-06-30"))
    [key] = said(page, ".secret")
    made = fakes.keys.kept["webmaster-2"]
    assert (made.scopes, made.site, made.groups) == (("chat", "view"), "town", ("staff", "board"))
    assert made.expires_at == datetime(2026, 7, 1, tzinfo=UTC)
    assert made.created_by == "admin"
    assert (await stranger.get("/v1/admin/sites/town/gaps", headers=bearer(key))).status_code == 200
    again = page_of(await operator.get(KEYS))
    assert key not in str(again)
    assert again.select(".secret") == []
    assert noted(fakes) == [("admin", "console", "keys.create", "town", "webmaster-2", "")]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"name": ""}, "Name"),
        ({"name": "with space"}, "Name"),
        ({"scope-view": "no"}, "Rights"),
        ({"site": "nowhere"}, "Site"),
        ({"groups": f"staff,{'x' * 257}"}, "Groups"),
        ({"expires": "soon"}, "Last day"),
        ({"expires": "9999-12-31"}, "Last day"),
        ({"expires": "2026-05-06"}, "Last day"),
    ],
)
async def test_what_cannot_be_is_named_and_nothing_typed_is_lost(
    operator: httpx.AsyncClient, fakes: FakePorts, change: dict[str, str], named: str
) -> None:
    order = {"name": "webmaster-2", "scope-view": "yes", "site": "town"} | change
    page = page_of(await sent(operator, KEYS, **order), 422)
    assert said(page, "[role=alert]") == [f"Please check: {named}."]
    assert str(page.select("#name")[0]["value"]) == order["name"]
    assert list(fakes.keys.kept) == [KEY.name]
    assert noted(fakes) == []


async def test_a_name_is_taken_once(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    for name in (KEY.name, "cms", "admin"):
        page = page_of(await sent(operator, KEYS, **{"name": name, "scope-edit": "yes"}), 409)
        assert name in said(page, "[role=alert]")[0]
        assert [box["name"] for box in page.select("input[type=checkbox][checked]")] == ["scope-edit"]
    assert {code for *_, code in noted(fakes)} == {"key-taken"}


async def test_a_key_is_revoked_when_it_is_meant(
    operator: httpx.AsyncClient, stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    path = f"{KEYS}/{KEY.id}"
    page = page_of(await operator.get(path))
    assert said(page, ".redrive .wrong") == []
    assert "4 May 2026, 12:00 by admin" in said(page, ".facts dd")
    page_of(await sent(operator, f"{path}/revoke"), 422)
    page_of(await operator.post(f"{path}/revoke", data={"sure": "yes"}, headers=OURS), 403)
    assert list(fakes.keys.kept) == [KEY.name]
    done = await sent(operator, f"{path}/revoke", sure="yes")
    assert (done.status_code, done.headers["location"]) == (303, f"{KEYS}?revoked=press-office")
    assert said(page_of(await operator.get(done.headers["location"])), "[role=status]") == [
        "The key press-office is revoked."
    ]
    assert fakes.keys.kept == {}
    assert noted(fakes) == [("admin", "console", "keys.revoke", None, "press-office", "")]
    page_of(await sent(operator, f"{path}/revoke", sure="yes"), 404)


async def test_the_key_whose_id_it_is_goes_and_none_that_is_called_so(
    operator: httpx.AsyncClient, fakes: FakePorts
) -> None:
    """Names may look like ids, and a key of the file may share its name with one that was made."""
    fakes.keys.kept[KEY.id] = KEY.model_copy(update={"name": KEY.id, "sha256": digest_of("another")})
    await sent(operator, f"{KEYS}/{KEY.id}/revoke", sure="yes")
    assert list(fakes.keys.kept) == [KEY.id]
    fakes.keys.kept["cms"] = KEY.model_copy(update={"name": "cms"})
    in_file = f"{KEYS}/{key_id(digest_of(INGEST_TOWN))}"
    assert page_of(await operator.get(in_file)).select(".redrive") == []
    page_of(await sent(operator, f"{in_file}/revoke", sure="yes"), 409)
    assert "cms" in fakes.keys.kept
    assert noted(fakes)[-1] == ("admin", "console", "keys.revoke", None, "cms", "key-in-file")


async def test_with_ones_own_key_one_is_signed_out(app: FastAPI, operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    key = said(page_of(await sent(operator, KEYS, **{"name": "mine", "scope-admin": "yes"})), ".secret")[0]
    await operator.post("/console/sign-in", data={"key": key}, headers=OURS)
    mine = f"{KEYS}/{fakes.keys.kept['mine'].id}"
    assert said(page_of(await operator.get(mine)), ".redrive .wrong") == ["You are signed in with this key."]
    await sent(operator, f"{mine}/revoke", sure="yes")
    assert (await operator.get(KEYS)).headers["location"].startswith("/console/sign-in")


async def test_without_the_store_it_is_said(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.keys.error = fakes.audit_log.error = Retryable("Elasticsearch is away")
    for path in (KEYS, LOG):
        assert said(page_of(await operator.get(path), 503), "h1") == ["A service is not available"]


@pytest.fixture
def log(fakes: FakePorts) -> list[AuditEntry]:
    changes: tuple[dict[str, str | None], ...] = (
        {},
        {"who": "webmaster", "via": "console", "action": "examples.put", "outcome": "done", "code": ""},
        {"who": "root", "via": "command", "action": "keys.create", "site": None, "target": "x", "trace_id": ""},
    )
    for n, change in enumerate(changes):
        at = NOON + timedelta(days=n)
        id = f"{at.timestamp() * 1000:013.0f}-{'0' * 16}"
        fakes.audit_log.kept.append(ACT.model_copy(update={"id": id, "at": at} | change))
    return fakes.audit_log.kept


def whos(page: BeautifulSoup) -> list[str]:
    return said(page, ".rows strong")


async def test_the_audit_log_is_listed(operator: httpx.AsyncClient, log: list[AuditEntry]) -> None:
    page = page_of(await operator.get(LOG))
    assert whos(page) == ["root", "webmaster", "admin"]
    assert (
        said(page, ".rows li")[0] == "keys.create x 6 May 2026, 12:00 root by a command all sites failed letter-handled"
    )
    assert EVIL in page.get_text()
    assert page.select("script") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("who=+webmaster+", ["webmaster"]),
        ("action=keys.create", ["root"]),
        ("of=town", ["webmaster", "admin"]),
        ("from=2026-05-05&to=2026-05-05", ["webmaster"]),
        ("to=2026-05-04", ["admin"]),
        ("from=&to=&who=&action=&of=&after=", ["root", "webmaster", "admin"]),
        ("who=nobody", []),
        ("action=nothing", []),
    ],
)
async def test_filters(operator: httpx.AsyncClient, log: list[AuditEntry], query: str, expected: list[str]) -> None:
    page = page_of(await operator.get(f"{LOG}?{query}"))
    assert whos(page) == expected
    if not expected:
        assert said(page, ".empty") == ["No entry matches these filters."]


async def test_a_long_log_comes_in_pages(
    operator: httpx.AsyncClient, log: list[AuditEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.console.audit_log.SHOWN", 2)
    first = page_of(await operator.get(f"{LOG}?to=2026-05-31"))
    second = page_of(await operator.get(LOG + str(first.select(".paging a[rel=next]")[0]["href"])))
    assert [*whos(first), *whos(second)] == ["root", "webmaster", "admin"]
    assert str(second.select("#to")[0]["value"]) == "2026-05-31"
    for query, status in (("after=nowhere", 422), ("from=yesterday", 422)):
        page_of(await operator.get(f"{LOG}?{query}"), status)


async def test_what_is_done_in_the_console_stands_there(operator: httpx.AsyncClient) -> None:
    await sent(operator, KEYS, **{"name": "webmaster-2", "scope-view": "yes"})
    [row] = said(page_of(await operator.get(f"{LOG}?action=keys.create")), ".rows li")
    assert "webmaster-2" in row
    assert "in the console" in row


def test_every_form_that_changes_something_is_tried_here_or_where_it_stands() -> None:
    """Whoever adds one says here where its entry in the audit log is tested."""
    forms = {
        route.path
        for module in (console, *console.SCREENS)
        for route in module.router.routes
        if "POST" in route.methods
    }
    assert forms == {
        "/console/sign-in",  # changes nothing
        "/console/sign-out",
        "/console/playground",
        "/console/playground/example",  # test_playground
        "/console/case",  # changes nothing
        "/console/examples/new",  # test_console_examples
        "/console/examples/{example}/remove",
        "/console/corrections/new",  # test_console_corrections
        "/console/corrections/{correction}",
        "/console/corrections/{correction}/remove",
        "/console/corrections/{correction}/undo",
        "/console/handovers/{reference}/redeliver",  # test_gateway_handovers
        "/console/evaluations/new",  # test_console_evaluation_runs
        "/console/evaluations/run/stop",
        "/console/evaluations/{run}/remove",  # test_gateway_evaluations
        "/console/texts/{kind}/{name}",  # test_console_text
        "/console/texts/{kind}/{name}/remove",
        "/console/texts/{kind}/{name}/versions/{version}/restore",
        "/console/privacy",  # test_console_privacy
        "/console/privacy/remove",
        "/console/privacy/versions/{version}/restore",
        "/console/sites/chat/{to}",  # test_console_sites
        "/console/indexes/rebuild",  # test_console_indexes
        "/console/indexes/stop",
        "/console/indexes/audit",  # test_console_audits
        "/console/indexes/repair",
        "/console/indexes/rollback",
        "/console/indexes/{generation}/promote",
        "/console/indexes/{generation}/discard",
        "/console/questions/{request_id}/erase",  # test_erasing
        "/console/dlq/{topic}/{partition}/{offset}/edit",  # test_console_letters
        "/console/dlq/{topic}/{partition}/{offset}/redrive",  # test_gateway_audit_log
        "/console/keys",
        "/console/keys/{id}/revoke",
    }
