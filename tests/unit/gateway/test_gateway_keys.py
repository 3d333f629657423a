"""Keys over HTTP: made, used, revoked, without a restart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app import create_app
from pipelines.operate.access_keys import FiledKey
from pipelines.runtime.errors import Retryable
from schemas.access_key import digest_of
from tests.edge import CHAT_ANYWHERE, EVERYTHING_TOWN, INGEST_TOWN, assert_problem, bearer, edge_settings
from tests.fakes.ports import FakePorts

KEYS = "/v1/admin/keys"
STATUS = "/v1/admin/status"
QUESTIONS = "/v1/admin/sites/town/questions"
WANTED = {"name": "webmaster-2", "scopes": ["admin"], "site": "town"}


async def made(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    response = await client.post(KEYS, json=WANTED | more)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_a_key_is_made_used_listed_and_revoked(client: httpx.AsyncClient) -> None:
    key = await made(client)
    mine = bearer(key["key"])
    assert (await client.get(QUESTIONS, headers=mine)).status_code == 200
    assert_problem(await client.get("/v1/admin/sites/other/questions", headers=mine), 403, "forbidden")
    assert_problem(await client.get(STATUS, headers=mine), 403, "forbidden")
    [listed] = (await client.get(KEYS)).json()["keys"]
    assert listed == {name: value for name, value in key.items() if name != "key"}
    assert (listed["name"], listed["state"], listed["created_by"]) == ("webmaster-2", "good", "admin")
    revoked = await client.delete(f"{KEYS}/{key['id']}")
    assert (revoked.status_code, revoked.json()["name"]) == (200, "webmaster-2")
    assert_problem(await client.get(QUESTIONS, headers=mine), 401, "unauthorized")
    assert_problem(await client.delete(f"{KEYS}/webmaster-2"), 404, "unknown-key")


async def test_its_scopes_and_groups_count_as_those_of_the_file(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    key = await made(client, name="intranet-2", scopes=["chat"], groups=["staff"])
    found = await client.get("/v1/sites/town/search?q=x", headers=bearer(key["key"]))
    assert found.status_code == 200
    assert fakes.search.groups == [("staff",)]
    assert_problem(await client.get(QUESTIONS, headers=bearer(key["key"])), 403, "forbidden")


async def test_a_key_ends_by_itself(tmp_path: Path) -> None:
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)
    moved = [now]
    app = create_app(edge_settings(tmp_path), FakePorts(now=lambda: moved[0]).ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        client.headers.update(bearer("admin-key-of-the-test"))
        key = await made(client, expires_at=(now + timedelta(days=90)).isoformat())
        moved[0] = now + timedelta(days=89)
        assert (await client.get(QUESTIONS, headers=bearer(key["key"]))).status_code == 200
        moved[0] = now + timedelta(days=90)
        assert_problem(await client.get(QUESTIONS, headers=bearer(key["key"])), 401, "unauthorized")


async def test_with_its_key_a_session_ends(client: httpx.AsyncClient) -> None:
    key = await made(client)
    form = {"key": key["key"], "to": "/console/"}
    ours = {"Origin": "http://gateway.test"}
    client.headers.pop("authorization")
    signed_in = await client.post("/console/sign-in", data=form, headers=ours)
    assert signed_in.status_code == 303
    assert (await client.get("/console/questions")).status_code == 200
    await client.delete(f"{KEYS}/webmaster-2", headers=bearer("admin-key-of-the-test"))
    assert (await client.get("/console/questions")).headers["location"].startswith("/console/sign-in")
    again = await client.post("/console/sign-in", data=form, headers=ours)
    assert again.status_code == 403


@pytest.mark.parametrize("key", [EVERYTHING_TOWN, INGEST_TOWN, CHAT_ANYWHERE])
async def test_only_operators_of_all_sites_may(client: httpx.AsyncClient, fakes: FakePorts, key: str) -> None:
    for method, path in (("GET", KEYS), ("POST", KEYS), ("DELETE", f"{KEYS}/x")):
        assert_problem(await client.request(method, path, json=WANTED, headers=bearer(key)), 403, "forbidden")
    assert fakes.keys.kept == {}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": "with space"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a/b"}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes.0"),
        ({"site": "nowhere"}, "site"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "2120-01-01T00:00:00"}, "expires_at"),
        ({"sha256": "0" * 64}, "sha256"),
    ],
)
async def test_a_wrong_key_is_refused(
    client: httpx.AsyncClient, fakes: FakePorts, wrong: dict[str, Any], field: str
) -> None:
    problem = assert_problem(await client.post(KEYS, json=WANTED | wrong), 422, "invalid")
    assert problem["errors"][0]["field"] == field
    assert fakes.keys.kept == {}


async def test_names_are_taken_once(tmp_path: Path, fakes: FakePorts) -> None:
    filed = FiledKey("cms", digest_of(INGEST_TOWN), ("ingest",), "town", ())
    app = create_app(edge_settings(tmp_path), replace(fakes, filed=(filed,)).ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        client.headers.update(bearer("admin-key-of-the-test"))
        await made(client)
        for name in ("webmaster-2", "cms", "admin", "visitor"):
            assert_problem(await client.post(KEYS, json=WANTED | {"name": name}), 409, "key-taken")
        assert_problem(await client.delete(f"{KEYS}/cms"), 409, "key-in-file")


async def test_without_the_store_known_keys_and_those_of_the_settings_go_on(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    key = await made(client)
    fakes.keys.error = Retryable("Elasticsearch does not answer")
    for good in (key["key"], EVERYTHING_TOWN, "admin-key-of-the-test"):
        assert (await client.get(QUESTIONS, headers=bearer(good))).status_code == 200
    assert_problem(await client.post(KEYS, json=WANTED), 503, "unavailable")
