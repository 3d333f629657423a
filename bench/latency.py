"""What the bus costs: a question and a save through all stages, against the same functions called directly.

hops      request accepted -> first token and whole answer at the SSE client, against search + widen + quote called in
          this process
visitors  the same by several clients at once
save      PUT ...?wait=searchable, against embed + write + refresh called in this process
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import chain
from time import perf_counter
from typing import Annotated

import httpx
import typer
from rich.progress import track

from bench.report import change, library_page, percentile, question, report
from bench.servers import system
from pipelines.ingest.embed import Embedding, VectorCache
from pipelines.ingest.handlers import chunked
from pipelines.ingest.index import index_part
from pipelines.query.answer.answering import Answering
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.publish import Publication
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.search import Searcher
from pipelines.runtime.record import Lane
from schemas.base import Message
from schemas.page import PageDocument
from schemas.query import Rephrased
from schemas.topics import Topic
from wiring.clients import Clients

SITE = "latency"
QUESTION = "What does a library card cost for adults in the year {n}?"
VISITORS = 8
SHOWN = ("token", "answer")  # events: the first token, the whole answer

Way = Callable[[int], Awaitable[Sequence[float]]]  # milliseconds, one for each row


def main(rounds: Annotated[int, typer.Option(help="Questions and saves measured.")] = 60) -> None:
    """A question and a save through the bus against the same functions called directly."""
    asyncio.run(_run(rounds))


async def _run(rounds: int) -> None:
    async with system([SITE]) as (started, client):
        for i in range(20):
            answer = await client.put(
                f"/sites/{SITE}/pages/base{i}?wait=searchable&timeout=60", json=library_page(f"base{i}", i)
            )
            assert answer.status_code == 200, answer.text
        async with Clients(started.settings) as clients:
            lines = [
                *await _hops(client, clients, rounds),
                await _visitors(client, rounds),
                *await _saves(client, clients, rounds),
            ]
    columns = (
        "path",
        "through the bus p50 ms",
        "p95",
        "direct p50 ms",
        "p95",
        "added p50 ms",
        "added p95",
        "ratio p50",
        "answers a second",
    )
    report("latency", f"bus against direct calls, {rounds} rounds, alternating", columns, lines)


async def _hops(client: httpx.AsyncClient, clients: Clients, rounds: int) -> list[tuple[object, ...]]:
    models = clients.models
    settings = clients.settings
    searcher = Searcher(clients.elastic.search, models, settings)
    answering = Answering(settings, SitePrompts(), {})

    async def direct(n: int) -> Sequence[float]:
        began = perf_counter()
        sink = _Shown()
        text = QUESTION.format(n=n)
        asked = Rephrased(request=question(SITE, "en", text, seconds=60), question=text, mode="semantic")
        found = await retrieve(asked, searcher, clients.elastic.search, settings)
        to = Publication(sink, asked.request, 1)
        await answering.answer(found, to, asyncio.Event())
        return [(sink.at[kind] - began) * 1000 for kind in SHOWN]

    names = ("question: accepted -> first token", "question: accepted -> whole answer")
    return await _compare(names, rounds, lambda n: _asked(client, n), direct)


async def _asked(client: httpx.AsyncClient, n: int) -> Sequence[float]:
    body = {"question": QUESTION.format(n=n)}
    headers = {"Accept": "text/event-stream"}
    async with client.stream("POST", f"/sites/{SITE}/chat", json=body, headers=headers) as response:
        return await shown(response.aiter_lines())


async def shown(lines: AsyncIterator[str]) -> list[float]:
    """Milliseconds from `accepted` to the first event of each kind in `SHOWN`; reads the stream to its end.

    Raises: KeyError: an event is missing.
    """
    at: dict[str, float] = {}
    async for line in lines:
        if line.startswith("event: "):
            at.setdefault(line.removeprefix("event: "), perf_counter())
    return [(at[kind] - at["accepted"]) * 1000 for kind in SHOWN]


async def _visitors(client: httpx.AsyncClient, rounds: int) -> tuple[object, ...]:
    """Each asks one question after the other."""

    async def visitor(number: int) -> list[float]:
        return [(await _asked(client, 1_000 * number + n))[-1] for n in range(rounds)]

    began = perf_counter()
    waited = [*chain(*await asyncio.gather(*(visitor(1 + number) for number in range(VISITORS))))]
    a_second = len(waited) / (perf_counter() - began)
    name = f"question: whole answer, {VISITORS} visitors at once, no model"
    return (name, *(round(percentile(waited, q), 1) for q in (50, 95)), *[""] * 5, round(a_second, 1))


async def _saves(client: httpx.AsyncClient, clients: Clients, rounds: int) -> list[tuple[object, ...]]:
    pages = clients.elastic.pages
    settings = clients.settings
    embedding = Embedding(clients.models, pages, VectorCache(0))

    async def bus(n: int) -> Sequence[float]:
        began = perf_counter()
        answer = await client.put(
            f"/sites/{SITE}/pages/bus{n}?wait=searchable&timeout=60", json=library_page(f"bus{n}", 100 + n)
        )
        assert answer.status_code == 200, answer.text
        return [(perf_counter() - began) * 1000]

    async def direct(n: int) -> Sequence[float]:
        began = perf_counter()
        page = PageDocument.model_validate(library_page(f"direct{n}", 500 + n) | {"lang": "en"})
        for part in await embedding.embed(chunked(change(SITE, page, datetime.now(UTC)), settings.chunker, 0, 0)):
            await index_part(part, pages, lambda: datetime.now(UTC))
        return [(perf_counter() - began) * 1000]

    return await _compare(("save: accepted -> searchable",), rounds, bus, direct)


async def _compare(names: Sequence[str], rounds: int, bus: Way, direct: Way) -> list[tuple[object, ...]]:
    """Alternate, so that a busy moment of the machine hits both."""
    for n in range(3):
        await bus(900 + n)
        await direct(900 + n)
    pairs = [(await bus(n), await direct(n)) for n in track(range(rounds), description=names[0])]
    return [_row(name, [b[place] for b, _ in pairs], [d[place] for _, d in pairs]) for place, name in enumerate(names)]


def _row(name: str, through: Sequence[float], called: Sequence[float]) -> tuple[object, ...]:
    return (
        name,
        *(round(percentile(values, q), 1) for values in (through, called) for q in (50, 95)),
        round(percentile(through, 50) - percentile(called, 50), 1),
        round(percentile(through, 95) - percentile(called, 95), 1),
        round(percentile(through, 50) / percentile(called, 50), 2),
        "",
    )


class _Shown:
    """A sender that notes when the first event of each kind would have left."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    async def send(
        self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None, lane: Lane | None = None
    ) -> None:
        self.at.setdefault(message.model_dump()["event"]["type"], perf_counter())

    async def send_all(self, topic: Topic, key: str, messages: Sequence[Message]) -> None:
        for message in messages:
            await self.send(topic, key, message)
