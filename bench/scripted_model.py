"""A model server in a process of its own, for benchmarks: it writes at one pace, however many ask.

It speaks OpenAI's wire format. An answer begins when as many are wanted at once as were announced, so that they really
run side by side; the rephrase stage, known by the few tokens it wants, gets its question at once.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

from aiohttp import web

from pipelines.query.rephrase.rewrite import OUTPUT_TOKENS

MODEL = "scripted"
REPHRASED = "What does a library card cost?"
GATHER_TIMEOUT = 90.0  # seconds until those that are there begin without the others
START_TIMEOUT = 30.0  # seconds


@contextmanager
def serving(tokens: int, interval: float) -> Iterator[tuple[str, Connection]]:
    """Its base URL, and where to send how many streams begin together.

    Args:
        tokens: of every answer.
        interval: seconds between two of them.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs, tokens, interval), daemon=True)
    process.start()
    try:
        if not ours.poll(START_TIMEOUT):
            raise TimeoutError("the scripted model did not start")
        yield ours.recv(), ours
    finally:
        process.terminate()
        process.join()


def _serve(parent: Connection, tokens: int, interval: float) -> None:
    asyncio.run(_Model(tokens, interval).run(parent))


class _Model:
    def __init__(self, tokens: int, interval: float) -> None:
        self._tokens = tokens
        self._interval = interval
        self._wanted = 1
        self._waiting = 0
        self._begin = asyncio.Event()

    async def run(self, parent: Connection) -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        asyncio.get_running_loop().add_reader(parent.fileno(), self._hear, parent)
        parent.send(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        await asyncio.Event().wait()

    def _hear(self, parent: Connection) -> None:
        self._wanted = parent.recv()
        self._waiting = 0
        self._begin = asyncio.Event()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionError):  # whoever asked has gone
            await (self._rephrase if body["max_tokens"] == OUTPUT_TOKENS else self._answer)(response)
            await _end(response)
        return response

    async def _rephrase(self, response: web.StreamResponse) -> None:
        await _send(response, _chunk({"delta": {"content": REPHRASED}}))

    async def _answer(self, response: web.StreamResponse) -> None:
        await self._together()
        began = monotonic()
        for number in range(self._tokens):
            await asyncio.sleep(max(0.0, began + number * self._interval - monotonic()))
            await _send(response, _chunk({"delta": {"content": f"Word{number}. "}}))

    async def _together(self) -> None:
        begin = self._begin
        self._waiting += 1
        if self._waiting >= self._wanted:
            begin.set()
        try:
            await asyncio.wait_for(begin.wait(), GATHER_TIMEOUT)
        except TimeoutError:
            begin.set()


def _chunk(choice: dict[str, Any]) -> dict[str, Any]:
    choices = [{"index": 0, "finish_reason": None} | choice]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}


async def _send(response: web.StreamResponse, data: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(data).encode() + b"\n\n")


async def _end(response: web.StreamResponse) -> None:
    await _send(response, _chunk({"delta": {}, "finish_reason": "stop"}))
    await response.write(b"data: [DONE]\n\n")
