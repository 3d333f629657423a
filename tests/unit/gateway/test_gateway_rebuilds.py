"""Rebuilds over HTTP."""

from __future__ import annotations

import httpx
import pytest

from adapters.elastic.rebuilds import RebuildRunning
from gateway.rebuild_runs import RebuildRefused
from pipelines.operate.rebuild.rebuild import NotVerified
from tests.edge import CHAT_ANYWHERE, assert_problem, bearer
from tests.fakes.ports import FakePorts

REBUILDS = "/v1/admin/sites/town/rebuilds"


async def test_a_rebuild_is_begun_looked_at_promoted_and_rolled_back(client: httpx.AsyncClient) -> None:
    begun = await client.post(REBUILDS, json={"from": "changes", "chunk_size": 1000})
    assert begun.status_code == 202, begun.text
    assert begun.json()["generation"] == 2
    assert (await client.post(f"{REBUILDS}/2/promote")).json()["state"] == "live"
    assert (await client.post(REBUILDS, json={"from": "embeddings", "promote": True})).json()["generation"] == 3
    await client.post(f"{REBUILDS}/3/promote")
    assert [(g["generation"], g["state"]) for g in (await client.get(REBUILDS)).json()["generations"]] == [
        (2, "previous"),
        (3, "live"),
    ]
    assert (await client.post(f"{REBUILDS}:rollback")).json()["generation"] == 2
    assert (await client.delete(f"{REBUILDS}/3")).status_code == 204
    assert_problem(await client.get(f"{REBUILDS}/3"), 404, "no-such-generation")


async def test_the_order_reaches_the_rebuild(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await client.post(REBUILDS, json={"from": "chunks", "embedder": "bge-m3", "fresh": True})
    [order] = fakes.rebuilds.orders
    assert (order.source, order.embedder, order.fresh, order.promote) == ("chunks", "bge-m3", True, False)


async def test_a_promotion_that_takes_long_is_202(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await client.post(REBUILDS, json={"from": "changes"})
    fakes.rebuilds.slow = True
    answer = await client.post(f"{REBUILDS}/2/promote")
    assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "from"),
        ({"from": "thin air"}, "from"),
        ({"from": "changes", "chunk_size": 1}, "chunk_size"),
        ({"from": "changes", "chunk_mode": "odd"}, "chunk_mode"),
        ({"from": "changes", "size": 3}, "size"),
    ],
)
async def test_a_wrong_order_is_told_by_field(client: httpx.AsyncClient, body: dict[str, object], field: str) -> None:
    problem = assert_problem(await client.post(REBUILDS, json=body), 422, "invalid")
    assert [error["field"] for error in problem["errors"]] == [field]


async def test_refusals_are_conflicts(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.rebuilds.error = RebuildRunning("one is under way")
    assert_problem(await client.post(REBUILDS, json={"from": "changes"}), 409, "rebuild-running")
    fakes.rebuilds.error = RebuildRefused("generation 2 is not finished")
    assert_problem(await client.post(REBUILDS, json={"from": "changes"}), 409, "rebuild-refused")
    fakes.rebuilds.error = None
    await client.post(REBUILDS, json={"from": "changes"})
    fakes.rebuilds.error = NotVerified("was not verified")
    assert_problem(await client.post(f"{REBUILDS}/2/promote"), 409, "not-verified")


async def test_nothing_to_roll_back_to_and_nothing_of_that_number(client: httpx.AsyncClient) -> None:
    assert_problem(await client.post(f"{REBUILDS}:rollback"), 404, "no-such-generation")
    assert_problem(await client.post(f"{REBUILDS}/7/promote"), 404, "no-such-generation")
    assert_problem(await client.delete(f"{REBUILDS}/7"), 404, "no-such-generation")
    await client.post(REBUILDS, json={"from": "changes"})
    await client.post(f"{REBUILDS}/2/promote")
    assert_problem(await client.delete(f"{REBUILDS}/2"), 409, "generation-live")


async def test_only_for_operators_of_known_sites(client: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    assert_problem(await stranger.get(REBUILDS), 401, "unauthorized")
    assert_problem(await stranger.get(REBUILDS, headers=bearer(CHAT_ANYWHERE)), 403, "forbidden")
    assert_problem(await client.get("/v1/admin/sites/village/rebuilds"), 404, "unknown-site")
