"""The form for a message to a person, over HTTP: kept, limited, shown to administrators, erased."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from gateway.app import MESSAGES, create_app
from pipelines.conversations.handovers import VersionedHandover
from pipelines.runtime.errors import Retryable
from tests.edge import EDIT_TOWN, EVERYTHING_TOWN, PAGE_ORIGIN, assert_problem, bearer, edge_settings
from tests.fakes.ports import FakePorts
from wiring.settings import SiteSettings

SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSB0ZXN0LCAyNCBieXRlcyBvciBtb3Jl"
TOWN = SiteSettings.model_validate(
    {
        "languages": ["en"],
        "title": "Town",
        "origins": [PAGE_ORIGIN],
        "handover": {"webhook": {"url": "https://desk.example/in", "secret": SECRET}},
        "chat": {"examples": {"en": ["When is it open?"]}},
    }
)
FORM = "/v1/sites/town/handovers"
LIST = "/v1/admin/sites/town/handovers"
ORDER = {"reply_to": "eva@town.example", "message": "Please call."}


@pytest.fixture
async def desk(tmp_path: Path, fakes: FakePorts) -> AsyncIterator[httpx.AsyncClient]:
    settings = edge_settings(tmp_path, sites={"town": TOWN, "other": SiteSettings()}, visitor_rate="1000/minute")
    transport = httpx.ASGITransport(create_app(settings, fakes.ports))
    async with httpx.AsyncClient(transport=transport, base_url="https://gateway.test") as client:
        yield client


async def visitor(client: httpx.AsyncClient) -> dict[str, str]:
    minted = await client.post("/v1/sites/town/visitor-tokens", headers={"Origin": PAGE_ORIGIN})
    return bearer(minted.json()["token"])


async def test_a_message_is_kept_with_the_conversation_only_if_the_visitor_says_so(
    desk: httpx.AsyncClient, fakes: FakePorts
) -> None:
    me, admin = await visitor(desk), bearer(EVERYTHING_TOWN)
    asked = await desk.post("/v1/sites/town/chat", json={"question": "When does it open?"}, headers=me)
    talk = asked.json()["conversation_id"]
    alone = await desk.post(FORM, json=ORDER, headers=me)
    assert alone.status_code == 201
    along = await desk.post(FORM, json=ORDER | {"name": "Eva", "conversation_id": talk}, headers=me)
    stranger = await visitor(desk)
    assert_problem(
        await desk.post(FORM, json=ORDER | {"conversation_id": talk}, headers=stranger), 404, "unknown-conversation"
    )
    kept = {of: one.stored for (_, of), one in fakes.handovers.kept.items()}
    assert set(kept) == {alone.json()["reference"], along.json()["reference"]}
    assert kept[alone.json()["reference"]].handover.conversation == ()
    [turn] = kept[along.json()["reference"]].handover.conversation
    assert turn.question == "When does it open?"
    # Editors do not read what visitors confide; administrators see it, without whose it is.
    assert_problem(await desk.get(LIST, headers=bearer(EDIT_TOWN)), 403, "forbidden")
    listed = (await desk.get(LIST, params={"limit": 1}, headers=admin)).json()
    assert (listed["handovers"][0]["state"], "owner" in listed["handovers"][0]) == ("waiting", False)
    rest = (await desk.get(LIST, params={"after": listed["next"]}, headers=admin)).json()
    assert len(rest["handovers"]) == 1
    reference = alone.json()["reference"]
    assert_problem(await desk.post(f"{LIST}/{reference}/redeliver", headers=admin), 409, "handover-waiting")
    # Deleted with the conversation that it took along; the other one with all that is the visitor's.
    assert (await desk.delete(f"/v1/sites/town/conversations/{talk}", headers=me)).status_code == 204
    assert [of for _, of in fakes.handovers.kept] == [reference]
    assert (await desk.delete("/v1/sites/town/visitors/me", headers=me)).status_code == 204
    assert fakes.handovers.kept == {}
    assert_problem(await desk.delete(f"{LIST}/{reference}", headers=admin), 404, "unknown-handover")


async def test_a_form_sent_a_hundred_times_is_limited(desk: httpx.AsyncClient, fakes: FakePorts) -> None:
    me = await visitor(desk)
    answers = [await desk.post(FORM, json=ORDER, headers=me) for _ in range(100)]
    assert [answer.status_code for answer in answers] == [201] * MESSAGES + [429] * (100 - MESSAGES)
    assert len(fakes.handovers.kept) == MESSAGES
    assert (await desk.post(FORM, json=ORDER, headers=await visitor(desk))).status_code == 201  # another visitor


async def test_what_does_not_fit_is_refused_and_costs_nothing(desk: httpx.AsyncClient, fakes: FakePorts) -> None:
    me = await visitor(desk)
    wrong = ("", "eva", "a@b\nBcc: x@y", "eva@x, bob@y", "Eva <eva@x>", "a" * 300 + "@x", "12")
    for reply_to in wrong:
        assert_problem(await desk.post(FORM, json=ORDER | {"reply_to": reply_to}, headers=me), 422, "invalid")
    for order in (ORDER | {"name": "E\r\nBcc: x"}, ORDER | {"message": " "}, ORDER | {"message": "a" * 4_001}):
        assert_problem(await desk.post(FORM, json=order, headers=me), 422, "invalid")
    for reply_to in ("eva@town.example", "+49 30 23125-100", "жук@пример.бел"):
        assert (await desk.post(FORM, json=ORDER | {"reply_to": reply_to}, headers=me)).status_code == 201
    fakes.handovers.error = Retryable("away")
    assert_problem(await desk.post(FORM, json=ORDER, headers=me), 503, "unavailable")


async def test_a_site_without_one_says_so(client: httpx.AsyncClient, desk: httpx.AsyncClient) -> None:
    assert_problem(await client.post(FORM, json=ORDER, headers=bearer(EVERYTHING_TOWN)), 404, "no-handover")
    off, on = (
        (await client.get("/v1/sites/town/welcome")).json(),
        (await desk.get("/v1/sites/town/welcome?lang=en-GB")).json(),
    )
    assert off == {"title": "Town & Sons", "examples": [], "model": False, "handover": False, "frequent": False}
    assert on == {
        "title": "Town",
        "examples": ["When is it open?"],
        "model": False,
        "handover": True,
        "frequent": False,
    }
    said = await desk.get("/v1/sites/town/welcome", headers={"Origin": PAGE_ORIGIN})
    assert said.headers["access-control-allow-origin"] == PAGE_ORIGIN


async def test_the_console_shows_what_was_given_up_and_delivers_it_again(
    desk: httpx.AsyncClient, fakes: FakePorts
) -> None:
    sent = await desk.post(FORM, json=ORDER | {"message": "<b>Help</b>"}, headers=await visitor(desk))
    reference = sent.json()["reference"]
    kept = fakes.handovers.kept["town", reference]
    failed = kept.stored.model_copy(update={"state": "failed", "next_at": None, "reason": "401 from the desk"})
    fakes.handovers.kept["town", reference] = VersionedHandover(failed, kept.version)
    desk.headers["Sec-Fetch-Site"] = "same-origin"
    await desk.post("/console/sign-in", data={"key": EVERYTHING_TOWN})
    page = (await desk.get("/console/handovers?site=town")).text
    for shown in ("&lt;b&gt;Help&lt;/b&gt;", reference, "401 from the desk", "not delivered"):
        assert shown in page
    token = page.partition('name="token" value="')[2].partition('"')[0]
    again = await desk.post(f"/console/handovers/{reference}/redeliver?site=town", data={"token": token, "sure": "yes"})
    assert again.status_code == 303
    assert fakes.handovers.kept["town", reference].stored.state == "waiting"
    assert [(entry.action, entry.target) for entry in fakes.audit_log.kept][-1] == ("handovers.redeliver", reference)
