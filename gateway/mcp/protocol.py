"""What the MCP servers share, by the official SDK: each request stands for itself, no session is kept.

    POST ─▶ key ─▶ SDK (2026-07-28, and 2025-11-25 and older with `initialize`) ─▶ tool ─▶ the ports of the routes

A refusal that the assistant can do something about, such as too many requests, is the result of its tool (`isError`),
as the specification asks; one of a resource is an error of JSON-RPC.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import mcp_types as types
from fastapi import Request
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from gateway.edge.auth import Caller
from gateway.edge.bodies import validated
from gateway.edge.edge import Edge
from gateway.edge.metrics import MCP_CALLS
from gateway.edge.problems import Problem, problem_of
from gateway.edge.rates import What
from pipelines.runtime.errors import PagewireError
from schemas.base import Wire

BODY_LIMIT = 64 * 1024  # bytes: a question of 4,000 escaped emoji, and what the protocol says around it
LONGEST_NAME = 100  # characters of a client's name in the logs
FORM = "confirm"  # what a client's user is asked for, and the field of the form
ASKS_IN_RESULTS = "2026-07-28"  # since then a server without sessions can ask a client's user something

Context = ServerRequestContext[dict[str, Any], Request]
Result = types.CallToolResult | types.InputRequiredResult


class Unconfirmed(Exception):
    """An act that must be asked for again. `plan`: what would happen."""

    def __init__(self, plan: str, token: str) -> None:
        super().__init__(plan)
        self.plan = plan
        self.token = token


class ActResult(Wire):
    """The outcome of a tool that acts."""

    done: bool
    text: str
    confirm: str | None = None


@dataclass(frozen=True)
class McpRequest:
    """Who calls, and with what."""

    edge: Edge
    caller: Caller
    request: Request
    client: str
    asks: bool  # the client shows its user a form
    state: str | None  # the token that came back with a form
    answer: types.ElicitResult | None  # what the user made of it

    @classmethod
    def of(cls, ctx: Context, params: types.RequestParams | None = None) -> McpRequest:
        request = ctx.request
        assert request is not None  # all come by HTTP
        info = ctx.session.client_params
        # Before 2026-07-28 a client gives its name once, to whichever gateway.
        client = info.client_info.name if info else request.headers.get("user-agent", "")
        form = info.capabilities.elicitation if info else None
        shows = form is not None and (form.form is not None or form.url is None)  # `{}` is a form
        given = params if isinstance(params, types.InputResponseRequestParams) else types.InputResponseRequestParams()
        answer = (given.input_responses or {}).get(FORM)
        return cls(
            request.app.state.edge,
            request.state.caller,
            request,
            client[:LONGEST_NAME],
            shows and ctx.protocol_version >= ASKS_IN_RESULTS,
            given.request_state,
            answer if isinstance(answer, types.ElicitResult) else None,
        )

    @property
    def site(self) -> str:
        """Of the path."""
        return str(self.request.path_params["site"])

    def count(self, what: What) -> None:
        """Raises: Problem: 429."""
        self.edge.count(what, self.request, self.caller)

    def confirm(self, plan: str, token: str | None) -> None:
        """Let the act of this plan pass where the caller, or the client's user, has confirmed it.

        Args:
            token: the tool's argument.

        Raises:
            Unconfirmed: ask first. Problem: the user said no.
        """
        if self.answer is not None:
            token = self.state
            if self.answer.action != "accept" or (self.answer.content or {}).get(FORM) is not True:
                raise Problem(409, "not-confirmed", "nothing was done: the user did not confirm it")
        confirmations = self.edge.confirmations
        if token is None or not confirmations.confirms(token, self.caller.name, plan):
            raise Unconfirmed(plan, confirmations.token(self.caller.name, plan))


class McpTool(NamedTuple):
    """A tool: what it takes, what it gives beside text, and how it is called. `acts`: it changes something."""

    title: str
    takes: type[Wire]
    gives: type[Wire] | None
    call: Callable[[McpRequest, Any], Awaitable[tuple[str, Wire | None]]]
    acts: bool = False


Tools = Mapping[str, McpTool]


def server(name: str, title: str, version: str, instructions: str, tools: Tools, **more: Any) -> Server[dict[str, Any]]:
    """A server of these tools. `more`: other handlers of the SDK's."""
    # Made once: schemas take milliseconds, and the SDK looks at a tool's before each call.
    listed = [_described(called, tool) for called, tool in tools.items()]
    return Server(
        name,
        version=version,
        title=title,
        instructions=instructions,
        get_tool_input_schema={each.name: each.input_schema for each in listed}.get,
        on_list_tools=partial(_list_tools, listed),
        on_call_tool=partial(_call_tool, tools),
        **more,
    )


async def serve(made: Server[dict[str, Any]], scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request. All that the SDK starts for it ends with it."""
    manager = StreamableHTTPSessionManager(made, json_response=True, stateless=True, max_request_body_size=BODY_LIMIT)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


def _described(name: str, tool: McpTool) -> types.Tool:
    return types.Tool(
        name=name,
        title=tool.title,
        description=tool.takes.__doc__,
        input_schema=tool.takes.model_json_schema(),
        output_schema=tool.gives.model_json_schema(mode="serialization") if tool.gives else None,
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.acts, destructive_hint=tool.acts or None, open_world_hint=False
        ),
    )


async def _list_tools(
    listed: list[types.Tool], ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=listed)


async def _call_tool(tools: Tools, ctx: Context, params: types.CallToolRequestParams) -> Result:
    """Raises: MCPError: there is no such tool."""
    tool = tools.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"no such tool; there are: {', '.join(tools)}")
    visit = McpRequest.of(ctx, params)
    try:
        text, said = await tool.call(visit, validated(tool.takes, params.arguments or {}))
    except Unconfirmed as asked:
        MCP_CALLS.labels(params.name, "not-confirmed").inc()
        return _form(asked) if visit.asks else _said(*_asked_again(asked))
    except (Problem, PagewireError) as err:
        problem = problem_of(err) if isinstance(err, PagewireError) else err
        MCP_CALLS.labels(params.name, problem.code).inc()
        return types.CallToolResult(
            content=[types.TextContent(text=f"{problem.code}: {problem.detail}")], is_error=True
        )
    except ClientDisconnect:
        raise MCPError(types.INTERNAL_ERROR, "the client has left") from None
    MCP_CALLS.labels(params.name, "").inc()
    return _said(text, said)


def _said(text: str, said: Wire | None) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    structured = said.model_dump(mode="json") if said is not None else None
    return types.CallToolResult(content=content, structured_content=structured)


def _asked_again(asked: Unconfirmed) -> tuple[str, ActResult]:
    text = f"Nothing was done yet. {asked.plan} If the user agrees, call again with `confirm`: {asked.token}"
    return text, ActResult(done=False, text=asked.plan, confirm=asked.token)


def _form(asked: Unconfirmed) -> types.InputRequiredResult:
    field = {"type": "boolean", "title": "Do it", "default": False}
    schema: dict[str, Any] = {"type": "object", "properties": {FORM: field}, "required": [FORM]}
    form = types.ElicitRequestFormParams(message=asked.plan, requested_schema=schema)
    return types.InputRequiredResult(input_requests={FORM: types.ElicitRequest(params=form)}, request_state=asked.token)


def refused(err: Problem | PagewireError) -> MCPError:
    """Of a resource."""
    problem = problem_of(err) if isinstance(err, PagewireError) else err
    MCP_CALLS.labels("resource", problem.code).inc()
    code = types.INTERNAL_ERROR if problem.status >= 500 else types.INVALID_PARAMS
    return MCPError(code, problem.detail, {"code": problem.code})
