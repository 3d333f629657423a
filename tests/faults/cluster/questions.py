"""Visitors who ask while things break: a stream that is opened ends, with an answer or in plain words why not."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aiohttp

from tests.faults.storm.traffic import HEADERS
from tests.faults.storm.world import World

WORKER = "answerer"
VISITORS = 2
PAUSE = (1.0, 6.0)  # seconds between two questions of a visitor
# Seconds until a stream must have ended: the time a question is given (three times `llm_timeout`), what a gateway
# allows for beyond it, and what this machine is late.
ENDS_WITHIN = 90.0 + 60.0


@dataclass
class Questions:
    """What became of them."""

    ended: Counter[str] = field(default_factory=Counter)  # as what
    endless: list[str] = field(default_factory=list)
    slowest: float = 0.0  # seconds

    async def open(self, world: World) -> None:
        """Start a worker that answers."""
        world.crew.add(WORKER, "worker", "query")
        world.crew.start(WORKER)
        await world.crew.ready(WORKER)

    async def ask(self, world: World, stop: asyncio.Event) -> None:
        """Visitors ask until told to stop; each question has its end then."""
        await asyncio.gather(*(self._visitor(world, world.random(f"visitor-{n}"), stop) for n in range(VISITORS)))

    async def _visitor(self, world: World, random: Random, stop: asyncio.Event) -> None:
        while not stop.is_set():
            draft = random.choice(world.drafts)
            began = world.history.now()
            how = await self._question(world, random, f"What is said about {draft.word}?")
            took = world.history.now() - began
            self.ended[how.split(":")[0]] += 1
            self.slowest = max(self.slowest, took)
            if how.startswith("endless"):
                self.endless.append(f"asked at {began:.2f}: {how} after {took:.0f} s")
                world.note(self.endless[-1])
            try:
                await asyncio.wait_for(stop.wait(), random.uniform(*PAUSE))
            except TimeoutError:
                continue

    async def _question(self, world: World, random: Random, question: str) -> str:
        """How it ended: the code of an error, a status, or `answered`."""
        url = f"{random.choice(list(world.gateways.values()))}/v1/sites/{world.site}/chat"
        headers = HEADERS | {"Accept": "text/event-stream"}
        seen: list[str] = []
        said = "answered"
        try:
            async with (
                asyncio.timeout(ENDS_WITHIN),
                world.http.post(
                    url, json={"question": question}, headers=headers, timeout=aiohttp.ClientTimeout(total=None)
                ) as answer,
            ):
                if answer.status != 200:
                    return f"refused with {answer.status}"
                async for event, data in _events(answer):
                    seen.append(event)
                    if event == "error":
                        said = f"error {data.get('code')}"
        except TimeoutError:
            return f"endless: {seen}"
        except aiohttp.ClientError as err:
            return f"cut off {type(err).__name__}"
        return said if seen[-1:] == ["done"] else f"endless: closed without its last event: {seen}"


async def _events(answer: aiohttp.ClientResponse) -> Any:
    event = ""
    async for line in answer.content:
        name, _, value = line.decode().strip().partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            yield event, json.loads(value)
