"""Editing a dead letter in the console, over the gateway's fakes."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.console import console_ports
from tests.edge import ADMIN
from tests.fakes.ports import FakePorts
from tests.making import letter
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

LETTER = "/console/dlq/cms.changes/0/1"
VALUE = {"page_id": "fees", "note": "<b>&"}


@pytest.fixture
def fakes() -> FakePorts:
    made = console_ports()
    fine = letter(1).model_copy(update={"value": VALUE, "problem": None, "text": None})
    other = letter(2, topic="ingest.chunks")
    for each in (fine, other):
        made.letters.kept[each.letter.id] = each
    return made


@pytest.fixture
async def operator(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await sign_in(stranger, ADMIN)).status_code == 303
    return stranger


async def send(client: httpx.AsyncClient, **form: str) -> httpx.Response:
    token = str(one(page_of(await client.get(LETTER)), ".who input[name=token]")["value"])
    return await client.post(f"{LETTER}/edit", data={"token": token} | form, headers=OURS)


async def test_what_people_wrote_can_be_put_right(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    page = page_of(await operator.get(LETTER))
    assert json.loads(one(page, "#value").get_text()) == VALUE
    page_of(await send(operator, value="{}"), 422)
    assert fakes.letters.kept["cms.changes/0/1"].letter.state == "open"
    done = await send(operator, value=json.dumps(VALUE | {"note": "ö"}), sure="yes")
    assert (done.status_code, done.headers["location"]) == (303, LETTER)
    assert fakes.letters.kept["cms.changes/0/1"].letter.state == "edited"
    assert page_of(await operator.get(LETTER)).select("#value") == []
    assert [(entry.via, entry.action, entry.target) for entry in fakes.audit_log.kept] == [
        ("console", "letters.edit", "cms.changes/0/1")
    ]


async def test_what_is_no_message_is_refused_and_nothing_typed_is_lost(operator: httpx.AsyncClient) -> None:
    typed = '{"page_id": '
    page = page_of(await send(operator, value=typed, sure="yes"), 422)
    assert said(page, "[role=alert]")[0].startswith("not JSON")
    assert one(page, "#value").get_text().strip() == typed.strip()


async def test_what_a_stage_made_is_not_edited(operator: httpx.AsyncClient) -> None:
    page = page_of(await operator.get("/console/dlq/ingest.chunks/0/2"))
    assert said(page, "main button") == ["Send again"]
    assert page.select("#value") == []


async def test_a_long_message_is_edited_with_the_command(
    operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.console.letters.MOST_EDITED", 10)
    page = page_of(await operator.get(LETTER))
    assert page.select("#value") == []
    assert "pagewire dlq edit cms.changes/0/1" in page.get_text()
