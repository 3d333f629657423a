"""The console's page of what a site keeps, over the gateway's fakes."""

from __future__ import annotations

import httpx
import pytest
from bs4 import BeautifulSoup

from tests.console import console_ports
from tests.edge import EVERYTHING_TOWN
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

PRIVACY = "/console/privacy"


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


@pytest.fixture
async def webmaster(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    return stranger


async def send(client: httpx.AsyncClient, path: str, form: dict[str, str]) -> httpx.Response:
    token = str(one(page_of(await client.get(PRIVACY)), ".who input[name=token]")["value"])
    return await client.post(f"{path}?site=town", data={"token": token} | form, headers=OURS)


def form_of(page: BeautifulSoup) -> dict[str, str]:
    """As a browser would send it, with its box ticked."""
    form = one(page, "main form.filter")
    values = {str(each["name"]): str(each.get("value", "")) for each in form.select("input")}
    chosen = {str(each["name"]): str(one(each, "option[selected]")["value"]) for each in form.select("select")}
    return values | chosen


async def test_who_keeps_less_sees_what_goes_and_when_before_it_is_so(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    form = form_of(page_of(await webmaster.get(PRIVACY)))
    assert (form["log_questions"], form["conversations"], form["outcomes"]) == ("on", "90", "365")
    page = page_of(await send(webmaster, PRIVACY, form | {"conversations": "30", "sure": "yes"}))
    assert fakes.texts.kept == {}
    told = said(page, "main form.filter .wrong")[0]
    assert "deletes for good" in told
    assert "conversations whose last question was asked before" in told
    assert "logged questions" not in told
    done = await send(webmaster, PRIVACY, form_of(page))
    assert (done.status_code, done.headers["location"]) == (303, f"{PRIVACY}?site=town&done=changed")
    page = page_of(await webmaster.get(done.headers["location"]))
    assert said(page, "[role=status]") == ["✓ Saved. The rules are in force within ten seconds."]
    assert said(page, ".rows strong") == ["Version 1"]
    listed = page_of(await webmaster.get("/console/sites"))
    facts = dict(zip(said(listed, ".facts dt"), said(listed, ".facts dd"), strict=True))
    assert facts["Stored for"].startswith("conversations 30 days")
    assert listed.select(f"main a[href='{PRIVACY}?site=town']")
    assert [(entry.action, entry.via, entry.who) for entry in fakes.audit_log.kept] == [
        ("privacy.put", "console", "webmaster")
    ]


async def test_what_loses_nothing_is_changed_undone_and_goes_back_to_the_file(
    webmaster: httpx.AsyncClient, fakes: FakePorts
) -> None:
    form = form_of(page_of(await webmaster.get(PRIVACY)))
    for logging in ("off", "without-text"):
        page = page_of(
            await send(webmaster, PRIVACY, form_of(page_of(await webmaster.get(PRIVACY))) | {"log_questions": logging})
        )
        assert page.select("main form.filter .wrong") == []
        assert (await send(webmaster, PRIVACY, form_of(page))).status_code == 303
    restore = f"{PRIVACY}/versions/1/restore"
    page_of(await send(webmaster, restore, {"over": "2"}), 422)
    page_of(await send(webmaster, restore, {"over": "1", "sure": "yes"}), 409)
    assert (await send(webmaster, restore, {"over": "2", "sure": "yes"})).headers["location"].endswith("restored")
    assert form_of(page_of(await webmaster.get(PRIVACY)))["log_questions"] == "off"
    done = await send(webmaster, f"{PRIVACY}/remove", {"over": "3", "sure": "yes"})
    assert done.headers["location"].endswith("removed")
    assert form_of(page_of(await webmaster.get(PRIVACY)))["log_questions"] == form["log_questions"] == "on"


async def test_what_models_read_is_logged_from_now_on(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    form = form_of(page_of(await webmaster.get(PRIVACY)))
    assert form["log_prompts"] == "off"
    page = page_of(await send(webmaster, PRIVACY, form | {"log_prompts": "on"}))
    assert "with input and output of models" in said(page, "main form.filter strong")[0]
    assert (await send(webmaster, PRIVACY, form_of(page))).status_code == 303
    assert form_of(page_of(await webmaster.get(PRIVACY)))["log_prompts"] == "on"
    listed = page_of(await webmaster.get("/console/sites"))
    assert any(each.endswith("; with input and output of models") for each in said(listed, ".facts dd"))
    assert [(entry.action, entry.via, entry.who) for entry in fakes.audit_log.kept] == [
        ("privacy.put", "console", "webmaster")
    ]
    page_of(await send(webmaster, PRIVACY, form | {"log_prompts": "perhaps"}), 422)


async def test_what_does_not_fit_and_what_came_late_is_said(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    form = form_of(page_of(await webmaster.get(PRIVACY)))
    page = page_of(await send(webmaster, PRIVACY, form | {"outcomes": "0"}), 422)
    assert "outcomes:" in said(page, "[role=alert]")[0]
    assert form_of(page)["outcomes"] == "0"
    late = form_of(page_of(await send(webmaster, PRIVACY, form | {"outcomes": "400"})))
    other = form_of(page_of(await send(webmaster, PRIVACY, form | {"log_questions": "off"})))
    assert (await send(webmaster, PRIVACY, other)).status_code == 303
    page = page_of(await send(webmaster, PRIVACY, late), 409)
    assert "version 1 is live" in said(page, "[role=alert]")[0]
    assert len(fakes.texts.kept) == 1
    page_of(await webmaster.get(f"{PRIVACY}?site=other"), 403)
