"""A question to a gateway over HTTP: the gateway's own routes over fakes, and streams that end in other ways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from adapters.http_gateway import Interrupted, NotAccepted, stream_answer
from gateway.app import create_app
from schemas.answer import Answered, Event, Failed
from tests.edge import ADMIN, CHAT_ANYWHERE, edge_settings
from tests.fakes.ports import FakeIntake, FakePorts

URL = "http://gateway.test"
ACCEPTED = (
    b'id: 0\nevent: accepted\ndata: {"request_id": "request-of-the-test", "conversation_id": "conversation-of-it"}\n\n'
)
TOKEN = b'id: 1\nevent: token\ndata: {"text": "Pool"}\n\n'
ANSWER = (
    b': still here\n\nid: 2\nevent: answer\ndata: {"text": "Pool", "citations": [], "sources": [], "extractive": true}'
    b"\n\nid: 3\nevent: done\ndata: {}\n\n"
)
DONE = b"id: 3\nevent: done"


class Gateway(httpx.AsyncBaseTransport):
    """Streams these pieces, and then ends or breaks; notes what else it is asked."""

    def __init__(self, *pieces: bytes, breaks: bool = False) -> None:
        self._pieces = pieces
        self._breaks = breaks
        self.others: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "POST":
            self.others.append(f"{request.method} {request.url.path}")
            return httpx.Response(202)
        return httpx.Response(200, content=self._stream())

    async def _stream(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._breaks:
            raise httpx.ReadError("gone")


async def told(transport: httpx.AsyncBaseTransport, key: str = ADMIN, site: str = "town") -> list[Event]:
    return [event async for event in stream_answer(URL, site, SecretStr(key), "Where?", "en", transport=transport)]


async def test_the_gateway_takes_it_as_a_question_that_nobody_keeps(tmp_path: Path) -> None:
    fakes = FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}))
    events = await told(httpx.ASGITransport(create_app(edge_settings(tmp_path), fakes.ports)), CHAT_ANYWHERE)
    assert [event.type for event in events[:1]] == ["accepted"]
    assert [event.type for event in events[-2:]] == ["answer", "done"]
    assert fakes.answers.asked[0].question == "Where?"
    assert fakes.answers.asked[0].logged_as is None
    assert fakes.answers.asked[0].lang == "en"


@pytest.mark.parametrize(("key", "site"), [("nobody's", "town"), (ADMIN, "village")])
async def test_who_is_refused_has_not_asked(tmp_path: Path, key: str, site: str) -> None:
    fakes = FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}))
    with pytest.raises(NotAccepted):
        await told(httpx.ASGITransport(create_app(edge_settings(tmp_path), fakes.ports)), key, site)
    assert fakes.answers.asked == []


async def test_a_gateway_that_is_away_was_not_asked() -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(NotAccepted):
        await told(httpx.MockTransport(away))


async def test_events_come_in_order_and_those_of_a_later_version_are_passed_over() -> None:
    later = b'event: weather\ndata: {"sunny": true}\n\n'
    gateway = Gateway(ACCEPTED, later, TOKEN, ANSWER)
    assert [event.type for event in await told(gateway)] == ["accepted", "token", "answer", "done"]
    assert gateway.others == []


async def test_an_answer_that_breaks_off_is_told_and_stopped() -> None:
    gateway = Gateway(ACCEPTED, TOKEN, breaks=True)
    with pytest.raises(Interrupted):
        await told(gateway)
    assert gateway.others == ["DELETE /v1/sites/town/answers/request-of-the-test"]


async def test_a_connection_that_breaks_behind_the_whole_answer_ends_it() -> None:
    gateway = Gateway(ACCEPTED, TOKEN, ANSWER.partition(DONE)[0], breaks=True)
    assert [event.type for event in await told(gateway)] == ["accepted", "token", "answer"]
    assert gateway.others == []


@pytest.mark.parametrize(
    ("enough", "stopped"),
    [
        (lambda event: event.type == "token", ["DELETE /v1/sites/town/answers/request-of-the-test"]),
        (lambda event: isinstance(event, Answered | Failed), []),
    ],
)
async def test_who_leaves_early_stops_the_answer(enough: Callable[[Event], bool], stopped: list[str]) -> None:
    gateway = Gateway(ACCEPTED, TOKEN, ANSWER)
    async with aclosing(stream_answer(URL, "town", SecretStr(ADMIN), "Where?", "en", transport=gateway)) as events:
        async for event in events:
            if enough(event):
                break
    assert gateway.others == stopped
