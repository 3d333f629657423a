"""The built-in chat page at `/`, and the script that puts the chat on anybody's page (`/widget.js`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Annotated

from fastapi import APIRouter, Query, Response

from gateway.edge.edge import TheEdge
from gateway.site.assets import add_assets
from schemas.base import language_tag
from wiring.settings import Settings

# The script builds its page with createElement and constructed style sheets, so nothing inline is needed.
CSP = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "require-trusted-types-for 'script'"
)
# Written from right to left (CLDR), of the languages a site is likely to have.
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur", "yi"})

Examples = Mapping[str, Mapping[str, Sequence[str]]]


def routes(examples: Examples) -> APIRouter:
    """Reads the files. `examples`: questions to begin with, by site and language, of sites whose settings have none."""
    router = APIRouter(include_in_schema=False)
    folder = files("gateway.site") / "static"
    page = Template((folder / "index.html").read_text("utf-8"))
    add_assets(router, folder)

    @router.get("/")
    async def index(
        edge: TheEdge,
        site: Annotated[str | None, Query(description="Default: the first one.")] = None,
        lang: Annotated[str | None, Query(description="Default: the site's first.")] = None,
    ) -> Response:
        html = _index(page, edge.settings, examples, site or next(iter(edge.settings.sites)), lang)
        headers = {"Content-Security-Policy": CSP, "Cache-Control": "no-cache"}
        return Response(html, media_type="text/html", headers=headers)

    return router


def _index(page: Template, settings: Settings, examples: Examples, site: str, lang: str | None) -> str:
    """Raises: UnknownSite."""
    chosen = settings.site(site)
    languages = chosen.languages
    lang = language_tag(lang or "")
    if lang not in languages:
        lang = languages[0]
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
