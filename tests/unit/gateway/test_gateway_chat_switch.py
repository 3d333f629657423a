"""A site's chat, switched off and on over HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from gateway.app import create_app
from pipelines.runtime.errors import Retryable
from tests.edge import (
    ADMIN,
    CHAT_ANYWHERE,
    EDIT_TOWN,
    EVERYTHING_TOWN,
    VIEW_TOWN,
    assert_problem,
    bearer,
    edge_settings,
)
from tests.fakes.ports import FakePorts
from wiring.settings import SiteSettings

SWITCH = "/v1/admin/sites/town/chat"
CHAT = "/v1/sites/town/chat"
OWN = "chat-off:\n  en: Our staff answers at 123-456.\n  de: Sie erreichen uns unter 123-456.\n"


async def ask(client: httpx.AsyncClient, text: str, **more: object) -> httpx.Response:
    return await client.post(CHAT, json={"question": text} | more, headers=bearer(CHAT_ANYWHERE))


async def test_it_is_off_until_it_is_switched_on_again(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert (await client.get(SWITCH, headers=bearer(VIEW_TOWN))).json()["by"] == "default"
    state = (await client.put(SWITCH, json={"on": False}, headers=bearer(EVERYTHING_TOWN))).json()
    assert (state["on"], state["by"], state["changed_by"]) == (False, "switch", "webmaster")
    assert_problem(await ask(client, "When does the pool open?"), 403, "chat-off")
    assert_problem(
        await client.post("/v1/admin/sites/town/trials", json={"question": "?", "trials": [{}]}), 403, "chat-off"
    )
    assert fakes.answers.asked == []
    assert (await client.put(SWITCH, json={"on": True})).json()["on"] is True
    assert (await ask(client, "When does the pool open?")).status_code == 200
    assert [(entry.who, entry.action, entry.site) for entry in fakes.audit_log.kept] == [
        ("webmaster", "chat.off", "town"),
        ("admin", "chat.on", "town"),
    ]


async def test_visitors_are_told_in_their_language(client: httpx.AsyncClient) -> None:
    await client.put(SWITCH, json={"on": False})
    for text, lang, says in (
        ("When does the swimming pool open on Sundays?", None, "switched off"),
        ("Wann öffnet das Schwimmbad am Sonntag?", None, "abgeschaltet"),
        ("?", "hu", "ki van kapcsolva"),
    ):
        assert says in assert_problem(await ask(client, text, lang=lang), 403, "chat-off")["detail"]
    completion = {"model": "town", "messages": [{"role": "user", "content": "Wann öffnet das Schwimmbad am Sonntag?"}]}
    refused = await client.post("/v1/chat/completions", json=completion, headers=bearer(CHAT_ANYWHERE))
    assert "abgeschaltet" in refused.json()["error"]["message"]


async def test_the_sites_own_sentence_comes_first(tmp_path: Path, fakes: FakePorts) -> None:
    (tmp_path / "errors.yaml").write_text(OWN, encoding="utf-8")
    settings = edge_settings(tmp_path, sites={"town": SiteSettings(languages=("en", "de"), prompts=tmp_path)})
    transport = httpx.ASGITransport(create_app(settings, fakes.ports))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test", headers=bearer(ADMIN)) as client:
        await client.put(SWITCH, json={"on": False})
        assert "123-456" in (await ask(client, "When does the swimming pool open?")).json()["detail"]
        (tmp_path / "errors.yaml").write_text("nonsense", encoding="utf-8")


async def test_who_may_not_and_what_cannot_be(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    for key in (VIEW_TOWN, EDIT_TOWN):
        assert_problem(await client.put(SWITCH, json={"on": False}, headers=bearer(key)), 403, "forbidden")
    assert_problem(await client.put(SWITCH, json={"on": "perhaps"}), 422, "invalid")
    assert_problem(await client.put(SWITCH, json={}), 422, "invalid")
    fakes.states.error = Retryable("Elasticsearch is away")
    assert_problem(await client.put(SWITCH, json={"on": False}), 503, "unavailable")
    assert (await ask(client, "When does the pool open?")).status_code == 200


@pytest.fixture
def fakes(request: pytest.FixtureRequest) -> FakePorts:
    return FakePorts(enabled=getattr(request, "param", {}))


@pytest.mark.parametrize("fakes", [{"town": False}], indirect=True)
async def test_the_file_has_the_last_word(client: httpx.AsyncClient) -> None:
    assert_problem(await client.put(SWITCH, json={"on": True}), 409, "chat-off-in-file")
    assert (await client.get(SWITCH)).json()["by"] == "file"
