"""The built-in chat page at `/`, the script that puts the chat on anybody's page (`/widget.js`), and the sample site.

The sample site is under `/site/`, with the chat on every page: only where the site `demo` is configured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from gateway.edge.bounds import bounded
from gateway.edge.edge import TheEdge
from gateway.edge.problems import Problem
from gateway.site.assets import add_assets
from schemas.base import language_tag
from sites.content import DEMO, SampleSite
from sites.render import MOUNT, render_path
from wiring.settings import Settings

# The script builds its page with createElement and constructed style sheets, so nothing inline is needed.
CSP = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "require-trusted-types-for 'script'"
)
MOST_LIKED = 20  # languages that are read of a browser's
_WEIGHT = re.compile(r"q=([01](?:\.\d{0,3})?)")
# Written from right to left (CLDR), of the languages a site is likely to have.
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur", "yi"})

Examples = Mapping[str, Mapping[str, Sequence[str]]]
CHAT_SCRIPT = "/widget.js"


def routes(examples: Examples) -> APIRouter:
    """Reads the files. `examples`: questions to begin with, by site and language, of sites whose settings have none."""
    router = APIRouter(include_in_schema=False)
    folder = files("gateway.site") / "static"
    page = Template((folder / "index.html").read_text("utf-8"))
    add_assets(router, folder)

    @router.get("/")
    @bounded("memory")
    async def index(
        edge: TheEdge,
        site: Annotated[str | None, Query(description="Default: the first one.")] = None,
        lang: Annotated[
            str | None, Query(description="Default: what the browser asks for, else the site's first.")
        ] = None,
        accept_language: Annotated[str, Header()] = "",
    ) -> Response:
        name = site or next(iter(edge.settings.sites))
        wanted = language_tag(lang or "")
        if wanted not in edge.settings.site(name).languages:
            wanted = preferred(accept_language, edge.settings.site(name).languages)
        html = _index(page, edge.settings, examples, name, wanted)
        headers = {"Content-Security-Policy": CSP, "Cache-Control": "no-cache", "Vary": "Accept-Language"}
        return Response(html, media_type="text/html", headers=headers)

    return router


def preferred(accept: str, languages: Sequence[str]) -> str:
    """The one of a site's languages that a browser likes best (RFC 9110, 12.5.4); the first where it likes none.

    Args:
        accept: the header `Accept-Language`, such as `de-AT,de;q=0.9,en;q=0.8`.
    """
    liked: list[tuple[float, str]] = []
    for each in accept.split(",")[:MOST_LIKED]:
        tag, _, weight = each.partition(";")
        said = _WEIGHT.fullmatch(weight.strip())
        liked.append((float(said[1]) if said else 1.0, language_tag(tag.strip())))
    for much, tag in sorted(liked, key=lambda each: -each[0]):
        for ours in languages:
            if much and ours.partition("-")[0] == tag.partition("-")[0]:
                return ours
    return languages[0]


def _index(page: Template, settings: Settings, examples: Examples, site: str, lang: str) -> str:
    """Raises: UnknownSite."""
    chosen = settings.site(site)
    languages = chosen.languages
    links = [_language_link(site, other, other == lang) for other in languages] if len(languages) > 1 else []
    return page.substitute(
        site=escape(site),
        lang=escape(lang),
        dir="rtl" if lang.partition("-")[0] in RIGHT_TO_LEFT else "ltr",
        title=escape(chosen.title or site),
        languages="".join(links),
        examples=escape("\n".join((chosen.chat.examples or examples.get(site, {})).get(lang, ()))),
    )


def _language_link(site: str, lang: str, current: bool) -> str:
    mark = ' aria-current="true"' if current else ""
    site, lang = escape(site), escape(lang)
    return f'<li><a href="?site={site}&amp;lang={lang}" hreflang="{lang}" lang="{lang}"{mark}>{lang}</a></li>'


def sample_routes(site: SampleSite) -> APIRouter:
    """The rendered site; reads its assets."""
    router = APIRouter(prefix=MOUNT, include_in_schema=False)
    add_assets(router, DEMO / "assets", "/assets")

    @router.get("/{path:path}")
    @bounded("memory")
    async def page(path: str) -> Response:
        html = render_path(site, path, CHAT_SCRIPT)
        if html is None:
            raise Problem(404, "not-found", "no such page")
        headers = {"Content-Security-Policy": CSP, "Cache-Control": "no-cache"}
        return Response(html, media_type="text/html", headers=headers)

    return router
