"""Signing in to the console by a proxy's headers: who is believed, what groups may, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from bs4 import BeautifulSoup
from fastapi import FastAPI
from pydantic import ValidationError
from structlog.testing import capture_logs
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from gateway.app import create_app
from gateway.edge.auth import LIFE, Caller, Sessions
from gateway.edge.peers import Peers
from gateway.edge.problems import Problem
from gateway.edge.proxy_users import MAX_USER, Headers, ProxyUsers
from pipelines.runtime.errors import SettingsError
from tests.console import KEY, console_ports, fill, tried
from tests.edge import ADMIN, bearer, edge_settings
from tests.fakes.ports import FakePorts
from wiring.proxy_sign_in import ProxySignInSettings
from wiring.settings_file import load

PROXY = "10.0.3.7"
ANNA = "anna@town.example"
ROLES: list[dict[str, Any]] = [
    {"group": "web-editors", "scope": "edit", "sites": ["town"], "reads": ["staff"]},
    {"group": "readers", "scope": "view"},
    {"group": "town-hall", "scope": "admin", "sites": ["town"]},
    {"group": "it", "scope": "admin"},
    {"user": "chief@town.example", "scope": "view", "sites": ["other"]},
]
GIVEN: dict[str, Any] = {"proxies": [PROXY, "fd00:3::/64"], "roles": ROLES, "sign_out": "/oauth2/sign_out"}
SETTINGS = ProxySignInSettings.model_validate(GIVEN)
OURS = {"Origin": "http://gateway.test"}
KEYS = "/console/keys"


def headers(*pairs: tuple[str, str | bytes]) -> Headers:
    """As ASGI servers hand them on."""
    return [(name.lower().encode(), said if isinstance(said, bytes) else said.encode()) for name, said in pairs]


def said(user: str | bytes = ANNA, groups: str | None = "web-editors") -> Headers:
    named = [("X-Forwarded-Email", user)]
    return headers(*named, *([("X-Forwarded-Groups", groups)] if groups is not None else []))


@pytest.mark.parametrize(
    "peer",
    [PROXY, "fd00:3::1", "fd00:3:0:0::ffff", f"::ffff:{PROXY}", "0:0:0:0:0:ffff:0a00:0307", "fd00:3::1%eth0"],
)
def test_the_proxy_is_believed(peer: str) -> None:
    user = ProxyUsers(SETTINGS).user(peer, said())
    assert user is not None
    assert (user.name, user.at("town").scopes) == (f"user:{ANNA}", {"edit"})


@pytest.mark.parametrize(
    "peer",
    [None, "", "unknown", "10.0.3.8", "110.0.3.7", "fd00:4::1", "::ffff:10.0.3.8", "::a00:307", "127.0.0.1", "::1"],
)
def test_nobody_else_is(peer: str | None) -> None:
    assert ProxyUsers(SETTINGS).user(peer, said()) is None
    assert ProxyUsers(SETTINGS).user(peer, [*said(), *said()]) is None


@pytest.mark.parametrize(("peer", "named"), [("10.0.3.8", True), ("1.1.1.1", False), ("unknown", False)])
def test_the_log_names_a_proxy_that_was_forgotten_and_no_person(peer: str, named: bool) -> None:
    with capture_logs() as logs:
        ProxyUsers(SETTINGS).user(peer, said())
    assert (peer in str(logs)) is named


def test_nobody_is_unless_it_is_set() -> None:
    assert ProxyUsers(None).user(PROXY, said()) is None


def test_without_a_user_a_key_may_sign_in() -> None:
    for given in ([], headers(("X-Forwarded-Groups", "it")), said(""), said(" ")):
        assert ProxyUsers(SETTINGS).user(PROXY, given) is None


def test_headers_have_no_case() -> None:
    for name in ("x-forwarded-email", "X-FORWARDED-EMAIL"):
        assert ProxyUsers(SETTINGS).user(PROXY, [(name.encode(), ANNA.encode())]) is not None
    assert ProxyUsers(SETTINGS).user(PROXY, headers(("X_Forwarded_Email", ANNA))) is None


@pytest.mark.parametrize(
    "given",
    [
        [*said(), *headers(("X-Forwarded-Email", "chief@town.example"))],
        [*said(), *headers(("x-forwarded-email", ANNA))],
        [*headers(("X-Forwarded-Groups", "it")), *said()],
        [*headers(("X-FORWARDED-GROUPS", "")), *said()],
        said(f"chief@town.example,{ANNA}"),
        said(b"\xff\xfe"),
        said("anna\x00"),
        said("anna\u202e"),
        said("a" * (MAX_USER + 1)),
    ],
    ids=[
        "two users",
        "the same twice",
        "groups twice",
        "groups twice, empty",
        "joined",
        "bytes",
        "nul",
        "bidi",
        "long",
    ],
)
def test_what_can_be_understood_in_two_ways_is_refused(given: Headers) -> None:
    with pytest.raises(Problem) as caught:
        ProxyUsers(SETTINGS).user(PROXY, given)
    assert (caught.value.status, caught.value.code) == (403, "unclear-user")
    assert ANNA not in caught.value.detail


Rights = tuple[set[str], str | None]
NONE: Rights = (set(), None)


@pytest.mark.parametrize(
    ("user", "groups", "town", "other", "everywhere"),
    [
        (ANNA, "web-editors", ({"edit"}, "town"), NONE, NONE),
        (ANNA, " web-editors , nonsense,", ({"edit"}, "town"), NONE, NONE),
        (ANNA, "readers", ({"view"}, None), ({"view"}, None), ({"view"}, None)),
        (ANNA, "readers,web-editors", ({"view", "edit"}, "town"), ({"view"}, None), ({"view"}, None)),
        (ANNA, "readers,town-hall", ({"view", "admin"}, "town"), ({"view"}, None), ({"view"}, None)),
        (ANNA, "it", ({"admin"}, None), ({"admin"}, None), ({"admin"}, None)),
        (ANNA, "it,web-editors", ({"admin"}, None), ({"admin"}, None), ({"admin"}, None)),
        ("chief@town.example", None, NONE, ({"view"}, "other"), NONE),
        ("Chief@town.example", None, NONE, NONE, NONE),
        (ANNA, "IT", NONE, NONE, NONE),
        (ANNA, "it;x", NONE, NONE, NONE),
        (ANNA, "chief@town.example", NONE, NONE, NONE),
        ("it", "", NONE, NONE, NONE),
        (ANNA, None, NONE, NONE, NONE),
    ],
)
def test_groups_become_rights(user: str, groups: str | None, town: Rights, other: Rights, everywhere: Rights) -> None:
    found = ProxyUsers(SETTINGS).user(PROXY, said(user, groups))
    assert found is not None
    callers = [found.at(site) for site in ("town", "other", None)]
    for caller, (scopes, site) in zip(callers, (town, other, everywhere), strict=True):
        assert caller.name == f"user:{user}"
        assert caller.may("view") == bool(scopes)
        assert caller.operates == ("admin" in scopes and site is None)
        assert caller.site == site
        if scopes:
            assert {scope for scope in ("view", "edit", "admin") if caller.may(scope)} == {
                scope for scope in ("view", "edit", "admin") if Caller("x", frozenset(scopes), None).may(scope)
            }
        assert not caller.may("ingest")
        assert not caller.may("chat")
    assert found.sites(("town", "other")) == tuple(
        site for site, (scopes, _) in (("town", town), ("other", other)) if scopes
    )


def test_what_may_be_read_goes_with_the_role() -> None:
    found = ProxyUsers(SETTINGS).user(PROXY, said(groups="web-editors,readers"))
    assert found is not None
    assert (found.at("town").groups, found.at("other").groups) == (("staff",), ())


def test_other_proxies_speak_otherwise() -> None:
    other = {"user_header": "X-authentik-username", "groups_header": "X-authentik-groups", "groups_separator": "|"}
    users = ProxyUsers(ProxySignInSettings.model_validate(GIVEN | other))
    assert users.user(PROXY, said()) is None
    found = users.user(PROXY, headers(("X-authentik-username", "anna"), ("X-authentik-groups", "a,b|it")))
    assert found is not None
    assert found.at(None).operates
    without = ProxyUsers(ProxySignInSettings.model_validate(GIVEN | {"groups_header": None}))
    found = without.user(PROXY, said("chief@town.example", "it"))
    assert found is not None
    assert not found.at(None).operates


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"proxies": []}, "proxies"),
        ({"proxies": ["0.0.0.0/0"]}, "believe everybody"),
        ({"proxies": [PROXY, "::/0"]}, "believe everybody"),
        ({"proxies": ["proxy.example"]}, "proxies"),
        ({"proxies": ["10.0.3.7/24"]}, "proxies"),
        ({"roles": []}, "roles"),
        ({"roles": [{"scope": "admin"}]}, "give one of them"),
        ({"roles": [{"group": "a", "user": "b", "scope": "view"}]}, "give one of them"),
        ({"roles": [{"group": "", "scope": "view"}]}, "group"),
        ({"roles": [{"group": "a", "scope": "ingest"}]}, "scope"),
        ({"roles": [{"group": "a", "scope": "view", "sites": []}]}, "sites"),
        ({"user_header": "X-Forwarded-For"}, "x-forwarded-for"),
        ({"user_header": "X Forwarded"}, "user_header"),
        ({"groups_header": "x-forwarded-email"}, "the same"),
        ({"groups_separator": ""}, "groups_separator"),
        ({"sign_out": "javascript:alert(1)"}, "sign_out"),
        ({"sign_out": "//evil.example"}, "sign_out"),
    ],
)
def test_settings_that_cannot_be_meant(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        ProxySignInSettings.model_validate(GIVEN | change)


def test_they_stand_in_the_file_and_fit_its_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = """
sites: {town: {languages: [en]}}
proxy_sign_in:
  proxies: [10.0.3.7, "fd00:3::/64"]
  roles: [{group: web-editors, scope: edit, sites: [SITE]}]
"""
    file = tmp_path / "pagewire.yaml"
    file.write_text(text.replace("SITE", "town"))
    found = load({}).proxy_sign_in
    assert found is not None
    assert [str(network) for network in found.proxies] == ["10.0.3.7/32", "fd00:3::/64"]
    file.write_text(text.replace("SITE", "nowhere"))
    with pytest.raises(SettingsError, match="'web-editors' is for the unknown site 'nowhere'"):
        load({})
    key = f"[{{name: 'user:anna', scopes: [view], sha256: {'a' * 64}}}]"
    file.write_text("sites: {town: {languages: [en]}}\nkeys: " + key)
    with pytest.raises(SettingsError, match="'user:anna' is called like a user of a proxy"):
        load({})


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


@pytest.fixture
def app(tmp_path: Path, fakes: FakePorts) -> FastAPI:
    return create_app(edge_settings(tmp_path, proxy_sign_in=SETTINGS), fakes.ports)


@pytest.fixture
async def proxied(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Whatever it sends comes from the proxy's address, as the gateway is served."""
    behind = Peers(app, ["*"])
    transport = httpx.ASGITransport(behind, client=(PROXY, 4180))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
        yield client


def of(groups: str, user: str = ANNA) -> dict[str, str]:
    return {"X-Forwarded-Email": user, "X-Forwarded-Groups": groups, "X-Forwarded-For": "203.0.113.9"}


def page_of(answer: httpx.Response, status: int = 200) -> BeautifulSoup:
    assert answer.status_code == status, answer.text
    return BeautifulSoup(answer.text, "lxml")


def token_of(page: BeautifulSoup) -> str:
    return str(page.select("main input[name=token]")[0]["value"])


async def test_a_user_sees_what_their_groups_may(proxied: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    page = page_of(await proxied.get("/console/questions", headers=of("web-editors")))
    assert page.select(".who span")[0].get_text() == f"Signed in: {ANNA}"
    assert str(page.select(".who a")[0]["href"]) == "/oauth2/sign_out"
    assert [link.get_text() for link in page.select("header nav a")][-3:] == ["Playground", "Evaluations", "Examples"]
    assert page.select("select#site") == []  # one site alone
    assert "set-cookie" not in (await proxied.get("/console/", headers=of("web-editors"))).headers
    for path in ("/console/questions?site=other", KEYS, "/console/dlq", "/console/audit-log"):
        page = page_of(await proxied.get(path, headers=of("web-editors")), 403)
        assert page.select("h1")[0].get_text() == "You have no access to this page"
    both = page_of(await proxied.get("/console/questions?site=other", headers=of("web-editors,readers")))
    assert [str(each["value"]) for each in both.select("select#site option")] == ["town", "other"]
    page_of(await proxied.get("/console/playground?site=town", headers=of("web-editors,readers")))
    page_of(await proxied.get("/console/playground?site=other", headers=of("web-editors,readers")), 403)
    for path in (KEYS, "/console/dlq", "/console/audit-log", "/console/playground?site=other"):
        page_of(await proxied.get(path, headers=of("it")))


async def test_who_has_no_role_is_told_so_and_cannot_get_in_by_a_key_beside(proxied: httpx.AsyncClient) -> None:
    for path in ("/console/", "/console/sign-in", KEYS, "/console/nowhere"):
        page = page_of(await proxied.get(path, headers=of("nonsense")), 403)
        assert page.select("h1")[0].get_text() == "You have no access to this page"
        assert page.select(".bar nav") == []
    answer = await proxied.post("/console/sign-in", data={"key": ADMIN}, headers=of("nonsense") | OURS)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


async def test_what_is_unclear_is_said_on_a_page(proxied: httpx.AsyncClient) -> None:
    twice = [*of("it").items(), ("x-forwarded-groups", "it")]
    page = page_of(await proxied.get("/console/", headers=twice), 403)
    assert "X-Forwarded-Groups came more than once" in page.get_text()


async def test_without_the_header_a_key_signs_in_as_ever(proxied: httpx.AsyncClient) -> None:
    assert (await proxied.get("/console/")).headers["location"].startswith("/console/sign-in")
    await proxied.post("/console/sign-in", data={"key": ADMIN}, headers=OURS)
    page = page_of(await proxied.get(KEYS))
    assert page.select(".who span")[0].get_text() == "Key: admin"
    page = page_of(await proxied.get("/console/questions", headers=of("web-editors")))
    assert page.select(".who span")[0].get_text() == f"Signed in: {ANNA}"  # the name goes before the key
    page_of(await proxied.get(KEYS, headers=of("web-editors")), 403)


@pytest.mark.parametrize(
    "forwarded", [PROXY, f"{PROXY}, 203.0.113.9", f"203.0.113.9, {PROXY}", f"::ffff:{PROXY}", "::1"]
)
async def test_who_sends_the_headers_directly_is_a_stranger(app: FastAPI, forwarded: str) -> None:
    """Also where uvicorn believes what X-Forwarded-For says of the address."""
    forged = of("it") | {"X-Forwarded-For": forwarded, "X-Real-IP": PROXY, "Forwarded": f"for={PROXY}"}
    served: tuple[Any, ...] = (
        Peers(app, ["*"]),
        ProxyHeadersMiddleware(app, "*"),  # type: ignore[arg-type]  # served otherwise than gateway.main does
        app,
    )
    for each in served:
        for peer in ("203.0.113.9", "127.0.0.1"):
            transport = httpx.ASGITransport(each, client=(peer, 50_000))
            async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as stranger:
                for path in ("/console/", KEYS):
                    answer = await stranger.get(path, headers=forged)
                    assert answer.status_code == 303
                    assert answer.headers["location"].startswith("/console/sign-in")
                form = {"token": "x", "name": "mine", "scope-admin": "yes"}
                assert (await stranger.post(KEYS, data=form, headers=forged | OURS)).status_code == 303


async def test_the_header_opens_the_console_alone(proxied: httpx.AsyncClient) -> None:
    for path in ("/v1/admin/keys", "/v1/admin/sites/town/questions", "/v1/sites/town/search?q=x"):
        assert (await proxied.get(path, headers=of("it"))).status_code == 401
    page_of(await proxied.get("/v1/admin/keys", headers=of("it") | bearer(ADMIN)))


async def test_what_a_user_does_is_noted_under_their_name(proxied: httpx.AsyncClient, fakes: FakePorts) -> None:
    it = of("it")
    form = {"name": "webmaster-2", "scope-view": "yes", "token": token_of(page_of(await proxied.get(KEYS, headers=it)))}
    page_of(await proxied.post(KEYS, data=form, headers=it | OURS))
    assert fakes.keys.kept["webmaster-2"].created_by == f"user:{ANNA}"
    [entry] = fakes.audit_log.kept
    assert (entry.who, entry.via, entry.action) == (f"user:{ANNA}", "console", "keys.create")
    page = page_of(await proxied.get("/console/audit-log", params={"who": f"user:{ANNA}"}, headers=it))
    assert [each.get_text() for each in page.select(".rows strong")] == [f"user:{ANNA}"]


async def test_a_user_tries_questions_out(proxied: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = tried
    editor = of("web-editors")
    page = page_of(await proxied.get("/console/playground?site=town", headers=editor))
    assert str(page.select("#groups1")[0]["value"]) == "staff"
    form = {"token": token_of(page), "question": "What is it?", "columns": "1", "do": "ask"}
    page = page_of(await proxied.post("/console/playground?site=town", data=form, headers=editor | OURS))
    assert len(page.select(".trial")) == 1
    page_of(await proxied.post("/console/playground?site=other", data=form, headers=editor | OURS), 403)


@pytest.mark.parametrize(
    "sent",
    [{}, {"Origin": "https://evil.example"}, OURS | {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "none"}],
)
async def test_another_website_sends_no_forms(
    proxied: httpx.AsyncClient, fakes: FakePorts, sent: dict[str, str]
) -> None:
    fakes.keys.kept[KEY.name] = KEY
    it = of("it")
    path = f"{KEYS}/{KEY.id}"
    form = {"sure": "yes", "token": token_of(page_of(await proxied.get(path, headers=it)))}
    page_of(await proxied.post(f"{path}/revoke", data=form, headers=it | sent), 403)
    assert fakes.keys.kept


async def test_a_form_needs_a_token_of_this_very_user(
    app: FastAPI, proxied: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.keys.kept[KEY.name] = KEY
    path = f"{KEYS}/{KEY.id}"
    others = token_of(page_of(await proxied.get(path, headers=of("it", "eve@town.example"))))
    sessions: Sessions = app.state.edge.sessions
    own = sessions.user_form_token(f"user:{ANNA}")
    end, _, signature = own.partition(".")
    for token in (
        "",
        ".",
        others,
        own[:-1],
        signature,
        f"{int(end) + 1}.{signature}",
        f"{end}.{others.partition('.')[2]}",
        sessions.form_token(""),
        sessions.form_token(f"user:{ANNA}"),
    ):
        answer = await proxied.post(f"{path}/revoke", data={"sure": "yes", "token": token}, headers=of("it") | OURS)
        page_of(answer, 403)
    assert fakes.keys.kept
    answer = await proxied.post(f"{path}/revoke", data={"sure": "yes", "token": own}, headers=of("it") | OURS)
    assert answer.status_code == 303


def test_tokens_of_forms_end(app: FastAPI) -> None:
    now = 1_000_000.0
    edge = app.state.edge
    sessions = Sessions(edge.settings.admin_key, edge.keys, lambda: now)
    token = sessions.user_form_token("user:anna")
    assert sessions.sent_by_user("user:anna", token)
    now += LIFE
    assert not sessions.sent_by_user("user:anna", token)
    assert not sessions.sent_by_us("user:anna", token)


async def test_signing_out_is_the_proxys(proxied: httpx.AsyncClient) -> None:
    it = of("it")
    token = token_of(page_of(await proxied.get(KEYS, headers=it)))
    answer = await proxied.post("/console/sign-out", data={"token": token}, headers=it | OURS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/oauth2/sign_out")
    assert (await proxied.get("/console/sign-in", headers=it)).headers["location"] == "/console/"
    answer = await proxied.post("/console/sign-in", data={"key": ADMIN}, headers=it | OURS)
    assert (answer.headers["location"], answer.headers.get("set-cookie")) == ("/console/", None)
