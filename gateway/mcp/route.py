"""Where the MCP servers are, and refusals before a request reaches them, in JSON-RPC's shape.

The SDK is an extra, and takes a while to be imported: with the first request.
"""

from __future__ import annotations

import asyncio
import json
import re
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response, Security
from starlette.types import Receive, Scope, Send

from gateway.agents.door import MayVisit, check_origin
from gateway.edge.auth import Caller
from gateway.edge.edge import MayAdmin, TheEdge
from gateway.edge.openapi import any_json
from gateway.edge.problems import Problem
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.record import trace_id
from wiring.settings import Settings

SERVER, ADMIN_SERVER, PROTOCOL = "gateway.mcp.server", "gateway.mcp.admin_server", "gateway.mcp.protocol"
INSTALL = "the MCP SDK is not installed: `pip install 'pagewire[mcp]'`"

MayCall = Annotated[Caller, Security(MayVisit("mcp", "mcp"))]

router = APIRouter(tags=["agents"])
ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"content": {"application/json": {}, "application/problem+json": {}}, "description": "JSON-RPC."}
    for status in (200, 400, 401, 403, 404, 406, 413, 415, 422, 429, 501, 503)
}
BODY = any_json("A request of JSON-RPC.")
INVALID_REQUEST, INTERNAL_ERROR = -32600, -32603  # JSON-RPC 2.0, 5.1
_MCP = re.compile(r"/v1/(?:sites/[^/]+|admin)/mcp")


class _Served(Response):
    """What the SDK answers for the server of a module."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self._module = module

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        made = (await asyncio.to_thread(import_module, self._module)).SERVER
        await import_module(PROTOCOL).serve(made, scope, receive, send)


def check(settings: Settings) -> None:
    """Raises: SettingsError: a site wants what is not installed."""
    for name, site in settings.sites.items():
        if "mcp" in site.agents and find_spec("mcp") is None:
            raise SettingsError(f"sites.{name}.agents: mcp needs the MCP SDK: `pip install 'pagewire[mcp]'`")


@router.post("/v1/sites/{site}/mcp", response_class=Response, openapi_extra=BODY, responses=ANSWERS)
async def mcp(site: str, caller: MayCall, request: Request) -> Response:
    """The site's MCP server (Streamable HTTP, without sessions): MCP 2026-07-28, and 2025-11-25 and older."""
    return _Served(SERVER)


@router.post("/v1/admin/mcp", response_class=Response, openapi_extra=BODY, responses=ANSWERS)
async def admin_mcp(caller: MayAdmin, edge: TheEdge, request: Request) -> Response:
    """The operators' MCP server: status, receipts, gaps, questions, dead letters, reconcile, redrive.

    What changes something is asked for twice. It speaks as a site's server does.
    """
    check_origin(edge, request, ())
    if find_spec("mcp") is None:
        raise Problem(501, "mcp-missing", INSTALL)
    return _Served(ADMIN_SERVER)


def is_mcp(path: str) -> bool:
    """Whether who asks for the path expects JSON-RPC."""
    return _MCP.fullmatch(path) is not None


def respond(problem: Problem) -> Response:
    """The problem with its own status: whose request it was is not known yet, so its id is null."""
    code = INTERNAL_ERROR if problem.status >= 500 else INVALID_REQUEST
    data = {"code": problem.code, "instance": trace_id.get()}
    error = {"code": code, "message": problem.detail, "data": data}
    return Response(
        json.dumps({"jsonrpc": "2.0", "id": None, "error": error}),
        status_code=problem.status,
        headers=problem.headers,
        media_type="application/json",
    )
