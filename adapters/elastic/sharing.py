"""Shares one read among concurrent callers: those that arrive during a request share the next one.

    a ─▶ request 1 ─────────────▶ a's answer
    b ──────▶ waits ┐
    c ──────────▶ waits ┴─▶ request 2 ─▶ answers of b and c

So an answer is never older than its call, and a single caller does not wait for others.
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
        self._callers: list[object] = []  # of the next request

    async def result(self) -> Answer:
        """The result of a request that begins after this call. Raises: errors of the request."""
        self._callers.append(tracing.here())
        if self._next is None:
            self._next = asyncio.create_task(self._run(), name="shared-request")
            # Mark the error as retrieved, in case all callers are cancelled.
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Shielded: the timeout of one caller must not cancel the request of the others.
        return await asyncio.shield(self._next)

    async def _run(self) -> Answer:
        async with self._turn:
            self._next = None  # later callers need a new request
            callers, self._callers = self._callers, []
            with tracing.shared(callers):
                return await self._request()


class DocumentLookup:
    """Reads documents by id, in real time. One per process."""

    def __init__(self, es: AsyncElasticsearch, source: str) -> None:
        """`source`: the field to read."""
        self._es = es
        self._source = source
        self._wanted: dict[str, set[str]] = {}
        self._reads: WeakValueDictionary[str, Shared[dict[str, dict[str, Any]]]] = (
            WeakValueDictionary()
        )  # running reads

    async def read(self, index: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Elasticsearch's results by id, which show whether document and index exist.

        Raises:
            ElasticsearchDown: also if one document cannot be read.
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
            if error != MISSING:  # such as a moving shard: it is unknown whether the document exists
                raise ElasticsearchDown(f"reading documents of {index}: {error}")
        return {doc["_id"]: doc for doc in answer["docs"]}
