"""Audits and repairs in the console and over HTTP, over the gateway's fakes."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from pipelines.operate.audit.report import Finding
from tests.console import EVIL, console_ports
from tests.edge import EVERYTHING_TOWN, VIEW_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in

AUDIT = "/console/indexes/audit"
RUN = "/v1/admin/sites/town/audit-run"


@pytest.fixture
def fakes() -> FakePorts:
    made = console_ports()
    made.audits.counts = {"missing": 2}
    return made


@pytest.fixture
async def webmaster(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    return stranger


async def send(client: httpx.AsyncClient, path: str, **form: str) -> httpx.Response:
    token = str(one(page_of(await client.get(AUDIT)), ".who input[name=token]")["value"])
    return await client.post(f"/console/indexes/{path}?site=town", data={"token": token} | form, headers=OURS)


async def over(client: httpx.AsyncClient) -> httpx.Response:
    async with asyncio.timeout(60):
        while "refresh" in (answer := await client.get(AUDIT)).headers:  # noqa: ASYNC110  # nothing tells when
            await asyncio.sleep(0.001)
    return answer


async def test_an_audit_is_begun_watched_and_read(
    webmaster: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(page_of(await webmaster.get(AUDIT)), ".empty") == ["No audit of this website was started here yet."]
    fakes.audits.holds = asyncio.Event()
    found = Finding(kind="missing", page_key="town:en:fees", detail=EVIL, revision_expected=2, revision_found=None)
    made = fakes.audits._report("town", "pagewire-town-000001", {"missing": 2})
    told = made.model_copy(update={"findings": (found,)})
    monkeypatch.setattr(fakes.audits, "_report", lambda *_: told)
    assert (await send(webmaster, "audit")).headers["location"] == f"{AUDIT}?site=town&done=begun"
    answer = await webmaster.get(AUDIT)
    assert answer.headers["refresh"] == "3"
    page = page_of(answer)
    assert said(page, "h2 .badge") == ["running"]
    assert page.select("main form") == []
    page_of(await send(webmaster, "audit"), 409)
    fakes.audits.holds.set()
    page = page_of(await over(webmaster))
    assert said(page, "h2 .badge") == ["finished"]
    assert said(page, "tbody th, tbody td") == ["en fees", "missing", EVIL]
    assert one(page, "tbody a")["href"] == "/console/page?site=town&id=fees&of=en"
    assert fakes.audit_log.kept == []


async def test_a_repair_is_begun_when_it_is_meant(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    await send(webmaster, "audit")
    page = page_of(await over(webmaster))
    assert said(page, "main form button") == ["Repair", "Audit now"]
    page_of(await send(webmaster, "repair", force="yes"), 422)
    await send(webmaster, "repair", force="yes", sure="yes")
    page = page_of(await over(webmaster))
    assert said(page, "[role=status]") == ["✓ The index matches the change log exactly."]
    facts = dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))
    assert (facts["Pages with differences"], facts["Changes sent again"]) == ("2", "1")
    assert [(entry.via, entry.action, entry.site, entry.target) for entry in fakes.audit_log.kept] == [
        ("console", "index.repair", "town", "force")
    ]


async def test_the_same_over_http(client: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    assert (await client.get(RUN)).json() == {"state": None, "run": None}
    begun = await client.post(RUN, json={})
    assert (begun.status_code, begun.json()["state"]) == (202, "running")
    async with asyncio.timeout(60):
        while (last := (await client.get(RUN)).json())["state"] == "running":  # noqa: ASYNC110  # nothing tells when
            await asyncio.sleep(0.001)
    assert (last["state"], last["run"]["found"]["counts"]) == ("done", {"missing": 2})
    assert_problem(await client.post(RUN, json={"repair": "perhaps"}), 422, "invalid")
    assert_problem(await stranger.get(RUN, headers=bearer(VIEW_TOWN)), 403, "forbidden")
