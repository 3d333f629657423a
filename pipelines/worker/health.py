"""What a worker answers over HTTP: its metrics, and whether all its stages can work.

GET /metrics   Prometheus          GET /healthz   200 while the process lives
GET /readyz    200, or 503 with the stages that wait and for what; they go on by themselves
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from pipelines.runtime.errors import SettingsError
from pipelines.worker.pause import Trouble

Start = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[dict[str, Any], Start], Iterable[bytes]]
Troubles = Callable[[], Iterable[tuple[str, Trouble]]]  # stages, with their lane, that wait


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: somebody asks every few seconds."""


@contextmanager
def served(host: str, port: int | None, troubles: Troubles) -> Iterator[None]:
    """Answer while the block runs; nothing without a port.

    Raises:
        SettingsError: the port is taken.
    """
    if port is None:
        yield
        return
    with listening(host, port, application(troubles)):
        yield


@contextmanager
def listening(host: str, port: int, application: Application) -> Iterator[int]:
    """Serve an application from threads while the block runs, which gets the port; 0 takes a free one.

    Raises:
        SettingsError: the port is taken.
    """
    try:
        server = make_server(host, port, application, server_class=_Server, handler_class=_Silent)
    except OSError as err:
        raise SettingsError(f"metrics_port: cannot listen on {host}:{port}: {err}") from err
    thread = Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def application(troubles: Troubles) -> Application:
    """The WSGI application."""
    metrics = make_wsgi_app()

    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/healthz":
            return _json(start, "200 OK", {"alive": True})
        if path != "/readyz":
            answered: Iterable[bytes] = metrics(environ, start)
            return answered
        paused = {stage: {"code": t.code, "reason": t.message, "since": t.since.isoformat()} for stage, t in troubles()}
        return _json(start, "503 Service Unavailable" if paused else "200 OK", {"ready": not paused, "paused": paused})

    return answer


def _json(start: Start, status: str, body: object) -> Iterable[bytes]:
    start(status, [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]
