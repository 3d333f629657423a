"""Pages as Markdown over HTTP, by id or address, and the lists of them that assistants look for (llmstxt.org).

Nothing is kept: every answer is read from the live index, lists in batches, so a deleted page is gone from all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC
from email.utils import format_datetime, parsedate_to_datetime
from hashlib import sha256
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import yaml
from fastapi import APIRouter, Query, Request, Response, Security
from fastapi.responses import StreamingResponse

from gateway.agents.door import MayVisit
from gateway.edge.auth import Caller
from gateway.edge.bodies import PAGE_ID
from gateway.edge.edge import Edge, TheEdge
from gateway.edge.problems import Problem
from schemas.base import GivenLang, PageId
from schemas.http import ListedPage, LivePage, LiveSection, PageList, SearchHit
from schemas.keys import page_key
from text.markdown import escaped

SUFFIX = ".md"
LISTED_FIRST = 50  # pages of llms.txt: they are sent while the next ones are read, ...
LISTED_AT_ONCE = 200  # ... so many a search
PIECE = 50  # pages of one piece of llms-full.txt
PRIVATE = {"Cache-Control": "no-cache", "Vary": "Accept, Authorization"}  # what one reads, another may not

MayRead = Annotated[Caller, Security(MayVisit("pages", "page"))]
OptionalLang = Annotated[GivenLang | None, Query(description="Default: the first of the site's that it is in.")]
OfLang = Annotated[GivenLang | None, Query(description="Default: the site's first language.")]
Address = Annotated[
    str, Query(min_length=1, max_length=4_000, description="Address of the page, with or without host.")
]
Below = Annotated[
    str,
    Query(
        max_length=2_000,
        description="Only pages whose address begins with this, linked there with `format=md`: for a website that "
        "gives its pages as Markdown itself, as the WordPress plugin and the Wagtail app do.",
    ),
]
After = Annotated[str, Query(max_length=4_000, description="`rel=next` of the piece before.")]

router = APIRouter(prefix="/v1/sites/{site}", tags=["agents"])
SAFE = ":/?#[]@!$&'*+,;=%"  # in an address: all that belongs to it, without brackets that end a link (RFC 3986, 2.2)


@router.get("/pages", response_class=Response, responses={200: {"content": {"text/markdown": {}}}})
async def page_at(
    site: str, caller: MayRead, edge: TheEdge, request: Request, url: Address, lang: OptionalLang = None
) -> Response:
    """The page at an address, as Markdown."""
    return _answer(request, await page_by_address(edge, caller, site, url, lang))


@router.get(f"/pages/{PAGE_ID}", response_class=Response, responses={200: {"content": {"text/markdown": {}}}})
async def page_of(
    site: str, page_id: PageId, caller: MayRead, edge: TheEdge, request: Request, lang: OptionalLang = None
) -> Response:
    """A page as Markdown, exactly as it is indexed; `.md` behind its id is ignored."""
    return _answer(request, await page_by_id(edge, caller, site, page_id, lang))


@router.get("/llms.txt", response_class=StreamingResponse, responses={200: {"content": {"text/markdown": {}}}})
async def list_pages(site: str, caller: MayRead, edge: TheEdge, lang: OfLang = None, below: Below = "") -> Response:
    """All pages of one language with links to their Markdown (llmstxt.org)."""
    lang = _language(edge, site, lang)
    first = await edge.ports.indexed.pages(site, groups=caller.groups, limit=LISTED_FIRST, lang=lang, described=True)
    return StreamingResponse(_list(edge, caller, site, lang, first, below), media_type="text/markdown", headers=PRIVATE)


@router.get("/llms-full.txt", response_class=StreamingResponse, responses={200: {"content": {"text/markdown": {}}}})
async def whole_pages(site: str, caller: MayRead, edge: TheEdge, lang: OfLang = None, after: After = "") -> Response:
    """The pages of one language, whole, in pieces: the header `Link` leads to the next one."""
    lang = _language(edge, site, lang)
    some = await edge.ports.indexed.pages(site, groups=caller.groups, after=after, limit=PIECE, lang=lang)
    headers = dict(PRIVATE)
    if some.next is not None:
        headers["Link"] = f'<llms-full.txt?{urlencode({"lang": lang, "after": some.next})}>; rel="next"'
    return StreamingResponse(_whole(edge, caller, site, some), media_type="text/markdown", headers=headers)


def _language(edge: Edge, site: str, lang: str | None) -> str:
    """The list's language, the site's first one by default. Raises: Problem: the site has no such language."""
    languages = edge.settings.site(site).languages
    if lang is not None and lang not in languages:
        raise Problem(404, "unknown-page", f"site {site} has no pages in {lang!r}, only in {', '.join(languages)}")
    return lang or languages[0]


async def page_by_id(edge: Edge, caller: Caller, site: str, page_id: str, lang: str | None) -> LivePage:
    """Raises: Problem: 404. Retryable."""
    for id in dict.fromkeys((page_id, page_id.removesuffix(SUFFIX))):
        for each in (lang,) if lang else edge.settings.site(site).languages:
            if id and (found := await edge.ports.indexed.live(site, page_key(site, each, id), caller.groups)):
                return found
    raise _unknown()


async def page_by_address(edge: Edge, caller: Caller, site: str, url: str, lang: str | None) -> LivePage:
    """Raises: Problem: 404. Retryable."""
    listed = await edge.ports.indexed.at(site, url, groups=caller.groups)
    languages = (lang,) if lang else edge.settings.site(site).languages
    for page in sorted((page for page in listed if page.lang in languages), key=lambda p: languages.index(p.lang)):
        if found := await edge.ports.indexed.live(site, page_key(site, page.lang, page.page_id), caller.groups):
            return found
    raise _unknown()


def _unknown() -> Problem:
    return Problem(404, "unknown-page", "no such page can be found here")


def _answer(request: Request, page: LivePage) -> Response:
    """The page, or 304 (RFC 9110, 13.2.2)."""
    body = markdown_of(page)
    etag = f'"{sha256(body.encode()).hexdigest()[:20]}"'
    headers = {**PRIVATE, "ETag": etag, "Last-Modified": format_datetime(page.indexed_at.astimezone(UTC), usegmt=True)}
    if _is_known(request, etag, page):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="text/markdown", headers=headers)


def _is_known(request: Request, etag: str, page: LivePage) -> bool:
    known = request.headers.get("if-none-match")
    if known is not None:
        return "*" in known or etag in [each.strip().removeprefix("W/") for each in known.split(",")]
    try:
        since = parsedate_to_datetime(request.headers.get("if-modified-since", ""))
    except ValueError:
        return False
    return since.tzinfo is not None and page.indexed_at.replace(microsecond=0) <= since


async def _list(edge: Edge, caller: Caller, site: str, lang: str, some: PageList, below: str) -> AsyncIterator[str]:
    settings = edge.settings.site(site)
    yield f"# {settings.title or site}\n\n## Pages\n\n" + _lines(some, below)
    while some.next is not None:
        some = await edge.ports.indexed.pages(
            site, groups=caller.groups, after=some.next, limit=LISTED_AT_ONCE, lang=lang, described=True
        )
        yield _lines(some, below)
    others = "".join(f"- {link(each, f'llms.txt?lang={each}')}\n" for each in settings.languages if each != lang)
    whole = "" if below else f"- {link('All pages, whole', f'llms-full.txt?lang={lang}')}\n"
    if whole or others:
        yield f"\n## Optional\n\n{whole}{others}"


def _lines(some: PageList, below: str) -> str:
    return "".join(_line(page, below) for page in some.pages if page.url.startswith(below))


def _line(page: ListedPage, below: str) -> str:
    """The address of its Markdown is relative to the list's own, or the page's with `format=md`."""
    said = f": {page.description}" if page.description else ""
    there = own_markdown(page.url) if below else markdown_path(page.page_id, page.lang)
    return f"- {link(page.title or page.url or page.page_id, there)}{said}\n"


def own_markdown(url: str) -> str:
    """Where a website that gives Markdown itself has it of a page."""
    address, _, _ = url.partition("#")
    return f"{address}{'&' if '?' in address else '?'}format=md"


def markdown_path(page_id: str, lang: str) -> str:
    """Where a page's Markdown is, below its site."""
    return f"pages/{quote(page_id, safe='')}{SUFFIX}?lang={lang}"


async def _whole(edge: Edge, caller: Caller, site: str, some: PageList) -> AsyncIterator[str]:
    for listed in some.pages:
        page = await edge.ports.indexed.live(site, page_key(site, listed.lang, listed.page_id), caller.groups)
        if page is not None:  # deleted meanwhile
            yield markdown_of(page) + "\n"


def markdown_of(page: LivePage) -> str:
    """The whole page; its texts are those of the index, letter by letter."""
    matter: dict[str, Any] = {
        "id": page.page_id,
        "lang": page.lang,
        "title": page.title,
        "url": page.url,
        "description": page.fields.get("description"),
        "keywords": page.fields.get("keywords"),
        "name": name if (name := page.fields.get("name")) != page.title else None,
        "labels": {key: list(values) for key, values in page.labels.items()} or None,
        "published_at": page.published_at and page.published_at.isoformat(timespec="seconds"),
        "changed_at": page.changed_at.isoformat(timespec="milliseconds"),
        "revision": page.revision,
    }
    said = {key: value for key, value in matter.items() if value not in (None, "")}
    # One line a value: a long one would else be folded.
    front = yaml.safe_dump(said, allow_unicode=True, sort_keys=False, width=float("inf"))
    return f"---\n{front}---\n\n" + "\n\n".join(map(_section, page.sections)).rstrip("\n") + "\n"


def passages(hits: Sequence[SearchHit]) -> list[SearchHit]:
    """Without titles, names and keywords that were found of pages of which there is a passage as well."""
    told = {(hit.page_id, hit.lang) for hit in hits if hit.field == "content"}
    return [hit for hit in hits if hit.field == "content" or (hit.page_id, hit.lang) not in told]


def _section(section: LiveSection) -> str:
    """The page's own text as it is; an attachment's under a line and its link."""
    text = section.text.strip("\n")
    return f"---\n\n{link(section.title, section.url)}\n\n{text}" if section.title or section.url else text


def link(title: str, url: str) -> str:
    """A link of Markdown. Without a title the address is the text, without an address there is only the text."""
    text = " ".join(title.split()) or url
    if not url:
        return escaped(text)
    return f"[{escaped(text, linked=True)}]({quote(url, safe=SAFE)})"
