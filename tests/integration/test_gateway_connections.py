"""The edge behind a real uvicorn on a loopback socket: what only real connections can show. No Kafka needed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from gateway.app import create_app
from gateway.main import server_config
from schemas.answer import Answered, Done, Token
from tests.edge import ADMIN, bearer, edge_settings, parse_sse, served, until
from tests.fakes.ports import FakeAnswers, FakeIntake, FakePorts

CHAT = "/v1/sites/town/chat"
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakeIntake({"town": "en"}))


@pytest.fixture
async def url(fakes: FakePorts, tmp_path: Path) -> AsyncIterator[str]:
    """The gateway as `pagewire gateway` serves it."""
    app = create_app(edge_settings(tmp_path), fakes.ports)
    async with served(app, server_config(app)) as url:
        yield url


@pytest.fixture
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with (
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


async def test_a_gateway_that_stops_says_so_where_an_answer_takes_too_long(fakes: FakePorts, tmp_path: Path) -> None:
    fakes.answers.script = lambda _: [3600.0, Done()]
    app = create_app(edge_settings(tmp_path), fakes.ports)
    async with httpx.AsyncClient(headers=bearer(ADMIN), timeout=20) as client:
        async with served(app, server_config(app)) as url:
            asking = asyncio.create_task(client.post(f"{url}{CHAT}", json={"question": "When?"}))
            await until(lambda: bool(fakes.answers.asked))
        answer = await asking
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (503, "unavailable", "2")


async def test_who_streams_may_come_back_so_leaving_stops_nothing(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text="first"), 3600.0, Done()]
    async with client.stream("POST", CHAT, json={"question": "When?"}, headers=STREAM) as response:
        await anext(response.aiter_raw())
    await nobody_follows(fakes.answers)
    assert not any(stopped.is_set() for stopped in fakes.answers.stopped.values())


async def test_who_does_not_and_hangs_up_has_stopped_the_answer_and_may_ask_on(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    begun = (await client.post(CHAT, json={"question": "When?"})).json()
    fakes.answers.script = lambda _: [Token(text="first"), 3600.0, Done()]
    further = {"question": "And on Sundays?", "conversation_id": begun["conversation_id"]}
    for path, order in ((CHAT, further), (f"/v1/sites/town/conversations/{further['conversation_id']}/regenerate", {})):
        with pytest.raises(httpx.ReadTimeout):
            await client.post(path, json=order, timeout=0.5)
        left = fakes.answers.asked[-1].request_id
        await until(lambda left=left: fakes.answers.stopped[left].is_set())  # type: ignore[misc]
        await nobody_follows(fakes.answers)
    fakes.answers.script = lambda _: [Answered(text="No.", citations=(), sources=(), extractive=False), Done()]
    assert (await client.post(CHAT, json=further)).json()["answer"] == "No."


async def test_who_tries_out_and_hangs_up_has_stopped_each_trial(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [3600.0, Done()]
    with pytest.raises(httpx.ReadTimeout):
        await client.post(
            "/v1/admin/sites/town/trials", json={"question": "When?", "trials": [{}, {"hits": 3}]}, timeout=0.5
        )
    asked = [question.request_id for question in fakes.answers.asked]
    assert len(asked) == 2
    await until(lambda: all(fakes.answers.stopped[each].is_set() for each in asked))
    await nobody_follows(fakes.answers)


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


AUTHORIZED = f"Authorization: Bearer {ADMIN}\r\n"
OFFERS_HTTP2 = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"
LINE = '{"page": {"id": "a"}}\n'


async def said(url: str, request: str) -> str:
    """All that comes back until the gateway closes the connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request.encode())
        async with asyncio.timeout(20):
            return (await reader.read()).decode()
    finally:
        writer.close()


async def test_a_body_is_read_whatever_upgrade_its_request_offers(url: str, fakes: FakePorts) -> None:
    """Kludex/uvicorn issue 2722."""
    for offer in (OFFERS_HTTP2, "Connection: Upgrade\r\nUpgrade: websocket\r\n"):
        bulk = f"POST /v1/sites/town/pages:bulk HTTP/1.1\r\nHost: x\r\n{AUTHORIZED}{offer}"
        follows = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answers = await said(url, f"{bulk}Content-Length: {len(LINE)}\r\n\r\n{LINE}{follows}")
        assert '"accepted":1' in answers
        assert answers.endswith('{"status":"ok"}')  # the connection goes on behind the body
    assert len(fakes.pages.changes["town:en:a"]) == 2


async def test_javas_own_client_loses_nothing(url: str, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text="first"), Done()]
    key = bearer(ADMIN)
    requests = [
        ("POST", f"{url}/v1/sites/town/pages:bulk", key, LINE),
        ("POST", f"{url}/v1/sites/town/pages:bulk", key, LINE.replace('"a"', '"b"')),
        ("PUT", f"{url}/v1/sites/town/pages/c", key, '{"id": "c"}'),
        ("POST", url + CHAT, key | STREAM, '{"question": "When?"}'),
    ]
    java = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.java_client", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        out, _ = await java.communicate(json.dumps(requests).encode())
    bulk, more, put, chat = json.loads(out)
    assert [(status, json.loads(body)["accepted"]) for status, body in (bulk, more)] == [(200, 1), (200, 1)]
    assert (put[0], set(fakes.pages.changes)) == (202, {"town:en:a", "town:en:b", "town:en:c"})
    assert (chat[0], 'data: {"text":"first"}' in chat[1]) == (200, True)


async def test_http_1_0_is_answered_without_chunks_and_closed(url: str, fakes: FakePorts) -> None:
    """RFC 9112, 6.1; Kludex/uvicorn pull request 1360."""
    fakes.answers.script = lambda _: [Token(text="first"), Done()]
    body = '{"question": "When?"}'
    request = f"POST {CHAT} HTTP/1.0\r\n{AUTHORIZED}Accept: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    head, _, stream = (await said(url, request + body)).partition("\r\n\r\n")
    assert "transfer-encoding" not in head.lower()
    assert "connection: close" in head.lower()
    assert [event.event for event in parse_sse(stream)] == ["accepted", "token", "done"]


async def test_headers_without_end_are_not_collected(url: str) -> None:
    refused = await said(url, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + "x" * 100_000)
    assert refused.startswith("HTTP/1.1 400 ")
