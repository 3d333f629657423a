"""Requests that several share, in traces: one who asked alone has it in their trace, several are linked with it.

The tasks behind live as long as the process. Whoever was the first to need them must not get what others ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from elastic_transport import ApiResponseMeta, BaseAsyncNode, HttpHeaders
from elastic_transport import ConnectionError as TransportConnectionError
from elastic_transport._node import NodeApiResponse
from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import TracedElasticsearch
from adapters.elastic.reading import Shared
from adapters.elastic.writer import Write, Writer
from pipelines.runtime import tracing
from tests.tracing import Seen, traced


@pytest.fixture
def seen() -> Iterator[Seen]:
    with traced() as seen:
        yield seen


class Server:
    """Takes everything, when `free`, and has a span for each request."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()
        self.at_work = asyncio.Event()
        self.indices = self

    async def bulk(self, *, operations: Sequence[dict[str, Any]]) -> dict[str, Any]:
        await self.ask("bulk")
        return {"items": [{"index": {"_id": line["index"]["_id"], "status": 200}} for line in operations[::2]]}

    async def refresh(self, index: str) -> None:
        await self.ask("refresh")

    async def ask(self, name: str) -> None:
        with tracing.database(name, "", "POST"):
            self.at_work.set()
            await self.free.wait()
            self.at_work.clear()


class Town:
    """Asks for something that is shared, each time in a trace of its own."""

    def __init__(self) -> None:
        self.server = Server()
        self.writer = Writer(cast(AsyncElasticsearch, self.server))
        self._reading = Shared(lambda: self.server.ask("read"))

    async def bulk(self, who: str) -> None:
        with tracing.request(who, {}):
            await self.writer.write([Write("town", who, 1, {"text": who})])

    async def refresh(self, who: str) -> None:
        with tracing.request(who, {}):
            await self.writer.refresh("town")

    async def read(self, who: str) -> None:
        with tracing.request(who, {}):
            await self._reading.result()


def linked(seen: Seen, name: str) -> set[str]:
    """Names of what the one span of this name that has no parent is linked with."""
    names = {span.context.span_id: span.name for span in seen.spans if span.context}
    [shared] = [span for span in seen.spans if span.name == name and span.parent is None]
    return {names[link.context.span_id] for link in shared.links}


def asked_in(seen: Seen, name: str) -> list[str]:
    """Names of the spans in which those of this name began."""
    names = {span.context.span_id: span.name for span in seen.spans if span.context}
    return [names[span.parent.span_id] for span in seen.spans if span.name == name and span.parent]


@pytest.mark.parametrize("work", ["bulk", "refresh", "read"])
async def test_shared_work_is_found_by_everybody_who_asked_for_it(seen: Seen, work: str) -> None:
    town = Town()
    do = getattr(town, work)
    await do("GET")
    town.server.free.clear()
    asking = [asyncio.create_task(do("PUT"))]
    async with asyncio.timeout(10):
        await town.server.at_work.wait()
    asking += [asyncio.create_task(do(who)) for who in ("POST", "DELETE")]  # wait for the next one
    for _ in range(5):
        await asyncio.sleep(0)
    town.server.free.set()
    await asyncio.gather(*asking)
    assert asked_in(seen, work) == ["GET", "PUT"]
    assert linked(seen, work) == {"POST", "DELETE"}
    await town.writer.aclose()


class Node(BaseAsyncNode):
    """Answers with `status`, or not at all."""

    status = 200
    got: HttpHeaders

    async def perform_request(  # type: ignore[override]
        self, method: str, target: str, body: bytes | None = None, headers: HttpHeaders | None = None, **_: Any
    ) -> NodeApiResponse:
        Node.got = headers or HttpHeaders()
        if not self.status:
            raise TransportConnectionError("e1 is away; the visitor asked for a zebra")
        said = HttpHeaders({"x-elastic-product": "Elasticsearch", "content-type": "application/json"})
        body = b'{"error": {"type": "x", "reason": "failed to parse [zebra]"}}' if self.status >= 400 else b"{}"
        return NodeApiResponse(ApiResponseMeta(self.status, "1.1", said, 0.01, self.config), body)

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (200, None, None),
        (404, NotFoundError, None),
        (503, Exception, "503"),
        (0, TransportConnectionError, "ConnectionError"),
    ],
)
async def test_how_a_request_ended_is_told_without_a_word_of_it(
    monkeypatch: pytest.MonkeyPatch, seen: Seen, status: int, error: type[Exception] | None, told: str | None
) -> None:
    monkeypatch.setattr(Node, "status", status)
    es = TracedElasticsearch("http://e1:9200", node_class=Node, max_retries=0)
    asking = es.options(request_timeout=3).search(index="town", q="zebra", query={"match": {"text": "zebra"}})
    with tracing.request("GET", {}):
        if error is None:
            await asking
        else:
            with pytest.raises(error):
                await asking
    await es.close()
    span = seen.one("search town")
    assert (span.attributes or {}).get("error.type") == told
    assert span.context
    assert Node.got["traceparent"].split("-")[2] == f"{span.context.span_id:016x}"
    assert "zebra" not in "".join(each.to_json() for each in seen.spans)
