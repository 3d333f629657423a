"""What a site keeps of its visitors, over HTTP."""

from __future__ import annotations

import httpx
import pytest

from pipelines.runtime.errors import Retryable
from tests.edge import EDIT_TOWN, EVERYTHING_TOWN, VIEW_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts

PRIVACY = "/v1/admin/sites/town/privacy"


async def test_it_is_changed_and_everything_comes_back(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    state = (await client.get(PRIVACY, headers=bearer(VIEW_TOWN))).json()
    filed = {"log_questions": "on", "conversations": 90, "outcomes": 365, "log_prompts": False}
    assert (state["rules"], state["live"], state["filed"], state["versions"]) == (filed, 0, filed, [])
    order = {"log_questions": "without-text", "note": "as our notice says", "over": 0}
    answer = await client.put(PRIVACY, json=order, headers=bearer(EVERYTHING_TOWN))
    assert answer.status_code == 200, answer.text
    state = answer.json()
    assert (state["rules"], state["live"]) == (filed | {"log_questions": "without-text"}, 1)
    assert [(one["by"], one["note"]) for one in state["versions"]] == [("webmaster", "as our notice says")]
    problem = assert_problem(await client.put(PRIVACY, json={"conversations": 30}), 409, "would-delete")
    assert "conversations whose last question is from before" in problem["detail"]
    state = (await client.put(PRIVACY, json={"conversations": 30, "sure": True})).json()
    assert (state["rules"]["conversations"], state["deleted_by"]["conversations"]) == (30, 90)
    assert_problem(await client.put(PRIVACY, json={"log_questions": "off", "over": 1}), 409, "text-changed")
    state = (await client.post(f"{PRIVACY}/versions/1/restore", json={"note": "too short"})).json()
    assert (state["rules"]["conversations"], state["live"], state["versions"][0]["of"]) == (90, 3, 1)
    assert_problem(await client.post(f"{PRIVACY}/versions/9/restore"), 404, "unknown-text")
    state = (await client.delete(PRIVACY, params={"over": 3, "note": "enough"})).json()
    assert (state["rules"], state["live"]) == (filed, 0)
    assert_problem(await client.delete(PRIVACY), 404, "unknown-text")
    assert [(one.action, one.outcome) for one in fakes.audit_log.kept if one.outcome == "done"] == [
        ("privacy.put", "done"),
        ("privacy.put", "done"),
        ("privacy.restore", "done"),
        ("privacy.remove", "done"),
    ]


@pytest.mark.parametrize(
    "body", [{"log_questions": "sometimes"}, {"conversations": 0}, {"outcomes": 36_501}, {"feedback": 3}]
)
async def test_what_is_no_rule_is_refused(client: httpx.AsyncClient, fakes: FakePorts, body: dict[str, object]) -> None:
    assert_problem(await client.put(PRIVACY, json=body), 422, "invalid")
    assert fakes.texts.kept == {}


async def test_editors_look_and_do_not_change_it(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    editor = bearer(EDIT_TOWN)
    assert_problem(await client.put(PRIVACY, json={"log_questions": "off"}, headers=editor), 403, "forbidden")
    # Nor by the door of texts, in whose store it stands.
    text = {"text": '{"log_questions": "off", "conversations": 1, "outcomes": 1}'}
    door = "/v1/admin/sites/town/texts/privacy/rules"
    assert_problem(await client.put(door, json=text, headers=editor), 422, "invalid")
    assert_problem(await client.get(door, headers=editor), 422, "invalid")
    assert fakes.texts.kept == {}
    await client.put(PRIVACY, json={"log_questions": "off"})
    assert "privacy" not in (await client.get("/v1/admin/sites/town/texts")).text


async def test_without_the_store_it_is_said(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.texts.error = Retryable("away")
    assert_problem(await client.put(PRIVACY, json={"log_questions": "off"}), 503, "unavailable")
    assert_problem(await client.get(PRIVACY), 503, "unavailable")
