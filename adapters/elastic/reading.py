"""Searches, also of indexes that do not exist yet. Long results are read in batches, each after the last hit of the
previous one. Concurrent callers share one read: those that arrive during a request share the next one.

    a ─▶ request 1 ─────────────▶ a's answer
    b ──────▶ waits ┐
    c ──────────▶ waits ┴─▶ request 2 ─▶ answers of b and c

So an answer is never older than its call, and a single caller does not wait for others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import ElasticsearchDown, explained
from pipelines.runtime import tracing

KEEP_ALIVE = "2m"  # of a point in time, between two batches

Hit = dict[str, Any]


@dataclass
class PointInTime:
    """An index at one point in time. Each answer may bring a new id."""

    id: str


async def answer_of(es: AsyncElasticsearch, doing: str, **search: Any) -> dict[str, Any]:
    """The answer to a search; without hits and buckets if the index does not exist (yet).

    Args:
        doing: the action, for errors.
        search: arguments of `AsyncElasticsearch.search`.

    Raises:
        ElasticsearchDown.
    """
    with explained(doing):
        try:
            return cast("dict[str, Any]", await es.search(**search))
        except NotFoundError:
            return {"hits": {"hits": [], "total": {"value": 0}}}


async def documents(
    es: AsyncElasticsearch, doing: str, index: str, ids: Iterable[str], fields: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The documents with these ids, read in real time; missing ones are left out. Raises: ElasticsearchDown."""
    if not (wanted := list(ids)):
        return {}
    with explained(doing):
        try:
            answer = await es.mget(index=index, ids=wanted, source_includes=fields)
        except NotFoundError:
            return {}
    return {doc["_id"]: doc["_source"] for doc in answer["docs"] if doc.get("found")}


def buckets_of(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The buckets of an aggregation."""
    found: list[dict[str, Any]] = answer.get("aggregations", {}).get(name, {}).get("buckets", [])
    return found


async def batches(
    es: AsyncElasticsearch,
    doing: str,
    size: int,
    *,
    absent: Exception | None,
    most: int | None = None,
    point: PointInTime | None = None,
    **search: Any,
) -> AsyncGenerator[list[Hit], None]:
    """The hits of a search, in batches of `size`, none of them empty.

    Args:
        doing: the action, for errors.
        absent: raised if the index does not exist (any more); None: then there are no hits.
        most: the maximum of hits.
        point: read at this point in time, in the order of the shards, without sorting; replaces `index` and `sort`.
        search: arguments of `AsyncElasticsearch.search`. Its `sort` must be unique for each hit.

    Raises:
        absent. ElasticsearchDown.
    """
    read = 0
    after: list[Any] | None = None
    while most is None or read < most:
        wanted = size if most is None else min(size, most - read)
        if point is not None:
            search |= {"pit": {"id": point.id, "keep_alive": KEEP_ALIVE}, "sort": [{"_shard_doc": "asc"}]}
        with explained(doing):
            try:
                answer = await es.search(search_after=after, size=wanted, **search)
            except NotFoundError:
                if absent is None:
                    return
                raise absent from None
        if point is not None:
            point.id = answer.get("pit_id", point.id)
        hits: list[Hit] = answer.get("hits", {}).get("hits", [])
        if hits:
            yield hits
        if len(hits) < wanted:
            return
        read, after = read + len(hits), hits[-1]["sort"]


async def sources(batches: AsyncGenerator[list[Hit], None]) -> AsyncGenerator[Any, None]:
    """The documents of all hits."""
    async with aclosing(batches):
        async for hits in batches:
            for hit in hits:
                yield hit["_source"]


@asynccontextmanager
async def point_in_time(es: AsyncElasticsearch, index: str, *, absent: Exception) -> AsyncIterator[PointInTime]:
    """Open a point in time, with everything that was written until now.

    Raises:
        absent: there is no such index. ElasticsearchDown.
    """
    with explained(f"opening {index}"):
        try:
            await es.indices.refresh(index=index)
            opened = await es.open_point_in_time(index=index, keep_alive=KEEP_ALIVE)
        except NotFoundError:
            raise absent from None
    point = PointInTime(opened["id"])
    try:
        yield point
    finally:
        with suppress(ElasticsearchDown), explained(f"closing {index}"):  # it expires anyway
            await es.options(ignore_status=404).close_point_in_time(id=point.id)


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
