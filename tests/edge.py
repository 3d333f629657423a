"""Building the gateway over its fakes, for the unit, integration and browser tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from wiring.settings import KeySettings, Settings, SiteSettings

ADMIN = "admin-key-of-the-test"
INGEST_TOWN = "ingest-key-of-town"
CHAT_ANYWHERE = "chat-key-of-a-program"
EVERYTHING_TOWN = "key-for-everything-of-town"
STAFF_TOWN = "key-of-the-website-of-town"
EDIT_TOWN = "key-of-an-editor-of-town"
VIEW_TOWN = "key-of-a-reader-of-town"
VIEW_ANYWHERE = "key-of-a-reader-of-all-sites"
PAGE_ORIGIN = "https://www.town.example"


async def until(condition: Callable[[], object], timeout: float = 20) -> None:
    """Wait for an effect that announces itself nowhere."""
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110  # what is waited for sets no event
            await asyncio.sleep(0.01)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def edge_settings(home: Path, **more: Any) -> Settings:
    """Two sites, `town` (en, de) and `other` (fr); an admin key and smaller ones."""
    values: dict[str, Any] = {
        "home": home,
        "admin_key": ADMIN,
        "sites": {
            "town": SiteSettings(
                languages=("en", "de"), title="Town & Sons", origins=(PAGE_ORIGIN,), agents=("pages", "mcp", "nlweb")
            ),
            "other": SiteSettings(languages=("fr",)),
        },
        "keys": [
            _key("cms", INGEST_TOWN, "ingest", site="town"),
            _key("bot", CHAT_ANYWHERE, "chat"),
            _key("webmaster", EVERYTHING_TOWN, "ingest", "chat", "admin", site="town"),
            _key("editor", EDIT_TOWN, "edit", site="town"),
            _key("reader", VIEW_TOWN, "view", site="town"),
            _key("auditor", VIEW_ANYWHERE, "view"),
            _key("intranet", STAFF_TOWN, "chat", site="town", groups=("staff", "board")),
        ],
        "content_limit": 10_000,
        "hosts": ("gateway.test",),
    }
    return Settings.model_validate(values | more)


def _key(name: str, key: str, *scopes: str, **more: Any) -> KeySettings:
    return KeySettings.model_validate(
        {"name": name, "sha256": sha256(key.encode()).hexdigest(), "scopes": scopes} | more
    )


def assert_problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The response is an RFC 9457 document with this status and code; returns it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["code"] == code, body
    assert body["status"] == status
    assert body["type"] == f"urn:pagewire:problem:{code}"
    assert body["instance"] == response.headers["x-trace-id"]
    assert body["detail"]
    return body


@dataclass(frozen=True)
class ServerSentEvent:
    """As a browser would hand it over."""

    id: str
    event: str
    data: dict[str, Any]


def parse_sse(text: str) -> list[ServerSentEvent]:
    """All complete events of a stream; comments are dropped as browsers do."""
    events = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            events.append(ServerSentEvent(fields["id"], fields["event"], json.loads(fields["data"])))
    return events


class Wire:
    """One request on the ASGI level: sees each piece of the response as it is sent, and can hang up.

    httpx's ASGITransport hands over a response only when it is complete, which is no test of streaming.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._gone = asyncio.Event()
        self._request: list[dict[str, Any]] = []
        self.over = asyncio.Event()  # the app has returned
        self.blocked: asyncio.Event | None = None  # while set to an unset event, sends do not get through

    @asynccontextmanager
    async def call(
        self, app: FastAPI, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> AsyncIterator[Wire]:
        self._request = [{"type": "http.request", "body": body, "more_body": False}]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("gateway.test", 80),
        }
        task = asyncio.create_task(app(scope, self._receive, self._send))
        task.add_done_callback(lambda _: self.over.set())
        try:
            yield self
        finally:
            self._gone.set()
            await task

    def hang_up(self) -> None:
        self._gone.set()

    async def piece(self) -> bytes | None:
        """The next piece of the body; None at its end."""
        async with asyncio.timeout(10):
            return await self._pieces.get()

    async def events(self, count: int) -> list[ServerSentEvent]:
        """The next `count` events."""
        found: list[ServerSentEvent] = []
        while len(found) < count:
            piece = await self.piece()
            assert piece is not None, f"the stream ended after {found}"
            found += parse_sse(piece.decode())
        return found

    async def _receive(self) -> dict[str, Any]:
        if self._request:
            return self._request.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            return
        if self.blocked is not None:
            await self.blocked.wait()
        if message["body"]:
            self._pieces.put_nowait(message["body"])
        if not message.get("more_body"):
            self._pieces.put_nowait(None)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are pytest's


@asynccontextmanager
async def served(app: Any, config: uvicorn.Config | None = None) -> AsyncIterator[str]:
    """The app behind a real uvicorn on a free loopback port, in this loop; its URL.

    Args:
        config: in place of the plain one; its port and its grace are changed.
    """
    config = config or uvicorn.Config(app, access_log=False, log_level="warning")
    config.port, config.timeout_graceful_shutdown = 0, 1
    server = _Server(config)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task
