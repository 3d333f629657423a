"""`pagewire mcp` asks the gateway under the name of the assistant that started it."""

from __future__ import annotations

from typing import Any, Literal

import mcp_types as types
import pytest
from mcp import Client
from mcp.server.lowlevel.server import Server

from cli.mcp import handing_on


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_call_carries_the_assistants_own_name(era: Literal["auto", "legacy"]) -> None:
    names: list[str] = []

    async def called(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        names.append(ctx.session.client_params.client_info.name)
        return types.CallToolResult(content=[types.TextContent(text=params.name)])

    async def listed(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="ask", input_schema={"type": "object"})])

    gateway: Server[Any] = Server("gateway", on_list_tools=listed, on_call_tool=called)
    name = types.Implementation(name="pagewire mcp", version="1")
    assistant = types.Implementation(name="town-desk", version="2")
    async with (
        Client(gateway, client_info=name) as remote,
        Client(handing_on(remote, name), client_info=assistant, mode=era) as client,
    ):
        for _ in range(2):
            await client.call_tool("ask", {"question": "Is it free?"})
    assert names == ["town-desk", "town-desk"]
