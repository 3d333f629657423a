"""An OpenAI-compatible embeddings endpoint: vectors are hashes of the text, so that they cost nothing and prove it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from aiohttp import web
from numpy.typing import NDArray

MODEL = "scripted"
DIMS = 64


@dataclass(frozen=True)
class Mood:
    """How the endpoint behaves: `status` other than 200 for all requests, seconds before an answer, its dimensions."""

    status: int = 200
    delay: float = 0.0
    dims: int = DIMS


CALM = Mood()


def vector_of(text: str, dims: int = DIMS) -> NDArray[np.float32]:
    """The unit vector of a text, shape (dims,), dims a multiple of 8, at most 512.

    All its components are of one size, so that the index's int8 rounding loses nothing of it; two texts' cosine is
    0 +- 1 / sqrt(dims).
    """
    bits = np.unpackbits(np.frombuffer(blake2b(text.encode(), digest_size=dims // 8).digest(), dtype=np.uint8))
    return ((2.0 * bits - 1.0) / np.sqrt(dims)).astype(np.float32)


class ScriptedEmbedder:
    """`async with ScriptedEmbedder() as embedder`; set `mood` at any time, or take it `down` and `up`."""

    def __init__(self) -> None:
        self.mood = CALM
        self.texts = 0  # embedded so far
        self.at_work = 0  # requests
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Base URL, as in `OPENAI_BASE_URL`."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> ScriptedEmbedder:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def up(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/embeddings", self._embeddings)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def down(self) -> None:
        """Connections are refused from now on."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _embeddings(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        mood = self.mood
        self.at_work += 1
        try:
            await asyncio.sleep(mood.delay)
        finally:
            self.at_work -= 1
        if mood.status != 200:
            return web.json_response({"error": {"message": "scripted"}}, status=mood.status)
        texts = body["input"]
        self.texts += len(texts)
        data = [
            {"object": "embedding", "index": i, "embedding": vector_of(text, mood.dims).tolist()}
            for i, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return web.json_response({"object": "list", "data": data, "model": MODEL, "usage": usage})
