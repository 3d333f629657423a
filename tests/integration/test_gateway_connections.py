"""The edge behind a real uvicorn on a loopback socket: what only real connections can show. No Kafka needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from gateway.app import create_app
from gateway.fakes import FakeAnswers, FakePages, FakePorts
from schemas.answer import Done, Token
from tests.edge import ADMIN, bearer, edge_settings, served, until

CHAT = "/v1/sites/town/chat"
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakePages({"town": "en"}))


@pytest.fixture
async def client(fakes: FakePorts, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served(create_app(edge_settings(tmp_path), fakes.ports)) as url,
        httpx.AsyncClient(base_url=url, headers=bearer(ADMIN), timeout=20) as client,
    ):
        yield client


async def nobody_follows(answers: FakeAnswers) -> None:
    await until(lambda: not answers.following)


async def test_tokens_arrive_before_the_answer_is_complete(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text="first"), 3600.0, Done()]
    async with client.stream("POST", CHAT, json={"question": "When?"}, headers=STREAM) as response:
        assert response.headers["transfer-encoding"] == "chunked"
        async for line in response.aiter_lines():
            if line == 'data: {"text":"first"}':
                break
    await nobody_follows(fakes.answers)  # leaving the block closed the connection


async def test_a_flood_of_tokens_does_not_run_ahead_of_its_reader(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    count = 20_000
    fakes.answers.script = lambda _: [Token(text="x" * 1_000)] * count + [Done()]
    async with client.stream("POST", CHAT, json={"question": "When?"}, headers=STREAM) as response:
        pieces = response.aiter_raw()
        await anext(pieces)
        before = -1
        async with asyncio.timeout(20):
            while fakes.answers.pulled != before:  # until the buffers between us are full
                before = fakes.answers.pulled
                await asyncio.sleep(0.2)
        assert fakes.answers.pulled < count
    await nobody_follows(fakes.answers)


@pytest.mark.parametrize(
    ("path", "key"),
    [("news%2F12", "town:en:news%2F12"), ("%C3%BCber%20uns", "town:en:%C3%BCber%20uns"), ("a%2525", "town:en:a%2525")],
)
async def test_page_ids_survive_uvicorn(client: httpx.AsyncClient, path: str, key: str) -> None:
    response = await client.delete(f"/v1/sites/town/pages/{path}")
    assert (response.status_code, response.json()["page_key"]) == (202, key)


async def test_a_connection_that_breaks_in_a_bulk_leaves_what_was_accepted(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    async def lines() -> AsyncIterator[bytes]:
        for n in range(600):
            yield b'{"page": {"id": "p%d"}}\n' % n
        await until(lambda: fakes.pages.batches)
        raise ConnectionAbortedError

    with pytest.raises(ConnectionAbortedError):
        await client.post("/v1/sites/town/pages:bulk", content=lines())
    assert fakes.pages.batches == [500]
    assert (await client.get("/healthz")).status_code == 200
