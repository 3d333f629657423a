"""Results of a search as a plain page, for browsers without scripts: where the form in `<pagewire-search>` leads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import urljoin, urlsplit

from babel.dates import format_date
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from gateway.edge.bounds import bounded
from gateway.edge.edge import Edge, TheEdge, address_of
from gateway.edge.problems import Problem, problem_of
from gateway.site.pages import RIGHT_TO_LEFT, preferred
from pipelines.runtime.errors import Retryable
from schemas.http import SearchHit, Snippet
from schemas.page import PageStamp
from schemas.query import MAX_QUESTION

# No script at all; style sheet and picture from here, the form to here.
CSP = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HITS = 30  # passages; those of one page are shown together
PASSAGES = 2  # of a page
FALLBACK = "en"

router = APIRouter(prefix="/v1/sites/{site}", tags=["search"])


@dataclass(frozen=True)
class ResultPassage:
    """A passage of a page, and where it stands."""

    url: str
    snippet: Snippet


@dataclass(frozen=True)
class ResultPage:
    """A page with the passages that fit best."""

    title: str
    url: str  # of the best passage; empty: the page has no address that can be opened
    lang: str
    dir: str
    stamp: PageStamp
    passages: tuple[ResultPassage, ...]


class ResultWords:
    """The words of the search in one language (search_words.json)."""

    def __init__(self, lang: str) -> None:
        primary = lang.partition("-")[0]
        self.lang = primary if primary in catalogue() else FALLBACK
        self.dir = direction(self.lang)

    def __call__(self, name: str, /, *, query: str = "", **values: object) -> str:
        # Isolated (Unicode's bidirectional algorithm), or a query in Latin letters would move the quotation marks.
        shown = f"\u2068{query}\u2069" if self.dir == "rtl" else query
        return catalogue()[self.lang][name].format_map(values | {"query": shown})

    def about(self, page: PageStamp) -> str:
        """What a page is and of when; empty: it says neither."""
        at, kind = page.changed_at or page.published_at, f"kind-{page.page_kind}"
        date = self("asOf", date=format_date(at.astimezone(UTC), "long", locale=self.lang)) if at else ""
        return " · ".join(filter(None, (catalogue()[self.lang].get(kind), date)))


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Language -> name -> words."""
    loaded: dict[str, dict[str, str]] = json.loads((files("gateway.site") / "search_words.json").read_text("utf-8"))
    return loaded


@cache
def _template() -> Any:
    loader = PackageLoader("gateway.site", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("results.html")


@router.get("/results", response_class=HTMLResponse)
@bounded("address")
async def results(
    site: str,
    edge: TheEdge,
    request: Request,
    q: Annotated[str, Query(max_length=MAX_QUESTION, description="Words or a question; empty: only the form.")] = "",
    lang: Annotated[str, Query(max_length=100, description="Default: what the browser asks for.")] = "",
    accept_language: Annotated[str, Header()] = "",
) -> HTMLResponse:
    """The pages that fit best, as HTML for people: of those that everybody may read."""
    settings = edge.settings.site(site)
    spoken = settings.spoken(lang) or preferred(accept_language, settings.languages)
    query, refused = " ".join(q.split()), None
    hits: Iterable[SearchHit] = ()
    if query:
        try:
            hits = await _search(edge, request, site, query, spoken)
        except Problem as problem:
            refused = problem
    home = next(iter(settings.origins), "")
    html = _template().render(
        say=ResultWords(spoken),
        lang=spoken,
        title=settings.title or site,
        home=home,
        query=query,
        most=MAX_QUESTION,
        trouble=refused and ("busy" if refused.status == 429 else "failed"),
        pages=by_page(hits, home),
    )
    headers = {"Content-Security-Policy": CSP, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    html = html.encode("utf-8", "replace").decode()
    return HTMLResponse(html, refused.status if refused else 200, headers | (refused.headers if refused else {}))


async def _search(edge: Edge, request: Request, site: str, query: str, lang: str) -> Iterable[SearchHit]:
    """Raises: Problem: 429 or 503."""
    edge.rates.count("search", address_of(request))
    try:
        return await edge.ports.search.search(site, query, kind="hybrid", size=HITS, lang=lang)
    except Retryable as err:
        raise problem_of(err) from None


def by_page(hits: Iterable[SearchHit], home: str) -> list[ResultPage]:
    """The pages in the order of their best hits, with the best passages of their content.

    Args:
        home: what addresses without a host are relative to; empty: the gateway.
    """
    pages: dict[tuple[str, str], list[SearchHit]] = {}
    for hit in hits:
        pages.setdefault((hit.title, hit.url or hit.page_id), []).append(hit)
    found = []
    for own in pages.values():
        title, url = own[0].title, own[0].url
        said = [hit for hit in own if hit.field == "content"] or [hit for hit in own if hit.field == "description"]
        passages = tuple(ResultPassage(opened(url, home, hit.snippet.fragment), hit.snippet) for hit in said[:PASSAGES])
        first = passages[0].url if passages else opened(url, home)
        found.append(ResultPage(title or own[0].page_id, first, own[0].lang, direction(own[0].lang), own[0], passages))
    return found


def opened(url: str, home: str, fragment: str = "") -> str:
    """Where a link leads to; empty: nowhere that is safe to open."""
    try:
        whole = urljoin(home, url)
        if not url or urlsplit(whole).scheme not in ("http", "https", ""):
            return ""
    except ValueError:  # no address
        return ""
    return whole if not fragment else f"{whole}{'' if '#' in whole else '#'}{fragment}"


def direction(lang: str) -> str:
    return "rtl" if lang.partition("-")[0] in RIGHT_TO_LEFT else "ltr"
