"""A collector on loopback: takes OTLP over HTTP from any process, and keeps spans."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """What one process told of a piece of work."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    links: tuple[str, ...]  # traces


@dataclass
class Collector:
    """`spans`: of all processes; `bodies`: as they came."""

    url: str
    spans: list[Span] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        for told in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = next(each.value.string_value for each in told.resource.attributes if each.key == "service.name")
            for scope in told.scope_spans:
                for span in scope.spans:
                    links = tuple(link.trace_id.hex() for link in span.links)
                    ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                    self.spans.append(Span(service, span.name, *ids, links))

    def of(self, trace: str) -> list[Span]:
        return [span for span in self.spans if span.trace == trace]


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, name="collector", daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
