"""An Elasticsearch as a provider runs it, seen from outside: TLS, an API key, and no more rights than its role gives.

The security of Elasticsearch is no part of the local engine's packages, so this stands before the real server and
decides by the request's path, as Elasticsearch's reference of privileges has it. A path that is not in `NEEDS` is
refused, so a new call needs a new entry there.

    client ── TLS, ApiKey ──▶ GuardedElastic ── HTTP ──▶ Elasticsearch
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web

from infra.running import HOST

KEY = "hush-elastic"
CLUSTER = {
    re.compile(r"GET /_cluster/health(?:/[^/]+)?"): "monitor",
    re.compile(r"GET /_nodes/.*"): "monitor",
    re.compile(r"PUT /_index_template/.*"): "manage_index_templates",
}
# The index stands in the path, or in the body; group 1 is the part of the path that names it.
INDICES = {
    re.compile(r"(?:GET|POST) /([^/_][^/]*)/(?:_search|_count|_mget|_msearch|_pit)"): "read",
    re.compile(r"(?:GET|HEAD) /([^/_][^/]*)/_doc/.*"): "read",
    re.compile(r"POST /(?:_search|_mget|_msearch|_pit)()"): "read",
    re.compile(r"DELETE /_pit()"): "read",
    re.compile(r"(?:PUT|POST) /([^/_][^/]*)/(?:_doc|_create|_update|_bulk|_(?:delete|update)_by_query).*"): "write",
    re.compile(r"DELETE /([^/_][^/]*)/_doc/.*"): "write",
    re.compile(r"(?:PUT|POST) /_bulk()"): "write",
    re.compile(r"(?:GET|PUT|POST) /([^/_][^/]*)/(?:_mapping|_settings|_refresh|_stats|_alias)(?:/.*)?"): "manage",
    re.compile(r"DELETE /([^/_][^/]*)/_alias/.*"): "manage",
    re.compile(r"GET /_alias/([^/]*)"): "manage",
    re.compile(r"(?:PUT|DELETE|HEAD|GET) /([^/_][^/]*)"): "manage",
    re.compile(r"POST /_aliases()"): "manage",
}
INDEX_FIELDS = {"_index", "index"}


class GuardedElastic:
    """The guard; what it refused stands in `refused`."""

    def __init__(self, behind: str, role: Mapping[str, Any], certificate: Path, host: str) -> None:
        self._behind = behind
        self._role = role
        self._certificate = certificate
        self._host = host
        self.key = KEY
        self.refused: list[str] = []
        self.url = ""

    async def serve(self, ready: threading.Event, over: asyncio.Event) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._certificate)
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._pass)
        runner = web.AppRunner(app)
        async with ClientSession(auto_decompress=False) as self._session:
            await runner.setup()
            site = web.TCPSite(runner, self._host, 0, ssl_context=context)
            await site.start()
            self.url = "https://{}:{}".format(*runner.addresses[0][:2])
            ready.set()
            await over.wait()
            await runner.cleanup()

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers.get("Authorization") != f"ApiKey {self.key}":
            return _no(401, "unable to authenticate with provided credentials")
        asked = f"{request.method} {request.path}"
        if (why := self._forbidden(asked, body)) is not None:
            self.refused.append(why)
            return _no(403, f"action is unauthorized for API key: {why}")
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in ("host", "authorization")
        }
        async with self._session.request(
            request.method, self._behind + request.path_qs, data=body, headers=headers
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() != "transfer-encoding"}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)

    def _forbidden(self, asked: str, body: bytes) -> str | None:
        """What is not allowed, None: it is."""
        for path, privilege in CLUSTER.items():
            if path.fullmatch(asked):
                return None if privilege in self._role["cluster"] else f"{asked} needs cluster privilege {privilege}"
        for path, privilege in INDICES.items():
            if found := path.fullmatch(asked):
                names = {*found[1].split(","), *_named(body)} - {""}
                for name in names:
                    if not any(
                        privilege in given["privileges"] and any(fnmatchcase(name, one) for one in given["names"])
                        for given in self._role["indices"]
                    ):
                        return f"{asked} needs {privilege} on {name}"
                return None
        return f"{asked}: what privilege it needs is not known here"


def _named(body: bytes) -> Iterator[str]:
    """Indexes that a body names: in lines of bulks and searches, in an _mget, in changes of aliases."""
    for line in body.splitlines() if body.startswith(b"{") else ():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            actions = [found, *found.get("docs", ()), *(a for one in found.get("actions", ()) for a in one.values())]
            actions += [value for key, value in found.items() if key in ("index", "create", "update", "delete")]
            for action in actions:
                if isinstance(action, dict):
                    yield from (v for k, v in action.items() if k in INDEX_FIELDS and isinstance(v, str))


def _no(status: int, reason: str) -> web.Response:
    error = {"type": "security_exception", "reason": reason}
    said = {"error": {"root_cause": [error], **error}, "status": status}
    # Without this header the client takes it for no Elasticsearch.
    return web.json_response(said, status=status, headers={"X-Elastic-Product": "Elasticsearch"})


@contextmanager
def guarded_elastic(
    behind: str, role: Mapping[str, Any], certificate: Path, host: str = HOST
) -> Iterator[GuardedElastic]:
    """It serves at `host`, on a loop and in a thread of its own, as long as the context lasts."""
    guard = GuardedElastic(behind, role, certificate, host)
    loop, over, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()

    def run() -> None:
        loop.run_until_complete(guard.serve(ready, over))
        loop.close()

    thread = threading.Thread(target=run, name="guarded Elasticsearch")
    thread.start()
    try:
        assert ready.wait(30)
        yield guard
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
