"""The other end of the webhook, scripted: takes deliveries as Pagewire does, or answers what a test wants."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from pydantic import SecretStr

from connectors.cms.push import BadSignature, Delivery
from schemas.http import BulkLine
from schemas.page import PageDocument
from tests.acceptance.system import eventually
from tests.wordpress.peer import WordPress

SECRET = "whsec_" + base64.b64encode(b"the tests' secret, 32 bytes long").decode()
Answer = tuple[int, dict[str, Any], dict[str, str]]


@dataclass
class Receiver:
    """What came, and what the pages are after it: the highest revision wins."""

    url: str = ""
    deliveries: list[list[BulkLine]] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    latest: dict[tuple[str, str], BulkLine] = field(default_factory=dict)
    answers: Callable[[list[BulkLine]], Answer | None] = lambda lines: None
    skew: int = 0  # seconds that its clock is ahead
    lock: Lock = field(default_factory=Lock)

    @property
    def pages(self) -> dict[str, PageDocument]:
        """Pages that are there, by id."""
        with self.lock:
            return {line.page.id: line.page for line in self.latest.values() if line.op == "upsert"}

    def take(self, headers: Any, body: bytes) -> Answer:
        names = {name.lower(): value for name, value in headers.items()}
        try:
            Delivery.of(names, time.time() + self.skew).verify(SecretStr(SECRET), body)
        except BadSignature as err:
            return 401, {"code": err.code, "detail": str(err)}, {}
        lines = [BulkLine.model_validate_json(line) for line in body.splitlines() if line.strip()]
        with self.lock:
            said = self.answers(lines)
            if said is not None:
                return said
            self.deliveries.append(lines)
            self.lanes.append(names.get("pagewire-lane", "save"))
            superseded = 0
            for line in lines:
                key = (line.page.id, str(line.page.lang))
                known = self.latest.get(key)
                assert line.page.revision is not None
                if known and (known.page.revision or 0) > line.page.revision:
                    superseded += 1
                else:
                    self.latest[key] = line
        return 200, result(accepted=len(lines) - superseded, superseded=superseded), {}


def sent(wordpress: WordPress) -> None:
    """Wait until nothing is queued any more."""
    eventually(lambda: not wordpress.queue(), timeout=60)


def result(
    accepted: int = 0, rejected: int = 0, superseded: int = 0, errors: list[Any] | None = None
) -> dict[str, Any]:
    return {"accepted": accepted, "rejected": rejected, "superseded": superseded, "errors": errors or []}


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            known = self.path in ("/v1/sites/town/webhooks/wordpress", "/v1/sites/town/webhooks/wagtail")
            unknown = (404, {"code": "unknown-connector"}, dict[str, str]())
            status, said, headers = receiver.take(self.headers, body) if known else unknown
            data = json.dumps(said).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(int(time.time()) + receiver.skew)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
