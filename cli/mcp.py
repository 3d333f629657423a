"""`pagewire mcp`: a site's MCP server for assistants that start a command and speak over its standard streams.

assistant ◀─ stdio ─▶ pagewire mcp ◀─ HTTP ─▶ gateway
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.wired import load
from infra.running import running_gateway
from pipelines.runtime.errors import SettingsError, WrongUse
from pipelines.runtime.secret import read as read_secret

if TYPE_CHECKING:
    from mcp import Client
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server
    from mcp_types import Implementation


def mcp(
    site: Annotated[
        str | None, typer.Argument(help="Site, as in pagewire.yaml; it needs `agents: [mcp]`.", show_default=False)
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="The operators' server instead: no site.")] = False,
    url: Annotated[str | None, typer.Option(help="Of the gateway; default: the one that runs here.")] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="File with a key of the scope chat, with --admin of the scope admin; default: the admin key for the "
            "gateway here, none for another.",
        ),
    ] = None,
) -> None:
    """Speak MCP over standard input and output, for an assistant that starts this command.

    Example: pagewire mcp town
    """
    if find_spec("mcp") is None:
        raise SettingsError("the MCP SDK is not installed: `pip install 'pagewire[mcp]'`")
    if admin == (site is not None):
        raise WrongUse("name a site, or give --admin")
    where, secret = _gateway(url, key)
    path = "admin" if admin else f"sites/{site}"
    asyncio.run(_bridge(f"{where.rstrip('/')}/v1/{path}/mcp", secret))


def _gateway(url: str | None, file: Path | None) -> tuple[str, str | None]:
    """Its URL, and the key. Raises: ServiceMissing: no gateway runs here. SettingsError."""
    from gateway.edge.auth import known_admin_key
    from wiring.addresses import ServiceMissing

    secret = read_secret(file, "--key") if file else None
    if url is not None:
        return url, secret
    settings = load()
    running = running_gateway(settings.home)
    if running is None:
        raise ServiceMissing("no gateway runs here: `pagewire up`, or name one by --url")
    admin = known_admin_key(settings)
    return running, secret or (admin.get_secret_value() if admin else None)


async def _bridge(url: str, secret: str | None) -> None:
    """Hand on what the assistant asks, until it closes the stream."""
    from httpx2 import AsyncClient, Timeout
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.server.stdio import stdio_server
    from mcp_types import Implementation

    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    name = Implementation(name="pagewire mcp", version="1")
    async with (
        AsyncClient(headers=headers, timeout=Timeout(30, read=300)) as http,
        Client(streamable_http_client(url, http_client=http), client_info=name) as remote,
        stdio_server() as (read, write),
    ):
        server = handing_on(remote, name)
        await server.run(read, write, server.create_initialization_options())


def handing_on(remote: Client, name: Implementation) -> Server[dict[str, object]]:
    """A server that asks another one, under the assistant's own name. `name`: that `remote` has until it knows it."""
    import mcp_types as types
    from mcp.server.lowlevel.server import Server

    async def call(ctx: ServerRequestContext[dict[str, object]], params: types.CallToolRequestParams) -> Any:
        info, known = ctx.session.client_params, remote.session.discover_result
        if info and known and info.client_info.name != name.name:
            name.name, name.version = info.client_info.name, info.client_info.version
            remote.session.adopt(known)  # sends the new name with each request
        return await remote.call_tool(params.name, params.arguments)

    def cursor(params: types.PaginatedRequestParams | None) -> str | None:
        return params.cursor if params else None

    resources: dict[str, Any] = {}
    if remote.server_capabilities.resources is not None:
        resources = {
            "on_list_resources": lambda _, params: remote.list_resources(cursor=cursor(params), cache_mode="bypass"),
            "on_list_resource_templates": lambda _, params: remote.list_resource_templates(cursor=cursor(params)),
            "on_read_resource": lambda _, params: remote.read_resource(params.uri, cache_mode="bypass"),
        }
    return Server(
        "pagewire",
        instructions=remote.instructions,
        on_list_tools=lambda _, params: remote.list_tools(cursor=cursor(params), cache_mode="bypass"),
        on_call_tool=call,
        **resources,
    )
