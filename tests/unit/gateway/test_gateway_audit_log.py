"""The audit log over HTTP: everything that changes something below /v1/admin and in the console is in it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from docs.http_page import document
from pipelines.runtime.errors import Retryable
from tests.edge import ADMIN, CHAT_ANYWHERE, EVERYTHING_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts
from tests.making import letter
from tests.published_runs import new_run, run

LOG = "/v1/admin/audit-log"
TOWN = "/v1/admin/sites/town"
LETTER = "/v1/admin/dlq/{topic}/{partition}/{offset}"
SITE = "/v1/admin/sites/{site}"
EXAMPLE = {"question": "And on Sundays?", "output": "Is it open on Sundays?"}
# What is sent, and what is noted: action, site, target.
SYNONYM, CORRECTION = {"kind": "synonym", "word": "card", "means": "ticket"}, f"{TOWN}/corrections/0a1b"
ASKS = {
    ("post", f"{SITE}/{asked}")
    for asked in ("trials", "cases", "examples:like", "corrections:try", "evaluation-run:plan")
}  # and change nothing
ASKS |= {("post", "/v1/admin/mcp")}  # its tools note what they change: test_admin_mcp.py
CHANGES: dict[tuple[str, str], tuple[str, dict[str, Any], tuple[str, str | None, str]]] = {
    ("post", "/v1/admin/keys"): (
        "/v1/admin/keys",
        {"name": "webmaster-2", "scopes": ["view"], "site": "town"},
        ("keys.create", "town", "webmaster-2"),
    ),
    ("delete", "/v1/admin/keys/{key}"): ("/v1/admin/keys/nobody", {}, ("keys.revoke", None, "")),
    ("post", f"{SITE}/corrections"): (f"{TOWN}/corrections", SYNONYM, ("corrections.put", "town", "")),
    ("put", f"{SITE}/corrections/{{correction}}"): (CORRECTION, SYNONYM, ("corrections.put", "town", "0a1b")),
    ("delete", f"{SITE}/corrections/{{correction}}"): (CORRECTION, {}, ("corrections.remove", "town", "0a1b")),
    ("post", f"{SITE}/corrections/{{correction}}/versions/{{version}}/restore"): (
        f"{CORRECTION}/versions/1/restore",
        {},
        ("corrections.restore", "town", "0a1b"),
    ),
    ("post", f"{SITE}/corrections/{{correction}}/rollback"): (
        f"{CORRECTION}/rollback",
        {},
        ("corrections.rollback", "town", "0a1b"),
    ),
    ("post", f"{SITE}/handovers/{{reference}}/redeliver"): (
        f"{TOWN}/handovers/ABCD-1234/redeliver",
        {},
        ("handovers.redeliver", "town", "ABCD-1234"),
    ),
    ("delete", f"{SITE}/handovers/{{reference}}"): (
        f"{TOWN}/handovers/ABCD-1234",
        {},
        ("handovers.erase", "town", "ABCD-1234"),
    ),
    ("post", f"{SITE}/examples"): (f"{TOWN}/examples", EXAMPLE, ("examples.put", "town", "0ab3e0e7d2b7c3a4")),
    ("delete", f"{SITE}/examples/{{example}}"): (
        f"{TOWN}/examples/0123456789abcdef",
        {},
        ("examples.remove", "town", "0123456789abcdef"),
    ),
    ("put", f"{SITE}/texts/{{kind}}/{{name}}"): (
        f"{TOWN}/texts/contact/en",
        {"text": "Call us."},
        ("texts.put", "town", "contact/en"),
    ),
    ("delete", f"{SITE}/texts/{{kind}}/{{name}}"): (
        f"{TOWN}/texts/contact/en",
        {},
        ("texts.remove", "town", "contact/en"),
    ),
    ("post", f"{SITE}/texts/{{kind}}/{{name}}/versions/{{version}}/restore"): (
        f"{TOWN}/texts/contact/en/versions/1/restore",
        {},
        ("texts.restore", "town", "contact/en"),
    ),
    ("post", f"{SITE}/texts/{{kind}}/{{name}}/candidates"): (
        f"{TOWN}/texts/contact/en/candidates",
        {"text": "Call us."},
        ("texts.propose", "town", "contact/en"),
    ),
    ("post", f"{SITE}/texts/{{kind}}/{{name}}/rollback"): (
        f"{TOWN}/texts/contact/en/rollback",
        {},
        ("texts.rollback", "town", "contact/en"),
    ),
    ("post", "/v1/admin/evaluations"): (
        "/v1/admin/evaluations?site=town",
        new_run().model_dump(mode="json"),
        ("evaluations.publish", "town", run().id),
    ),
    ("delete", "/v1/admin/evaluations/{run}"): (
        f"/v1/admin/evaluations/{run().id}?site=town",
        {},
        ("evaluations.remove", "town", run().id),
    ),
    ("post", f"{SITE}/evaluations"): (
        f"{TOWN}/evaluations",
        new_run().model_dump(mode="json"),
        ("evaluations.publish", "town", run().id),
    ),
    ("delete", f"{SITE}/evaluations/{{run}}"): (
        f"{TOWN}/evaluations/{run().id}",
        {},
        ("evaluations.remove", "town", run().id),
    ),
    ("post", f"{SITE}/evaluation-run"): (
        f"{TOWN}/evaluation-run",
        {"content": "- question: Open?"},
        ("evaluations.start", "town", "pasted"),
    ),
    ("delete", f"{SITE}/evaluation-run"): (f"{TOWN}/evaluation-run", {}, ("evaluations.stop", "town", "")),
    ("put", f"{SITE}/privacy"): (f"{TOWN}/privacy", {"log_questions": "off"}, ("privacy.put", "town", "")),
    ("delete", f"{SITE}/privacy"): (f"{TOWN}/privacy", {}, ("privacy.remove", "town", "")),
    ("post", f"{SITE}/privacy/versions/{{version}}/restore"): (
        f"{TOWN}/privacy/versions/1/restore",
        {},
        ("privacy.restore", "town", "1"),
    ),
    ("post", f"{SITE}/privacy/rollback"): (f"{TOWN}/privacy/rollback", {}, ("privacy.rollback", "town", "")),
    ("put", f"{SITE}/chat"): (f"{TOWN}/chat", {"on": False}, ("chat.off", "town", "")),
    ("post", f"{SITE}/audit"): (f"{TOWN}/audit", {"repair": True}, ("index.repair", "town", "")),
    ("post", f"{SITE}/rebuilds"): (
        f"{TOWN}/rebuilds",
        {"from": "chunks"},
        ("rebuild.start", "town", "pagewire-town-000002"),
    ),
    ("post", f"{SITE}/audit-run"): (
        f"{TOWN}/audit-run",
        {"repair": True, "force": True},
        ("index.repair", "town", "force"),
    ),
    ("delete", f"{SITE}/questions/{{request_id}}/conversation"): (
        f"{TOWN}/questions/request-0001/conversation",
        {},
        ("conversations.erase", "town", ""),
    ),
    ("post", f"{SITE}/rebuilds:stop"): (f"{TOWN}/rebuilds:stop", {}, ("rebuild.stop", "town", "")),
    ("post", f"{SITE}/rebuilds:rollback"): (f"{TOWN}/rebuilds:rollback", {}, ("rebuild.rollback", "town", "")),
    ("delete", f"{SITE}/rebuilds/{{generation}}"): (f"{TOWN}/rebuilds/7", {}, ("rebuild.discard", "town", "7")),
    ("post", f"{SITE}/rebuilds/{{generation}}/promote"): (
        f"{TOWN}/rebuilds/7/promote",
        {},
        ("rebuild.promote", "town", "7"),
    ),
    ("post", f"{LETTER}/redrive"): (
        "/v1/admin/dlq/cms.changes/0/1/redrive",
        {"value": {"a": 1}},
        ("letters.edit", None, "cms.changes/0/1"),
    ),
    ("delete", LETTER): ("/v1/admin/dlq/cms.changes/0/1", {}, ("letters.drop", None, "cms.changes/0/1")),
    ("post", "/v1/admin/dlq:redrive"): (
        "/v1/admin/dlq:redrive",
        {"site": "town"},
        ("letters.redrive", "town", '{"site":"town"}'),
    ),
    ("post", "/v1/admin/dlq:drop"): ("/v1/admin/dlq:drop", {"code": "x"}, ("letters.drop", None, '{"code":"x"}')),
}


@pytest.fixture(autouse=True)
def _letters(fakes: FakePorts) -> None:
    made = letter(1)
    fakes.letters.kept[made.letter.id] = made


def test_every_route_that_changes_something_is_known_here() -> None:
    assert set(CHANGES) == {
        (method, path)
        for path, item in document()["paths"].items()
        if path.startswith("/v1/admin")
        for method in item
        if method != "get" and (method, path) not in ASKS
    }


@pytest.mark.parametrize("change", CHANGES, ids=" ".join)
@pytest.mark.parametrize("away", [False, True], ids=["kept", "away"])
async def test_a_change_is_noted_and_waits_for_nothing(
    client: httpx.AsyncClient, fakes: FakePorts, change: tuple[str, str], away: bool
) -> None:
    path, body, (action, site, target) = CHANGES[change]
    fakes.audit_log.error = Retryable("Elasticsearch does not answer") if away else None
    answer = await client.request(change[0], path, json=body)
    assert answer.status_code not in (401, 403, 422, 500, 503), answer.text
    if away:
        assert fakes.audit_log.kept == []
        return
    [entry] = fakes.audit_log.kept
    assert (entry.who, entry.via, entry.action, entry.site) == ("admin", "http", action, site)
    if action not in ("examples.put", "corrections.put"):  # follows from what is asked
        assert entry.target == target
    assert entry.outcome == ("done" if answer.is_success else "failed")
    assert entry.code == ("" if answer.is_success else answer.json()["code"])
    assert entry.trace_id == answer.headers["x-trace-id"]


async def test_neither_keys_nor_words_are_in_it(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    made = (await client.post("/v1/admin/keys", json={"name": "x", "scopes": ["view"]})).json()
    await client.delete(f"/v1/admin/keys/{made['key']}")  # given in the place of its name, by mistake
    await client.post(f"{TOWN}/examples", json=EXAMPLE)
    told = " ".join(entry.model_dump_json() for entry in fakes.audit_log.kept)
    assert made["key"] not in told
    assert "Sundays" not in told


async def test_the_console_says_who_redrove_a_letter(
    app: FastAPI, stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    cookie = app.state.edge.sessions.begin(ADMIN)
    await stranger.post(
        "/console/dlq/cms.changes/0/1/redrive",
        data={"token": app.state.edge.sessions.form_token(cookie), "sure": "yes"},
        headers={"Cookie": f"pagewire_console={cookie}", "Sec-Fetch-Site": "same-origin"},
    )
    [entry] = fakes.audit_log.kept
    assert (entry.who, entry.via, entry.action, entry.target) == (
        "admin",
        "console",
        "letters.redrive",
        "cms.changes/0/1",
    )


async def test_erasures_are_noted_without_the_visitor(
    app: FastAPI, stranger: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.chat.conversations.LISTED_WITHIN", 0)
    visitor = app.state.edge.tokens.issue("town").token
    await stranger.post("/v1/sites/town/chat", headers=bearer(visitor), json={"question": "When?"})
    for _ in range(3):  # again and again: what erases nothing is no act
        assert (await stranger.delete("/v1/sites/town/visitors/me", headers=bearer(visitor))).status_code == 204
    mine = "/v1/sites/town/conversations/conversation-0001"
    for key in (CHAT_ANYWHERE, visitor):
        assert (await stranger.delete(mine, headers=bearer(key))).status_code == 404
    assert [(entry.who, entry.action, entry.site, entry.code) for entry in fakes.audit_log.kept] == [
        ("visitor", "visitors.erase", "town", ""),
        ("bot", "conversations.erase", "town", "unknown-conversation"),
    ]
    assert "conversation-0001" not in fakes.audit_log.kept[1].target


async def test_operators_read_it_by_pages(client: httpx.AsyncClient) -> None:
    for name in ("one", "two", "three"):
        await client.post("/v1/admin/keys", json={"name": name, "scopes": ["view"]})
    await client.delete("/v1/admin/keys/two")
    first = (await client.get(LOG, params={"limit": 3})).json()
    assert len(first["entries"]) == 3
    rest = (await client.get(LOG, params={"after": first["next"]})).json()
    assert rest["next"] is None
    assert len(rest["entries"]) == 1
    [revoked] = (await client.get(LOG, params={"action": "keys.revoke"})).json()["entries"]
    assert (revoked["target"], revoked["outcome"]) == ("two", "done")
    assert_problem(await client.get(LOG, params={"after": "x"}), 422, "invalid")
    assert_problem(await client.get(LOG, headers=bearer(EVERYTHING_TOWN)), 403, "forbidden")
