"""Reads that many want at once, asked for once: whoever comes while a request is under way shares the next one.

    a ─▶ request 1 ─────────────▶ a's answer
    b ──────▶ waits ┐
    c ──────────▶ waits ┴─▶ request 2 ─▶ answers of b and c

So an answer is never older than the question, and a lone caller waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from elasticsearch import AsyncElasticsearch

from adapters.elastic.client import ElasticsearchDown, explained
from pipelines.runtime import tracing

MISSING = "index_not_found_exception"

Answer = TypeVar("Answer")


class Shared(Generic[Answer]):
    """One kind of request."""

    def __init__(self, request: Callable[[], Coroutine[Any, Any, Answer]]) -> None:
        self._request = request
        self._next: asyncio.Task[Answer] | None = None
        self._turn = asyncio.Lock()
        self._asked: list[object] = []  # who waits for the next one

    async def result(self) -> Answer:
        """Of a request that begins after this call. Raises: what the request does."""
        self._asked.append(tracing.here())
        if self._next is None:
            self._next = asyncio.create_task(self._run(), name="shared-request")
            # Where all callers have gone, nobody else looks at what went wrong.
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Shielded: one caller's time limit must not end what others wait for.
        return await asyncio.shield(self._next)

    async def _run(self) -> Answer:
        async with self._turn:
            self._next = None  # from here on a caller needs another one
            asked, self._asked = self._asked, []
            with tracing.shared(asked):
                return await self._request()


class Documents:
    """Reads documents by id, in real time. One per process."""

    def __init__(self, es: AsyncElasticsearch, source: str) -> None:
        """`source`: the field that is read."""
        self._es = es
        self._source = source
        self._wanted: dict[str, set[str]] = {}
        self._reads: WeakValueDictionary[str, Shared[dict[str, dict[str, Any]]]] = WeakValueDictionary()  # under way

    async def read(self, index: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """As Elasticsearch returns them, by id; those that are not there, or whose index is not, say so themselves.

        Raises:
            ElasticsearchDown: also where one of them cannot be read.
        """
        own = list(ids)
        if not own:
            return {}
        self._wanted.setdefault(index, set()).update(own)
        read = self._reads.setdefault(index, Shared(partial(self._read, index)))
        found = await read.result()
        return {id: found[id] for id in own}

    async def _read(self, index: str) -> dict[str, dict[str, Any]]:
        ids = self._wanted.pop(index)
        with explained(f"reading {len(ids)} documents of {index}"):
            answer = await self._es.mget(index=index, ids=sorted(ids), source_includes=[self._source])
        for doc in answer["docs"]:
            error = doc.get("error", {}).get("type", MISSING)
            if error != MISSING:  # such as a shard that moves: nobody knows whether the document is there
                raise ElasticsearchDown(f"reading documents of {index}: {error}")
        return {doc["_id"]: doc for doc in answer["docs"]}
