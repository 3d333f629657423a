"""Where a site's MCP server is. The SDK is an extra, and takes a while to be imported: with the first request."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

from fastapi import APIRouter, Request, Response, Security
from starlette.types import Receive, Scope, Send

from gateway.agents.door import MayVisit
from gateway.edge.auth import Caller
from gateway.edge.openapi import any_json
from pipelines.runtime.errors import SettingsError
from wiring.settings import Settings

SERVER = "gateway.mcp.server"

MayCall = Annotated[Caller, Security(MayVisit("mcp", "mcp"))]

router = APIRouter(prefix="/v1/sites/{site}", tags=["agents"])


class _Served(Response):
    """What the SDK answers."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        serve = (await asyncio.to_thread(import_module, SERVER)).serve
        await serve(scope, receive, send)


def check(settings: Settings) -> None:
    """Raises: SettingsError: a site wants what is not installed."""
    for name, site in settings.sites.items():
        if "mcp" in site.agents and find_spec("mcp") is None:
            raise SettingsError(f"sites.{name}.agents: mcp needs the MCP SDK: `pip install 'pagewire[mcp]'`")


@router.post(
    "/mcp",
    response_class=Response,
    openapi_extra=any_json("A request of JSON-RPC."),
    responses={
        status: {"content": {"application/json": {}, "application/problem+json": {}}, "description": "JSON-RPC."}
        for status in (200, 400, 401, 403, 404, 406, 413, 415, 422, 429, 503)
    },
)
async def mcp(site: str, caller: MayCall, request: Request) -> Response:
    """The site's MCP server (Streamable HTTP, without sessions): MCP 2026-07-28, and 2025-11-25 and older."""
    return _Served()
