"""Between Pagewire and Elasticsearch: answers, loses, delays and rewrites as a fault scripts it.

  Pagewire ─▶ proxy ─▶ Elasticsearch
     503, 429 ◀─┤  refused before it was forwarded
items 429, 503 ◀─┤  a bulk that was applied in part, or in full whatever it says
   cut, no word ◀─┘  applied, and the answer lost
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from aiohttp import web

FORWARD_TIMEOUT = 60.0  # seconds
MAX_BODY = 256 * 1024 * 1024  # bytes
KEPT = ("Content-Type", "X-Elastic-Product")
TEMPORARY = (429, 503)


@dataclass(frozen=True)
class Mood:
    """What the proxy does to requests. Shares are probabilities; delays are seconds, at most, before forwarding."""

    refuse: float = 0.0  # whole requests: 429 or 503, not forwarded
    refuse_items: float = 0.0  # items of bulks: 429 or 503, not forwarded
    disown_items: float = 0.0  # items of bulks: applied, and yet said to be 429 or 503
    lose_answers: float = 0.0  # forwarded and applied, then the connection is cut
    delay: float = 0.0


CALM = Mood()


class ElasticProxy:
    """`async with ElasticProxy(seed, url, ...) as proxy`; set `mood` at any time. Asks the first node that listens."""

    def __init__(self, seed: str, *targets: str) -> None:
        self.mood = CALM
        self.done: Counter[str] = Counter()  # how often it did what
        self._targets = targets
        self._random = random.Random(seed)
        self._runner: web.AppRunner | None = None
        self._client: aiohttp.ClientSession | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> ElasticProxy:
        self._client = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=FORWARD_TIMEOUT), connector=aiohttp.TCPConnector(limit=0)
        )
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # No cancellation: what a killed client had sent goes on, as it would on a wire.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        assert self._client is not None
        await self._runner.cleanup()
        await self._client.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        mood = self.mood
        body = await request.read()
        if self._strikes(mood.refuse):
            self.done["refused"] += 1
            return _refusal(self._random.choice(TEMPORARY))
        if mood.delay:
            self.done["delayed"] += 1
            await asyncio.sleep(self._random.uniform(0, mood.delay))
        try:
            if request.path.endswith("/_bulk") and (mood.refuse_items or mood.disown_items):
                response = await self._bulk(request, body, mood)
            else:
                response = await self._forward(request, body)
        except (aiohttp.ClientError, TimeoutError):
            self._cut(request)  # as Elasticsearch itself would look: gone
            return web.Response(status=502)
        if self._strikes(mood.lose_answers):
            self.done["answer lost"] += 1
            self._cut(request)
        return response

    def _strikes(self, share: float) -> bool:
        return share > 0 and self._random.random() < share

    def _cut(self, request: web.Request) -> None:
        if request.transport is not None:
            request.transport.abort()

    async def _forward(self, request: web.Request, body: bytes) -> web.Response:
        *others, last = self._targets
        for target in others:
            with suppress(aiohttp.ClientConnectorError):
                return await self._ask(target, request, body)
        return await self._ask(last, request, body)

    async def _ask(self, target: str, request: web.Request, body: bytes) -> web.Response:
        assert self._client is not None
        headers = {name: request.headers[name] for name in ("Content-Type", "Accept") if name in request.headers}
        async with self._client.request(
            request.method, target + request.raw_path, data=body, headers=headers
        ) as answer:
            kept = {name: answer.headers[name] for name in KEPT if name in answer.headers}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)

    async def _bulk(self, request: web.Request, body: bytes, mood: Mood) -> web.Response:
        """Forward the items that are not refused, then put the answer together in the order of the request."""
        items = _items(body)
        refused = {i for i in range(len(items)) if self._strikes(mood.refuse_items)}
        forwarded = b"".join(lines for i, (_, lines) in enumerate(items) if i not in refused)
        made: list[dict[str, Any]] = []
        headers = {"Content-Type": "application/json", "X-Elastic-Product": "Elasticsearch"}
        if forwarded:
            response = await self._forward(request, forwarded)
            if response.status != 200:
                return response
            assert isinstance(response.body, bytes)
            made = orjson.loads(response.body)["items"]
            headers["Content-Type"] = response.headers.get("Content-Type", headers["Content-Type"])
        real = iter(made)
        answers = []
        for i, (action, _) in enumerate(items):
            if i in refused:
                self.done["items refused"] += 1
                answers.append(self._temporary(action))
                continue
            answer = next(real)
            if self._strikes(mood.disown_items):
                self.done["items disowned"] += 1
                answer = self._temporary(action)
            answers.append(answer)
        body = orjson.dumps({"took": 1, "errors": True, "items": answers})
        return web.Response(body=body, headers=headers)

    def _temporary(self, action: dict[str, dict[str, Any]]) -> dict[str, Any]:
        [(verb, target)] = action.items()
        status = self._random.choice(TEMPORARY)
        error = {"type": "es_rejected_execution_exception", "reason": "scripted by the storm"}
        return {verb: {"_index": target["_index"], "_id": target["_id"], "status": status, "error": error}}


def _items(body: bytes) -> list[tuple[dict[str, dict[str, Any]], bytes]]:
    """(action, its lines) of each item of a bulk body."""
    lines = iter(body.splitlines(keepends=True))
    found = []
    for line in lines:
        if line.strip():
            action: dict[str, dict[str, Any]] = orjson.loads(line)
            found.append((action, line if "delete" in action else line + next(lines)))
    return found


def _refusal(status: int) -> web.Response:
    error = {"type": "es_rejected_execution_exception", "reason": "scripted by the storm"}
    return web.json_response(
        {"error": error | {"root_cause": [error]}, "status": status},
        status=status,
        headers={"X-Elastic-Product": "Elasticsearch"},
    )
