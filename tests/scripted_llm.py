"""A model server with OpenAI's wire format over real HTTP, which replies and fails as a test scripts.

async with ScriptedLLM(Reply(["Open ", "daily [1]."])) as llm:
    settings = Settings(llm_model="scripted", openai_base_url=llm.url, ...)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

MODEL = "scripted"


@dataclass(frozen=True)
class Reply:
    """The server's behaviour for one request."""

    pieces: Sequence[str] = ()
    delay: float = 0.0  # seconds before each piece
    finish: str | None = "stop"  # None: the stream ends without a reason
    usage: tuple[int, int] | None = (11, 7)  # prompt and completion tokens; None: the server does not count
    status: int = 200
    error: dict[str, Any] | None = None  # with status 200: sent as an event of the stream, after the pieces
    stall: bool = False  # after the pieces nothing comes any more, and the connection stays open
    cut: bool = False  # after the pieces the connection breaks
    garbage: bool = False  # after the pieces comes something that is not JSON
    refuses: Sequence[str] = ()  # parameters that this server answers with 400
    headers: Mapping[str, str] = field(default_factory=dict)  # with a status other than 200: `Retry-After`, ...
    calls: Sequence[tuple[str, str]] = ()  # after the pieces: tools to call, with their arguments as JSON
    call_pieces: Sequence[Mapping[str, Any]] = ()  # or the pieces of calls as they go over the wire
    deltas: Sequence[Mapping[str, Any]] = ()  # after the pieces: deltas as they go over the wire
    raw: bytes = b""  # instead of all of these: the whole stream as it goes over the wire
    flood: bytes = b""  # after the pieces this is sent again and again, without end


Script = Callable[[dict[str, Any]], Reply]


@dataclass
class ScriptedLLM:
    """Gives its replies in turn, and the last one for ever; or the result of a function of the request's body.

    `requests` holds the bodies received, `headers` what came with them; `hung_up` is set when a client closes a stream
    before its end.
    """

    script: Reply | Sequence[Reply] | Script
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: web.AppRunner | None = None
    _port: int = 0

    @property
    def url(self) -> str:
        """Base URL, as in `OPENAI_BASE_URL`."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        # A handler must notice at once that its client is gone.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def _reply(self, body: dict[str, Any]) -> Reply:
        if callable(self.script):
            return self.script(body)
        replies = [self.script] if isinstance(self.script, Reply) else self.script
        return replies[min(len(self.requests), len(replies)) - 1]

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        reply = self._reply(body)
        for name in reply.refuses:
            if name in body:
                error = {"message": f"Unsupported parameter: '{name}'", "type": "invalid_request_error", "param": name}
                return web.json_response({"error": error}, status=400)
        if reply.status != 200:
            error = reply.error or {"message": "scripted"}
            body = error if "detail" in error else {"error": error}  # as servers made with FastAPI say it
            return web.json_response(body, status=reply.status, headers=dict(reply.headers))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self._stream(request, response, reply, counts="stream_options" in body)
        except (asyncio.CancelledError, ConnectionError):
            self.hung_up.set()
            raise
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse, reply: Reply, *, counts: bool) -> None:
        if reply.raw:
            await response.write(reply.raw)
            return
        for piece in reply.pieces:
            await asyncio.sleep(reply.delay)
            await _send(response, _chunk([{"index": 0, "delta": {"content": piece}, "finish_reason": None}]))
        for delta in reply.deltas:
            await asyncio.sleep(reply.delay)
            await _send(response, _chunk([{"index": 0, "delta": dict(delta), "finish_reason": None}]))
        while reply.flood:
            await response.write(reply.flood)
        for index, (name, arguments) in enumerate(reply.calls):
            half = len(arguments) // 2  # real servers cut anywhere
            head = {"index": index, "id": f"call-{index}", "type": "function"}
            await _send(response, _calling(head | {"function": {"name": name, "arguments": arguments[:half]}}))
            await _send(response, _calling({"index": index, "function": {"arguments": arguments[half:]}}))
        for call in reply.call_pieces:
            await _send(response, _calling(dict(call)))
        if reply.garbage:
            await response.write(b"data: {not json\n\n")
        if reply.error is not None:
            await _send(response, {"error": reply.error})
        if reply.stall:
            await asyncio.Event().wait()
        if reply.cut:
            assert request.transport is not None
            request.transport.abort()
            return
        if reply.finish is not None:
            await _send(response, _chunk([{"index": 0, "delta": {}, "finish_reason": reply.finish}]))
        if counts and reply.usage is not None:
            prompt, completion = reply.usage
            total = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
            await _send(response, _chunk([]) | {"usage": total})
        await response.write(b"data: [DONE]\n\n")


def _chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}


def _calling(call: dict[str, Any]) -> dict[str, Any]:
    return _chunk([{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}])


async def _send(response: web.StreamResponse, data: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(data).encode() + b"\n\n")
