"""Around every request: its trace id, safe headers, one log line, one measurement, and an answer to the unforeseen."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.edge.metrics import REQUEST_SECONDS
from gateway.edge.problems import RETRY_AFTER, Problem
from pipelines.runtime import tracing
from pipelines.runtime.record import trace_id

if TYPE_CHECKING:
    from pipelines.runtime.spans import RequestSpan
import re
import secrets

log = structlog.get_logger(__name__)

# What a page of ours loosens, it says itself (gateway/site/pages.py).
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})  # asked every few seconds by machines
UNFORESEEN = Problem(
    HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "something went wrong here; the log knows more under this instance"
)
STOPPING = Problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "unavailable",
    "this gateway stops; ask again",
    headers={"Retry-After": str(RETRY_AFTER)},
)
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class Envelope:
    """Outermost of our middlewares. Logs paths but never query strings: they hold what visitors look for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] in QUIET or not tracing.is_on():
            await self._served(scope, receive, send, None)
            return
        with tracing.request(scope["method"], Headers(scope=scope)) as request:
            await self._served(scope, receive, send, request)

    async def _served(self, scope: Scope, receive: Receive, send: Send, request: RequestSpan | None) -> None:
        begun = time.perf_counter()
        traced = request.trace_id if request is not None else ""
        trace = traced or trace_from(Headers(scope=scope).get("traceparent"))
        token = trace_id.set(trace)
        status = 0

        async def wrapped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Trace-Id"] = trace
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
                _note(scope, status, time.perf_counter() - begun, request)
            await send(message)

        with structlog.contextvars.bound_contextvars(trace_id=trace):
            try:
                await self._app(scope, receive, wrapped)
            except ClientDisconnect:
                log.info("the client left", method=scope["method"], path=scope["path"])
            except asyncio.CancelledError:  # the server stops, and its grace is over
                if status:
                    raise
                await STOPPING.response()(scope, receive, wrapped)
            except Exception:
                if status:
                    raise  # too late for an answer: the server closes the connection
                log.exception("request failed", method=scope["method"], path=scope["path"])
                await UNFORESEEN.response()(scope, receive, wrapped)
            finally:
                trace_id.reset(token)


def _note(scope: Scope, status: int, seconds: float, request: RequestSpan | None) -> None:
    route = getattr(scope.get("route"), "path_format", "none")
    REQUEST_SECONDS.labels(scope["method"], route, status).observe(seconds, tracing.exemplar())
    if request is not None:
        # Of what we refuse, the path is a stranger's words.
        site = "" if 400 <= status < 500 else scope.get("path_params", {}).get("site", "")
        request.answered("" if route == "none" else route, status, site)
    say = log.debug if scope["path"] in QUIET else log.info
    say("request", method=scope["method"], path=scope["path"], status=status, ms=round(seconds * 1000, 1))


class Heads:
    """Answers HEAD with the head of what GET answers, and ends there: a stream is not waited for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        # A copy: the server goes by its own whether a body belongs to the answer.
        asked: Scope = {**scope, "method": "GET"}

        async def head(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope.update((name, asked[name]) for name in ("route", "path_params") if name in asked)
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(asked, receive, head)


def trace_from(traceparent: str | None) -> str:
    """The caller's trace id, or a new one when there is none or it is malformed."""
    match = _TRACEPARENT.match(traceparent or "")
    if match and match[1] != "0" * 32:
        return match[1]
    return secrets.token_hex(16)
