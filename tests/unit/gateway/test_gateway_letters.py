"""Dead letters over HTTP: what is listed, what a redrive sends, and with which words things are refused."""

from __future__ import annotations

import json
from datetime import timedelta

import httpx
import pytest

from tests.edge import assert_problem
from tests.fakes.ports import FakePorts
from tests.making import NOON, letter

DLQ = "/v1/admin/dlq"
FIRST = f"{DLQ}/cms.changes/0/1"


@pytest.fixture(autouse=True)
def _letters(fakes: FakePorts) -> None:
    for made in (
        letter(1),
        letter(2, page_id="a/b", site="lake", last_failed_at=NOON + timedelta(hours=1)),
        letter(3, topic="ingest.chunks", stage="embed"),
        letter(4, stage=None, code="unreadable", key=None, site=None, page_id=None),
        letter(5, state="dropped", handled_at=NOON),
    ):
        fakes.letters.kept[made.letter.id] = made


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        ("", [4, 3, 2, 1]),
        ("limit=2", [4, 3]),
        ("limit=0", []),
        ("all=true", [5, 4, 3, 2, 1]),
        ("stage=embed", [3]),
        ("topic=ingest.chunks", [3]),
        ("site=lake&page=a%2Fb", [2]),
        ("code=unreadable", [4]),
        ("since=2026-05-04T13:00:00Z", [2]),
        ("since=2026-05-04T15:00:00%2B02:00", [2]),
    ],
)
async def test_the_newest_that_fit_are_listed(client: httpx.AsyncClient, query: str, offsets: list[int]) -> None:
    response = await client.get(f"{DLQ}?{query}")
    assert response.status_code == 200
    body = response.json()
    assert [int(found["id"].rsplit("/", 1)[1]) for found in body["letters"]] == offsets
    assert body["total"] == (4 if query.startswith("limit") else len(offsets))


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("topic=answer.events", "topic"),
        ("since=2026-05-04", "since"),
        ("since=yesterday", "since"),
        ("limit=-1", "limit"),
    ],
)
async def test_a_filter_that_is_none_is_refused_by_name(client: httpx.AsyncClient, query: str, field: str) -> None:
    body = assert_problem(await client.get(f"{DLQ}?{query}"), 422, "invalid")
    assert [error["field"] for error in body["errors"]] == [field]


async def test_a_letter_is_shown_with_all_there_is(client: httpx.AsyncClient) -> None:
    body = (await client.get(FIRST)).json()
    assert (body["letter"]["page_id"], body["value"], body["text"]) == ("fees", None, "tampered")


async def test_a_redrive_sends_it_as_it_was_or_corrected(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    plain = await client.post(f"{FIRST}/redrive")
    assert (plain.status_code, plain.json()["state"]) == (200, "redriven")
    second = f"{DLQ}/cms.changes/0/2/redrive"
    edited = await client.post(second, json={"value": {"v": 1, "op": "ü"}})
    assert (edited.status_code, edited.json()["state"]) == (200, "edited")
    (first, untouched), (_, value) = fakes.letters.sent
    assert (first, untouched) == ("cms.changes/0/1", None)
    assert json.loads(value or b"") == {"v": 1, "op": "ü"}


async def test_a_dropped_letter_is_not_listed_any_more(client: httpx.AsyncClient) -> None:
    assert (await client.delete(FIRST)).json()["state"] == "dropped"
    assert (await client.get(DLQ)).json()["total"] == 3
    assert_problem(await client.delete(FIRST), 409, "letter-handled")


async def test_what_cannot_be_done_is_said(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert_problem(await client.get(f"{DLQ}/cms.changes/0/99"), 404, "unknown-letter")
    assert_problem(await client.post(f"{DLQ}/cms.changes/0/99/redrive"), 404, "unknown-letter")
    assert_problem(await client.get(f"{DLQ}/cms.changes/x/1"), 422, "invalid")
    assert_problem(await client.post(f"{DLQ}/cms.changes/0/4/redrive"), 422, "letter-unreadable")
    assert_problem(await client.post(f"{DLQ}/cms.changes/0/5/redrive"), 409, "letter-handled")
    fakes.letters.accepts = lambda value: False
    assert_problem(await client.post(f"{FIRST}/redrive", json={"value": 7}), 422, "bad-value")
    assert_problem(await client.post(f"{FIRST}/redrive", content=b"{"), 400, "bad-json")
    assert_problem(await client.post(f"{FIRST}/redrive", json={"worth": 7}), 422, "invalid")
    assert fakes.letters.sent == []


async def test_many_are_redriven_and_dropped_by_filter(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    redriven = await client.post(f"{DLQ}:redrive", json={"topic": "cms.changes"})
    assert redriven.json() == {"handled": 2, "refused": 1}
    assert {id for id, _ in fakes.letters.sent} == {"cms.changes/0/1", "cms.changes/0/2"}
    assert (await client.post(f"{DLQ}:drop", json={})).json() == {"handled": 2, "refused": 0}
    assert (await client.get(DLQ)).json()["total"] == 0
    assert (await client.post(f"{DLQ}:drop", json={})).json() == {"handled": 0, "refused": 0}


@pytest.mark.parametrize("action", ["redrive", "drop"])
async def test_without_a_filter_nothing_is_touched(client: httpx.AsyncClient, fakes: FakePorts, action: str) -> None:
    assert_problem(await client.post(f"{DLQ}:{action}"), 400, "bad-json")
    assert_problem(await client.post(f"{DLQ}:{action}", json={"sight": "town"}), 422, "invalid")
    assert_problem(await client.post(f"{DLQ}:{action}", json={"topic": "cms"}), 422, "invalid")
    assert (await client.get(DLQ)).json()["total"] == 4


async def test_the_metrics_count_open_letters(client: httpx.AsyncClient) -> None:
    text = (await client.get("/metrics")).text
    assert 'pagewire_dead_letters_open{code="bad-message",stage="chunk"} 2.0' in text
    assert 'pagewire_dead_letters_open{code="unreadable",stage=""} 1.0' in text
