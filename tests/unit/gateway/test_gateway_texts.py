"""Texts over HTTP: changed, undone, and looked at."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from pipelines.runtime.errors import Retryable
from tests.edge import EDIT_TOWN, VIEW_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts

TEXTS = "/v1/admin/sites/town/texts"
LEAD_IN = f"{TEXTS}/canned/lead-in.en"


async def history(client: httpx.AsyncClient, path: str = LEAD_IN) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_reply_is_changed_and_everything_comes_back(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    ours = (await history(client))["text"]
    answer = await client.put(LEAD_IN, json={"text": " We write: ", "note": "shorter", "over": 0})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["version"], told["text"], told["by"], told["note"]) == (1, "We write:", "admin", "shorter")
    listed = (await client.get(TEXTS)).json()
    [lead] = [one for one in listed["sentences"] if one["name"] == "lead-in"]
    assert (lead["said"]["en"], lead["live"], lead["own"]) == ("We write:", {"en": 1}, [])
    await client.put(LEAD_IN, json={"text": "You find:"})
    restored = (await client.post(f"{LEAD_IN}/versions/1/restore")).json()
    assert (restored["version"], restored["of"], restored["text"]) == (3, 1, "We write:")
    gone = (await client.delete(LEAD_IN, params={"over": 3, "note": "enough"})).json()
    assert (gone["version"], gone["text"], gone["note"]) == (4, None, "enough")
    told = await history(client)
    assert (told["text"], told["live"], told["filed"]) == (ours, 0, ours)
    assert [one["version"] for one in told["versions"]] == [4, 3, 2, 1]
    assert [entry.action for entry in fakes.audit_log.kept] == [
        "texts.put",
        "texts.put",
        "texts.restore",
        "texts.remove",
    ]


async def test_a_candidate_is_kept_put_to_use_and_taken_back(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await client.put(LEAD_IN, json={"text": "We write:"})
    made = await client.post(f"{LEAD_IN}/candidates", json={"text": "You find:", "note": "friendlier"})
    assert (made.status_code, made.json()["version"], made.json()["candidate"]) == (201, 2, True)
    assert (await client.post(f"{LEAD_IN}/candidates", json={"text": "You find:"})).json()["version"] == 2
    assert (await history(client))["text"] == "We write:"
    assert (await client.post(f"{LEAD_IN}/versions/2/restore")).json()["version"] == 3
    assert (await history(client))["text"] == "You find:"
    back = (await client.post(f"{LEAD_IN}/rollback", json={"note": "too long", "over": 3})).json()
    assert (back["text"], back["back"], back["note"]) == ("We write:", True, "too long")
    assert_problem(await client.post(f"{LEAD_IN}/rollback", json={"over": 3}), 409, "text-changed")
    assert (await client.post(f"{LEAD_IN}/rollback")).json()["text"] is None
    assert_problem(await client.post(f"{LEAD_IN}/rollback"), 409, "no-earlier-text")
    assert_problem(await client.post(f"{LEAD_IN}/candidates", json={"text": "x" * 3_000}), 422, "bad-text")
    assert [entry.action for entry in fakes.audit_log.kept][1:3] == ["texts.propose", "texts.propose"]


async def test_contact_and_prompts_are_listed_as_they_are_now(client: httpx.AsyncClient) -> None:
    await client.put(f"{TEXTS}/contact/en", json={"text": "Call us."})
    prompt = (await history(client, f"{TEXTS}/prompts/answer"))["text"]
    changed = prompt.replace("{site}", "{site}, our town", 1)
    assert (await client.put(f"{TEXTS}/prompts/answer", json={"text": changed})).status_code == 200
    listed = (await client.get(TEXTS)).json()
    assert (listed["contact"], listed["contact_live"]) == ({"en": "Call us."}, {"en": 1})
    [answer] = [one for one in listed["prompts"] if one["name"] == "answer"]
    assert (answer["live"], answer["own"]) == (1, False)
    assert any(", our town" in part["text"] for part in answer["parts"])
    assert (await client.get("/v1/admin/sites/other/texts")).json()["contact_live"] == {}


async def test_a_glossary_is_a_text_like_the_others(client: httpx.AsyncClient) -> None:
    path = f"{TEXTS}/glossary/terms"
    assert (await history(client, path))["text"] is None
    made = await client.put(path, json={"text": "Lido: {en: [pool, baths]}", "note": "asked for", "over": 0})
    assert made.status_code == 200, made.text
    listed = (await client.get(TEXTS)).json()
    assert listed["glossary"] == [{"term": "Lido", "names": {"en": ["pool", "baths"]}}]
    assert listed["glossary_live"] == 1
    assert (await client.delete(path)).status_code == 200
    listed = (await client.get(TEXTS)).json()
    assert (listed["glossary"], listed["glossary_live"]) == ([], None)


async def test_settings_are_a_text_like_the_others(client: httpx.AsyncClient) -> None:
    path = f"{TEXTS}/settings/answers"
    assert (await history(client, path))["text"].startswith("strategy: plain\nflow: pagewire\nhits: ")
    made = await client.post(f"{path}/candidates", json={"text": "hits: 4", "note": "quicker"})
    assert made.status_code == 201, made.text
    assert (await client.get(TEXTS)).json()["settings_live"] is None
    assert (await client.post(f"{path}/versions/1/restore")).status_code == 200
    listed = (await client.get(TEXTS)).json()
    assert (listed["settings"]["hits"], listed["settings"]["strategy"], listed["settings_live"]) == (4, None, 2)
    choices = (await client.get("/v1/admin/sites/town/trials")).json()
    assert choices["hits"] == 4
    assert (await client.post(f"{path}/rollback")).json()["text"] is None
    after = (await client.get("/v1/admin/sites/town/trials")).json()
    assert (after["hits"], after["system"] != choices["system"]) == (10, True)


async def test_no_visitor_says_how_they_are_answered(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    for field, value in (("tuned", {"hits": 100}), ("hits", 100), ("trial", {"hits": 100})):
        refused = await client.post("/v1/sites/town/chat", json={"question": "Dogs?", field: value})
        assert_problem(refused, 422, "invalid")
    assert fakes.answers.asked == []
    assert_problem(
        await client.put(f"{TEXTS}/settings/answers", json={"text": "hits: 4"}, headers=bearer(VIEW_TOWN)),
        403,
        "forbidden",
    )


async def test_the_second_of_two_editors_gets_a_409(client: httpx.AsyncClient) -> None:
    await client.put(LEAD_IN, json={"text": "A", "over": 0})
    assert_problem(await client.put(LEAD_IN, json={"text": "B", "over": 0}), 409, "text-changed")
    assert_problem(await client.delete(LEAD_IN, params={"over": 0}), 409, "text-changed")
    await client.put(LEAD_IN, json={"text": "B", "over": 1})
    assert_problem(await client.post(f"{LEAD_IN}/versions/1/restore", json={"over": 1}), 409, "text-changed")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("canned/lead-out.en", {"text": "x"}, 404, "unknown-text"),
        ("canned/lead-in", {"text": "x"}, 404, "unknown-text"),
        ("glossary/card", {"text": "x: {}"}, 404, "unknown-text"),
        ("glossary/terms", {"text": "Card: ticket"}, 422, "bad-text"),
        ("settings/others", {"text": "hits: 4"}, 404, "unknown-text"),
        ("settings/answers", {"text": "hits: 4000"}, 422, "bad-text"),
        ("settings/answers", {"text": "model: huge"}, 422, "bad-text"),
        ("replies/card", {"text": "x"}, 422, "invalid"),
        ("canned/lead-in.en", {"text": " "}, 422, "invalid"),
        ("canned/lead-in.en", {"text": "x" * 2_001}, 422, "bad-text"),
        ("canned/lead-in.en", {"text": "x", "by": "me"}, 422, "invalid"),
        ("prompts/answer", {"text": "x: ["}, 422, "bad-text"),
        ("prompts/answer", {"text": "x" * 20_001}, 422, "invalid"),
    ],
)
async def test_what_cannot_be_said_is_refused(
    client: httpx.AsyncClient, fakes: FakePorts, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    assert_problem(await client.put(f"{TEXTS}/{path}", json=body), status, code)
    assert fakes.texts.kept == {}


async def test_whoever_may_look_changes_nothing(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    viewer, editor = bearer(VIEW_TOWN), bearer(EDIT_TOWN)
    assert (await client.get(LEAD_IN, headers=viewer)).status_code == 200
    assert_problem(await client.put(LEAD_IN, json={"text": "A"}, headers=viewer), 403, "forbidden")
    assert_problem(await client.delete(LEAD_IN, headers=viewer), 403, "forbidden")
    assert_problem(await client.post(f"{LEAD_IN}/versions/1/restore", headers=viewer), 403, "forbidden")
    other = "/v1/admin/sites/other/texts/canned/lead-in.en"
    assert_problem(await client.put(other, json={"text": "A"}, headers=editor), 403, "forbidden")
    assert fakes.texts.kept == {}
    assert (await client.put(LEAD_IN, json={"text": "A"}, headers=editor)).json()["by"] == "editor"


async def test_without_the_store_it_is_said(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.texts.error = Retryable("away")
    assert_problem(await client.put(LEAD_IN, json={"text": "A"}), 503, "unavailable")
    assert_problem(await client.get(TEXTS), 503, "unavailable")
