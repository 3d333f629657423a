"""Audit and repair over HTTP: who may, what is asked, what is refused."""

from __future__ import annotations

import httpx
import pytest

from pipelines.operate.audit.audit import SETTLE
from pipelines.operate.audit.repair import AuditRunning, LogLost
from pipelines.runtime.errors import PagewireError, Retryable
from tests.edge import INGEST_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts

AUDIT = "/v1/admin/sites/town/audit"


async def test_an_audit_of_the_live_index_or_of_a_named_one(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.audits.counts = {"stale": 2}
    report = (await client.get(AUDIT)).json()
    assert (report["clean"], report["counts"], report["index"]) == (False, {"stale": 2}, "pagewire-town-000001")
    await client.get(AUDIT, params={"index": "pagewire-town-000002", "settle": 0})
    assert fakes.audits.asked == [("town", None, SETTLE), ("town", "pagewire-town-000002", 0)]


async def test_a_repair_tells_before_and_after(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.audits.counts = {"stale": 2}
    done = (await client.post(AUDIT, json={"repair": True})).json()
    assert (done["before"]["clean"], done["sent"], done["after"]["clean"]) == (False, 1, True)
    await client.post(AUDIT, json={"repair": True, "force": True})
    assert fakes.audits.asked == [("town", False), ("town", True)]


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"repair": false}', b'{"repair": true, "forse": true}'])
async def test_a_repair_must_be_said(client: httpx.AsyncClient, fakes: FakePorts, body: bytes) -> None:
    response = await client.post(AUDIT, content=body)
    assert response.status_code in (400, 422)
    assert fakes.audits.asked == []


@pytest.mark.parametrize(
    ("error", "status"), [(AuditRunning("busy"), 409), (LogLost("lost"), 409), (Retryable("away"), 503)]
)
async def test_refusals(client: httpx.AsyncClient, fakes: FakePorts, error: PagewireError, status: int) -> None:
    fakes.audits.error = error
    assert_problem(await client.post(AUDIT, json={"repair": True}), status, error.code)
    assert_problem(await client.get(AUDIT), status, error.code)


async def test_only_an_admin_may(stranger: httpx.AsyncClient, client: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert_problem(await stranger.get(AUDIT), 401, "unauthorized")
    assert_problem(await stranger.get(AUDIT, headers=bearer(INGEST_TOWN)), 403, "forbidden")
    assert_problem(await stranger.post(AUDIT, headers=bearer(INGEST_TOWN)), 403, "forbidden")
    assert_problem(await client.get("/v1/admin/sites/village/audit"), 404, "unknown-site")
    assert_problem(await client.get(AUDIT, params={"settle": -1}), 422, "invalid")
    assert fakes.audits.asked == []
