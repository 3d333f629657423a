"""Serves a worker's metrics and health over HTTP.

GET /metrics   Prometheus          GET /healthz   200 while the process lives
GET /readyz    200, or 503 until all stages have joined their groups, and while stages are paused, with the reasons
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

from infra.checks import refused
from worker.pause import Trouble

Start = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[dict[str, Any], Start], Iterable[bytes]]
Troubles = Callable[[], Iterable[tuple[str, Trouble]]]  # stages, with their lane, that wait


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: probes come every few seconds."""


@contextmanager
def served(host: str, port: int | None, troubles: Troubles, joined: Callable[[], bool]) -> Iterator[None]:
    """Serve while the block runs; without a port do nothing.

    Args:
        joined: Whether all stages have joined their groups; called from other threads.

    Raises:
        SettingsError: the port is taken.
    """
    if port is None:
        yield
        return
    with listening(host, port, application(troubles, joined)):
        yield


@contextmanager
def listening(host: str, port: int, application: Application) -> Iterator[int]:
    """Serve an application from threads while the block runs. Yields the port; 0 picks a free one.

    Raises:
        SettingsError: the port is taken.
    """
    try:
        server = make_server(host, port, application, server_class=_Server, handler_class=_Silent)
    except OSError as err:
        raise refused(host, port, "metrics_port", err) from None
    thread = Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def application(troubles: Troubles, joined: Callable[[], bool]) -> Application:
    """The WSGI application; arguments as of `served`."""
    metrics = make_wsgi_app()

    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/healthz":
            return _json(start, "200 OK", {"alive": True})
        if path != "/readyz":
            answered: Iterable[bytes] = metrics(environ, start)
            return answered
        paused = {stage: {"code": t.code, "reason": t.message, "since": t.since.isoformat()} for stage, t in troubles()}
        ready = joined() and not paused
        body = {"ready": ready, "joined": joined(), "paused": paused}
        return _json(start, "200 OK" if ready else "503 Service Unavailable", body)

    return answer


def _json(start: Start, status: str, body: object) -> Iterable[bytes]:
    start(status, [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]
