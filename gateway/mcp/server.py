"""The MCP server of all sites, for visitors' assistants: search, answers, pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from typing import Annotated, Self
from urllib.parse import quote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import Field, StringConstraints, model_validator

from gateway.agents.pages import link, markdown_of, page_by_address, page_by_id, passages
from gateway.chat.chat import new_question, stopped, whole
from gateway.chat.sse import PeekableEvents
from gateway.edge.edge import LanguageHint
from gateway.edge.problems import Problem
from gateway.mcp.protocol import Context, McpRequest, McpTool, Tools, refused, server
from pipelines.runtime.errors import PagewireError
from schemas.answer import Citation
from schemas.base import GivenLang, Lang, PageId, Wire
from schemas.http import ChatResponse, SearchHit
from schemas.keys import page_key, parse_page_key
from schemas.labels import LabelFilter
from schemas.query import MAX_QUESTION, SourceKind
from text.markdown import escaped

LISTED = 200  # resources a list
BESIDE = 4  # hits in titles and other short fields, which are no passages
MARKDOWN = "text/markdown"
SCHEME = "page:"  # before a page's key; not its address, which has HTML
INSTRUCTIONS = (
    "Tools over the pages of one website, as they are now. Use `ask` for a question, `search` for passages, `get_page` "
    "for a whole page. Cite the addresses of the pages."
)
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION)]
LABELS = 'Only pages that have, of each key, one of the values, such as `{"kind": ["form"]}`; default: all pages.'


class SearchArguments(Wire):
    """Find the passages of this website that fit best, each with its page's title and address."""

    query: Words = Field(description="Words or a question.")
    limit: int = Field(default=8, ge=1, le=50, description="Passages, at most.")
    labels: LabelFilter = Field(default_factory=dict, description=LABELS)


class AskArguments(Wire):
    """Answer a question from the pages of this website alone, with citations; without an answer, say so."""

    question: Words = Field(description="One question that needs no conversation to be understood.")
    lang: GivenLang | None = Field(default=None, description="Language to answer in; default: the question's.")
    labels: LabelFilter = Field(default_factory=dict, description=LABELS)


class PageArguments(Wire):
    """Read a whole page of this website as Markdown: by the `id` or the `url` of a search's or an answer's source."""

    id: PageId | None = None
    url: Annotated[str, StringConstraints(min_length=1, max_length=4_000)] | None = None
    lang: GivenLang | None = Field(default=None, description="Default: the first of the site's that it is in.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.id is None) == (self.url is None):
            raise ValueError("exactly one of id and url")
        return self


class ToolPassage(Wire):
    """A passage of a page."""

    id: PageId = Field(description="Of the page, for `get_page`.")
    lang: Lang
    title: str
    url: str
    text: str


class PassagesFound(Wire):
    """What a search found, the best first."""

    passages: tuple[ToolPassage, ...]


class CitedPassage(ToolPassage):
    """A passage that the answer cites as `[n]`."""

    n: int
    kind: SourceKind = Field(default="page", description="`tool`: a tool's result; `id` is no page's.")


class ToolAnswer(Wire):
    """An answer from the website's pages."""

    answer: str = Field(description="Markdown; `[1]` cites the source 1.")
    answered: bool = Field(description="False: no page has an answer, or none is sure enough.")
    sources: tuple[CitedPassage, ...]


async def _search(visit: McpRequest, wanted: SearchArguments) -> tuple[str, PassagesFound]:
    visit.count("search")
    hits = await visit.edge.ports.search.search(
        visit.site,
        wanted.query,
        kind="hybrid",
        size=wanted.limit + BESIDE,
        groups=visit.caller.groups,
        labels=wanted.labels,
    )
    found = found_in(passages(hits)[: wanted.limit])
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
        events = PeekableEvents(edge.ports.answers.ask(edge.logged(question, caller)))
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


def found_in(hits: Sequence[SearchHit]) -> PassagesFound:
    return PassagesFound(
        passages=tuple(
            ToolPassage(id=hit.page_id, lang=hit.lang, title=hit.title, url=hit.url, text=hit.text) for hit in hits
        )
    )


def answer_of(told: ChatResponse) -> ToolAnswer:
    cited = [source for source in told.sources if source.cited]
    return ToolAnswer(
        answer=_marked(told.answer, told.citations),
        answered=bool(cited),
        sources=tuple(
            CitedPassage(n=s.n, id=s.page_id, lang=s.lang, title=s.title, url=s.url, text=s.text, kind=s.kind)
            for s in cited
        ),
    )


def markdown_of_found(found: PassagesFound) -> str:
    """For an assistant that reads no structured content."""
    if not found.passages:
        return "Nothing was found."
    return "\n\n".join(f"{n}. {_named(one)}\n\n{one.text.strip()}" for n, one in enumerate(found.passages, 1))


def markdown_of_answer(answer: ToolAnswer) -> str:
    """For an assistant that reads no structured content."""
    sources = "\n".join(f"[{source.n}]: {_named(source)}" for source in answer.sources)
    return f"{answer.answer}\n\nSources:\n\n{sources}" if sources else answer.answer


def _named(passage: ToolPassage) -> str:
    if isinstance(passage, CitedPassage) and passage.kind == "tool":
        return escaped(passage.title)
    return f"{link(passage.title or passage.id, passage.url)} (id: {passage.id}, lang: {passage.lang})"


def _marked(text: str, citations: Sequence[Citation]) -> str:
    """The text with the numbers of its sources behind what they support."""
    for citation in sorted(citations, key=lambda each: (each.end, each.n), reverse=True):
        said = text[: citation.end]
        at = len(said.removesuffix("|").rstrip())  # of a table's row in its last cell: another one would be dropped
        text = f"{text[:at]} [{citation.n}]{text[at:]}"
    return text
