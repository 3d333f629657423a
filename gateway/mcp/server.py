"""The MCP server of all sites, by the official SDK: each request stands for itself, no session is kept.

    POST ─▶ MayVisit ─▶ SDK (2026-07-28, and 2025-11-25 and older with `initialize`) ─▶ tool ─▶ the ports of the routes

A refusal that the assistant can do something about, such as too many requests, is the result of its tool (`isError`),
as the specification asks; one of a resource is an error of JSON-RPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple
from urllib.parse import quote

import mcp_types as types
from fastapi import Request
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from gateway.agents.pages import page_by_address, page_by_id
from gateway.agents.twin import markdown_of
from gateway.chat.chat import new_question, stopped, whole
from gateway.chat.sse import Patient
from gateway.edge.auth import Caller
from gateway.edge.edge import Edge, LanguageHint
from gateway.edge.metrics import MCP_CALLS
from gateway.edge.problems import Problem, invalid, problem_of
from gateway.edge.rates import What
from gateway.mcp.tools import (
    AskArguments,
    PageArguments,
    PassagesFound,
    SearchArguments,
    ToolAnswer,
    ToolName,
    answer_of,
    found_in,
    markdown_of_answer,
    markdown_of_found,
)
from pipelines.runtime.errors import PagewireError
from schemas.base import Wire
from schemas.keys import page_key, parse_page_key

BODY_LIMIT = 64 * 1024  # bytes: a question of 4,000 escaped emoji, and what the protocol says around it
LISTED = 200  # resources a list
MARKDOWN = "text/markdown"
SCHEME = "page:"  # before a page's key; not its address, which has HTML
LONGEST_NAME = 100  # characters of a client's name in the log
INSTRUCTIONS = (
    "Tools over the pages of one website, as they are now. Use `ask` for a question, `search` for passages, `get_page` "
    "for a whole page. Cite the addresses of the pages."
)

Context = ServerRequestContext[dict[str, Any], Request]


@dataclass(frozen=True)
class McpRequest:
    """Who calls which site."""

    edge: Edge
    caller: Caller
    site: str
    request: Request
    client: str

    @classmethod
    def of(cls, ctx: Context) -> McpRequest:
        request = ctx.request
        assert request is not None  # all come by HTTP
        info = ctx.session.client_params
        # Before 2026-07-28 a client gives its name once, to whichever gateway.
        client = info.client_info.name if info else request.headers.get("user-agent", "")
        site, state = request.path_params["site"], request.app.state
        return cls(state.edge, request.state.caller, site, request, client[:LONGEST_NAME])

    def count(self, what: What) -> None:
        """Raises: Problem: 429."""
        self.edge.count(what, self.request, self.caller)


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request. All that the SDK starts for it ends with it."""
    manager = StreamableHTTPSessionManager(SERVER, json_response=True, stateless=True, max_request_body_size=BODY_LIMIT)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


class McpTool(NamedTuple):
    """A tool: what it takes, what it gives beside text, and how it is called."""

    title: str
    takes: type[Wire]
    gives: type[Wire] | None
    call: Callable[[McpRequest, Any], Awaitable[tuple[str, Wire | None]]]


async def _search(visit: McpRequest, wanted: SearchArguments) -> tuple[str, PassagesFound]:
    visit.count("search")
    found = found_in(
        await visit.edge.ports.search.search(
            visit.site,
            wanted.query,
            kind="hybrid",
            size=wanted.limit,
            groups=visit.caller.groups,
            labels=wanted.labels,
        )
    )
    return markdown_of_found(found), found


async def _ask(visit: McpRequest, wanted: AskArguments) -> tuple[str, ToolAnswer]:
    """Raises: Problem, PagewireError."""
    edge, caller, site = visit.edge, visit.caller, visit.site
    visit.count("ask")
    with edge.admit(site, caller, LanguageHint(wanted.question, wanted.lang)):
        question = new_question(edge, caller, site, wanted.question, wanted.lang)
        asked = {"labels": wanted.labels, "via": "mcp", "client": visit.client}
        question = question.model_copy(update=asked)
        deadline = asyncio.get_running_loop().time() + edge.settings.question_timeout
        events = Patient(edge.ports.answers.ask(edge.logged(question)))
        stop = partial(stopped, edge, caller, question)
        answer = answer_of(await whole(events, question, deadline, visit.request.receive, stop))
    return markdown_of_answer(answer), answer


async def _get_page(visit: McpRequest, wanted: PageArguments) -> tuple[str, None]:
    visit.count("page")
    edge, caller, site = visit.edge, visit.caller, visit.site
    if wanted.id is not None:
        page = await page_by_id(edge, caller, site, wanted.id, wanted.lang)
    else:
        page = await page_by_address(edge, caller, site, wanted.url or "", wanted.lang)
    return markdown_of(page), None


TOOLS: dict[ToolName, McpTool] = {
    "search": McpTool("Search the website", SearchArguments, PassagesFound, _search),
    "ask": McpTool("Ask the website", AskArguments, ToolAnswer, _ask),
    "get_page": McpTool("Read a page", PageArguments, None, _get_page),
}


async def _list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                title=tool.title,
                description=tool.takes.__doc__,
                input_schema=tool.takes.model_json_schema(),
                output_schema=tool.gives.model_json_schema(mode="serialization") if tool.gives else None,
                annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
            )
            for name, tool in TOOLS.items()
        ]
    )


async def _call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Raises: MCPError: there is no such tool."""
    tool = next((tool for name, tool in TOOLS.items() if name == params.name), None)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"no such tool; there are: {', '.join(TOOLS)}")
    try:
        text, said = await tool.call(McpRequest.of(ctx), _parsed(tool.takes, params.arguments or {}))
    except (Problem, PagewireError) as err:
        problem = problem_of(err) if isinstance(err, PagewireError) else err
        MCP_CALLS.labels(params.name, problem.code).inc()
        return types.CallToolResult(
            content=[types.TextContent(text=f"{problem.code}: {problem.detail}")], is_error=True
        )
    except ClientDisconnect:
        raise MCPError(types.INTERNAL_ERROR, "the client has left") from None
    MCP_CALLS.labels(params.name, "").inc()
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    return types.CallToolResult(
        content=content, structured_content=said.model_dump(mode="json") if said is not None else None
    )


def _parsed(takes: type[Wire], arguments: dict[str, Any]) -> Wire:
    """Raises: Problem: 422, naming the fields."""
    try:
        return takes.model_validate(arguments)
    except ValidationError as err:
        raise invalid(err.errors(include_input=False, include_url=False)) from None


async def _list_resources(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    """Raises: MCPError."""
    visit = McpRequest.of(ctx)
    try:
        visit.count("page")
        some = await visit.edge.ports.indexed.pages(
            visit.site,
            groups=visit.caller.groups,
            after=(params.cursor if params else None) or "",
            limit=LISTED,
            described=True,
        )
    except (Problem, PagewireError) as err:
        raise _refused(err) from err
    return types.ListResourcesResult(
        resources=[
            types.Resource(
                uri=SCHEME + page_key(visit.site, page.lang, page.page_id),
                name=page.page_id,
                title=page.title or None,
                description=page.description or None,
                mime_type=MARKDOWN,
            )
            for page in some.pages
        ],
        next_cursor=some.next,
    )


async def _list_templates(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    uri = f"{SCHEME}{quote(McpRequest.of(ctx).site, safe='')}:{{lang}}:{{id}}"
    template = types.ResourceTemplate(uri_template=uri, name="page", title="A page", mime_type=MARKDOWN)
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    """Raises: MCPError."""
    visit = McpRequest.of(ctx)
    try:
        named = parse_page_key(params.uri.removeprefix(SCHEME))
        if named.site != visit.site:
            raise ValueError
    except ValueError:
        raise MCPError(types.INVALID_PARAMS, f"not a page of this site: {SCHEME}{visit.site}:LANGUAGE:ID") from None
    try:
        visit.count("page")
        page = await page_by_id(visit.edge, visit.caller, visit.site, named.page_id, named.lang)
    except (Problem, PagewireError) as err:
        raise _refused(err) from err
    text = types.TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=markdown_of(page))
    return types.ReadResourceResult(contents=[text])


def _refused(err: Problem | PagewireError) -> MCPError:
    problem = problem_of(err) if isinstance(err, PagewireError) else err
    MCP_CALLS.labels("resource", problem.code).inc()
    code = types.INTERNAL_ERROR if problem.status >= 500 else types.INVALID_PARAMS
    return MCPError(code, problem.detail, {"code": problem.code})


SERVER: Server[dict[str, Any]] = Server(
    "pagewire",
    version=version("pagewire"),
    title="Pagewire",
    instructions=INSTRUCTIONS,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
    on_list_resources=_list_resources,
    on_list_resource_templates=_list_templates,
    on_read_resource=_read_resource,
)
