"""Gaps over HTTP: who may read them, what of them is shown, and what is said while they are being made."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from pipelines.query.log.gap_reports import UnderWay
from schemas.gaps import GapReport
from schemas.outcome import Outcome, OutcomeEvent
from tests.asking import NOON
from tests.edge import ADMIN, CHAT_ANYWHERE, EVERYTHING_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts

GAPS = "/v1/admin/sites/town/gaps"


async def asked(fakes: FakePorts, n: int, text: str, became: Any = "refused", days: float = 1) -> None:
    at = NOON - timedelta(days=days)
    said = Outcome(asked_at=at, asked_in="en", lang="en", question=text, became=became, grade=5)
    await fakes.outcomes.put(OutcomeEvent(site="town", request_id=f"request-{n:04}", conversation="c1", event=said))


@pytest.fixture
async def town(fakes: FakePorts) -> FakePorts:
    for n in range(3):
        await asked(fakes, n, "Where is the ice rink?" if n else "where is the ICE rink")
    await asked(fakes, 3, "sauna prices")
    for n in range(4, 9):
        await asked(fakes, n, "When does the library open?", "answered", days=n)
    return fakes


def to(moment: Any) -> dict[str, str]:
    return {"to": moment.isoformat()}


async def test_what_is_missed_most_comes_first_and_what_is_answered_is_no_gap(
    client: httpx.AsyncClient, town: FakePorts
) -> None:
    made = GapReport.model_validate((await client.get(GAPS, params=to(NOON))).json())
    assert [(group.label, group.missed, group.asked) for group in made.groups] == [
        ("Where is the ice rink?", 3, 3),
        ("sauna prices", 1, 1),
    ]
    assert (made.total, made.counts.asked, made.counts.missed, made.groups[0].covered) == (2, 9, 4, "nothing")
    every = (await client.get(GAPS, params=to(NOON) | {"all": "true", "limit": "1"})).json()
    assert ([group["asked"] for group in every["groups"]], every["total"]) == ([5], 3)
    week = (await client.get(GAPS, params=to(NOON) | {"days": "6.5"})).json()
    assert (week["counts"]["asked"], week["counts_before"]["asked"]) == (7, 2)


class Slow:
    """Is still making its report."""

    async def report(
        self, site: str, days: float, until: object = None, *, groups: object = (), wait: float | None = None
    ) -> UnderWay:
        assert wait is not None
        await asyncio.sleep(0)
        return UnderWay(NOON)


async def test_a_report_that_is_not_ready_is_asked_for_again(
    app: FastAPI, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = app.state.edge.ports
    monkeypatch.setattr(app.state, "edge", app.state.edge.__class__(**vars(app.state.edge) | {"ports": _with(ports)}))
    answer = await client.get(GAPS, params={"wait": "0"})
    assert (answer.status_code, answer.json()["site"]) == (202, "town")
    assert answer.json()["began_at"].startswith("2026-05-04T12:00")


def _with(ports: Any) -> Any:
    return ports.__class__(**vars(ports) | {"gaps": Slow()})


@pytest.mark.parametrize("query", ["?days=0", "?days=400", "?limit=0", "?to=yesterday", "?wait=61", "?all=perhaps"])
async def test_a_wrong_question_is_refused(client: httpx.AsyncClient, query: str) -> None:
    assert_problem(await client.get(f"{GAPS}{query}"), 422, "invalid")


async def test_only_operators_of_the_site_may_read_them(app: FastAPI, town: FakePorts) -> None:
    async def status(key: str, path: str) -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://t", headers=bearer(key)) as caller:
            return (await caller.get(path)).status_code

    assert await status(CHAT_ANYWHERE, GAPS) == 403
    assert await status(EVERYTHING_TOWN, GAPS.replace("town", "other")) == 403
    assert await status(EVERYTHING_TOWN, GAPS) == 200
    assert await status(ADMIN, "/v1/admin/sites/nowhere/gaps") == 404
