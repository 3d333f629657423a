"""The MCP server of all sites, for visitors' assistants: search, answers, pages."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib.metadata import version
from urllib.parse import quote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from gateway.agents.pages import page_by_address, page_by_id
from gateway.agents.twin import markdown_of
from gateway.chat.chat import new_question, stopped, whole
from gateway.chat.sse import Patient
from gateway.edge.edge import LanguageHint
from gateway.edge.problems import Problem
from gateway.mcp.protocol import Context, McpRequest, McpTool, Tools, refused, server
from gateway.mcp.tools import (
    AskArguments,
    PageArguments,
    PassagesFound,
    SearchArguments,
    ToolAnswer,
    answer_of,
    found_in,
    markdown_of_answer,
    markdown_of_found,
)
from pipelines.runtime.errors import PagewireError
from schemas.keys import page_key, parse_page_key

LISTED = 200  # resources a list
MARKDOWN = "text/markdown"
SCHEME = "page:"  # before a page's key; not its address, which has HTML
INSTRUCTIONS = (
    "Tools over the pages of one website, as they are now. Use `ask` for a question, `search` for passages, `get_page` "
    "for a whole page. Cite the addresses of the pages."
)


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
        events = Patient(edge.ports.answers.ask(edge.logged(question, caller)))
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


TOOLS: Tools = {
    "search": McpTool("Search the website", SearchArguments, PassagesFound, _search),
    "ask": McpTool("Ask the website", AskArguments, ToolAnswer, _ask),
    "get_page": McpTool("Read a page", PageArguments, None, _get_page),
}


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
        raise refused(err) from err
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
        raise refused(err) from err
    text = types.TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=markdown_of(page))
    return types.ReadResourceResult(contents=[text])


SERVER = server(
    "pagewire",
    "Pagewire",
    version("pagewire"),
    INSTRUCTIONS,
    TOOLS,
    on_list_resources=_list_resources,
    on_list_resource_templates=_list_templates,
    on_read_resource=_read_resource,
)
