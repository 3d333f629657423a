"""What a visitor said in a conversation, erased by those who look after the site: over HTTP and in the console."""

from __future__ import annotations

import httpx
import pytest

from tests.console import CARD, DOG, console_ports, fill
from tests.edge import CHAT_ANYWHERE, EDIT_TOWN, EVERYTHING_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

ERASE = f"/v1/admin/sites/town/questions/{CARD}/conversation"


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


def words(fakes: FakePorts, request_id: str) -> str | None:
    outcome = fakes.outcomes.kept["town", request_id].outcome
    return outcome.question if outcome else None


async def test_a_kept_conversation_goes_with_its_words_in_the_log(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    asked = await stranger.post("/v1/sites/town/chat", json={"question": "Where?"}, headers=bearer(CHAT_ANYWHERE))
    request_id = asked.json()["request_id"]
    assert len(fakes.conversations.kept) == 1
    path = f"/v1/admin/sites/town/questions/{request_id}/conversation"
    assert_problem(await client.delete(path.replace("town", "other")), 404, "unknown-question")
    assert_problem(await client.delete(path, headers=bearer(EDIT_TOWN)), 403, "forbidden")
    assert len(fakes.conversations.kept) == 1
    assert (await client.delete(path)).status_code == 204
    assert fakes.conversations.kept == {}
    assert_problem(await client.delete(path), 404, "unknown-question")


async def test_what_the_log_alone_has_of_a_conversation_goes_too(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    conversation = fakes.outcomes.kept["town", CARD].conversation
    same = [id for (_, id), kept in fakes.outcomes.kept.items() if kept.conversation == conversation]
    assert words(fakes, CARD)
    assert (await client.delete(ERASE)).status_code == 204
    assert [words(fakes, id) for id in same] == [None] * len(same)
    others = [id for (_, id), kept in fakes.outcomes.kept.items() if id not in same and kept.outcome]
    assert DOG in same or words(fakes, DOG)
    assert (bool(others), fakes.audit_log.kept[0].target) == (bool(others), conversation)


async def test_the_console_asks_first(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    assert (await sign_in(stranger, EDIT_TOWN)).status_code == 303
    screen = f"/console/questions/{CARD}"
    assert "Erase this conversation" not in page_of(await stranger.get(screen)).get_text()
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    page = page_of(await stranger.get(screen))
    assert "Erase this conversation" in said(page, "summary")
    token = str(one(page, ".who input[name=token]")["value"])
    for form, status in (({"token": token}, 422), ({"sure": "yes"}, 403)):
        page_of(await stranger.post(f"{screen}/erase?site=town", data=form, headers=OURS), status)
    assert words(fakes, CARD)
    done = await stranger.post(f"{screen}/erase?site=town", data={"token": token, "sure": "yes"}, headers=OURS)
    assert done.status_code == 303
    assert words(fakes, CARD) is None
    assert "Erase this conversation" not in page_of(await stranger.get(done.headers["location"])).get_text()
    assert [(entry.via, entry.action) for entry in fakes.audit_log.kept] == [("console", "conversations.erase")]
