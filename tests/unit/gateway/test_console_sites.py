"""The console's page of sites over the gateway's fakes."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from tests.console import console_ports
from tests.edge import ADMIN, CHAT_ANYWHERE, EVERYTHING_TOWN, bearer
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

SITES = "/console/sites"


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


@pytest.fixture
async def webmaster(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    """Of the site `town` alone, with all of its rights."""
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    return stranger


async def send(client: httpx.AsyncClient, act: str, **form: str) -> httpx.Response:
    token = str(one(page_of(await client.get(SITES)), ".who input[name=token]")["value"])
    return await client.post(f"{SITES}/{act}", data={"token": token} | form, headers=OURS)


async def test_who_may_do_everything_on_a_site_sees_it(
    webmaster: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    page = page_of(await webmaster.get(SITES))
    assert page.select("header nav a[aria-current]")[0].get_text() == "Sites"
    assert said(page, "section h2") == ["town Town & Sons chat on"]
    facts = dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))
    assert facts["Question log"] == "on, with the questions’ text (masked)"
    assert facts["Stored for"] == "conversations 90 days after their last question, the question log 365 days"
    page_of(await webmaster.get(f"{SITES}?site=other"), 403)
    assert (await sign_in(stranger, ADMIN)).status_code == 303
    assert len(page_of(await stranger.get(SITES)).select("section h2")) == 2


async def test_the_chat_goes_off_when_it_is_meant_and_comes_back(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    page_of(await send(webmaster, "chat/off?site=town"), 422)
    page_of(await webmaster.post(f"{SITES}/chat/off?site=town", data={"sure": "yes"}, headers=OURS), 403)
    page_of(await send(webmaster, "chat/off?site=other", sure="yes"), 403)
    assert fakes.states.kept == {}
    done = await send(webmaster, "chat/off?site=town", sure="yes")
    assert (done.status_code, done.headers["location"]) == (303, f"{SITES}?site=town&done=chat-off")
    page = page_of(await webmaster.get(done.headers["location"]))
    assert said(page, "[role=status]")[0].startswith("✓ The chat of town is off.")
    assert said(page, "section h2 .badge") == ["chat off"]
    assert "by webmaster" in dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))["Last switched"]
    ask = ("/v1/sites/town/chat", {"question": "When?"})
    assert (await webmaster.post(ask[0], json=ask[1], headers=bearer(CHAT_ANYWHERE))).status_code == 403
    assert said(page, "main form button") == ["Switch the chat on again"]
    await send(webmaster, "chat/on?site=town", sure="yes")
    assert (await webmaster.post(ask[0], json=ask[1], headers=bearer(CHAT_ANYWHERE))).status_code == 200
    assert [(entry.who, entry.via, entry.action, entry.site) for entry in fakes.audit_log.kept] == [
        ("webmaster", "console", "chat.off", "town"),
        ("webmaster", "console", "chat.on", "town"),
    ]


class TestOffInFile:
    @pytest.fixture
    def fakes(self) -> FakePorts:
        return replace(console_ports(), enabled={"town": False})

    async def test_it_is_said(self, webmaster: httpx.AsyncClient) -> None:
        page = page_of(await webmaster.get(SITES))
        assert said(page, "section h2 .badge") == ["chat off"]
        assert page.select("main form") == []
        page_of(await send(webmaster, "chat/on?site=town", sure="yes"), 409)
