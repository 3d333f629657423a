"""A gateway's metrics on a port of their own, which no visitor reaches: `metrics_port`.

GET /metrics   Prometheus          GET /healthz   200 while the process lives
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import make_wsgi_app

from gateway.edge.gauges import TIMEOUT, StatusGauges
from worker.health import Application, Start, listening


@contextmanager
def metrics_served(host: str, port: int | None, gauges: StatusGauges) -> Iterator[int | None]:
    """Answer while the block runs, which gets the port; nothing without one. To be entered on the event loop.

    Raises:
        SettingsError: the port is taken.
    """
    if port is None:
        yield None
        return
    with listening(host, port, application(gauges, asyncio.get_running_loop())) as served:
        yield served


def application(gauges: StatusGauges, loop: asyncio.AbstractEventLoop) -> Application:
    """The WSGI application; `loop`: the gateway's, on which its servers are asked."""
    metrics = make_wsgi_app()

    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            asyncio.run_coroutine_threadsafe(gauges.refresh(), loop).result(2 * TIMEOUT)
            answered: Iterable[bytes] = metrics(environ, start)
            return answered
        found = path == "/healthz"
        start("200 OK" if found else "404 Not Found", [("Content-Type", "application/json")])
        return [json.dumps({"alive": True} if found else {"code": "not-found"}).encode()]

    return answer
