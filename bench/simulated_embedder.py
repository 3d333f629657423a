"""Models with a set delay, in a process of their own; they speak OpenAI's format."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from aiohttp import web

from adapters.embedders.fake import FakeEmbedder

MODEL = "simulated"
DIMS = 64
START_TIMEOUT = 240.0  # seconds


@contextmanager
def models(seconds: float) -> Iterator[str]:
    """Where they are: `URL/NUMBER/v1`, one for each number; each makes one call at a time, `seconds` for each text."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs, seconds), daemon=True)
    process.start()
    try:
        if not ours.poll(START_TIMEOUT):
            raise TimeoutError("the simulated models did not start")
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(parent: Connection, seconds: float) -> None:
    asyncio.run(_served(parent, seconds))


async def _served(parent: Connection, seconds: float) -> None:
    busy: dict[str, asyncio.Lock] = {}
    made = FakeEmbedder(DIMS)

    async def embed(request: web.Request) -> web.Response:
        asked = await request.json()
        texts = asked["input"]
        async with busy.setdefault(request.match_info["number"], asyncio.Lock()):
            await asyncio.sleep(seconds * len(texts))
        vectors = (await made.passages(texts)).round(4).tolist()
        made.embedded.clear()
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return web.json_response({"object": "list", "data": data, "model": asked["model"], "usage": usage})

    app = web.Application(client_max_size=64 * 1024**2)
    app.router.add_post("/{number}/v1/embeddings", embed)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(host, port)] = [address[:2] for address in runner.addresses]
    parent.send(f"http://{host}:{port}")
    await asyncio.Event().wait()
