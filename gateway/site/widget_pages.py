"""The live page of examples at `/widget/`: the chat on host pages of several kinds, and its attributes and events.

Each host page has the strictest Content-Security-Policy, so what works here works under a site's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from gateway.edge.bounds import bounded
from gateway.edge.edge import TheEdge
from gateway.edge.problems import Problem
from gateway.site.pages import RIGHT_TO_LEFT

CSP = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'"
)
OVERVIEW_CSP = "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; frame-ancestors 'self'"

# Name -> what it does. docs/howto/embed.md has the same; a test compares them, and both with the widget's source.
ATTRIBUTES = {
    "site": "The site's id in pagewire.yaml. Required.",
    "lang": "Language of the chat and of its answers; default: the page's.",
    "heading": "Whom one asks, such as the town's name.",
    "intro": "The sentence before the first question.",
    "examples": "Questions to begin with, one a line.",
    "disclaimer": "The line below the field.",
    "privacy": "Address of your privacy notice; linked beside the disclaimer.",
    "theme": "light or dark; default: as the visitor's device.",
    "accent": "Your colour, any that CSS knows; what is written on it and in it is made readable.",
    "position": "start: the other corner.",
    "launcher": "none: no round button; open it by its method open().",
    "webmcp": "An assistant in the browser may search and ask as the visitor does.",
    "labels": "Only pages with these labels are searched and answered from: kind:form, department:tax.",
    "mode": "page: a part of the page instead of a panel in its corner.",
    "gateway": "Address of the gateway; default: where the script came from.",
}
EVENTS = {
    "pagewire:ready": "site, lang: the chat is on the page.",
    "pagewire:open": "The panel was opened.",
    "pagewire:close": "The panel was closed.",
    "pagewire:question": "question",
    "pagewire:answer": "request_id, conversation_id, question, stopped: an answer has ended.",
    "pagewire:feedback": "request_id, rating (up or down), comment",
    "pagewire:error": "code, message: what the visitor was told.",
}


@dataclass(frozen=True)
class HostPage:
    """A host page; `attributes` are those of the script tag beyond site, lang and heading."""

    title: str
    about: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    lang: str | None = None  # default: the site's first
    small: bool = False  # framed 320 pixels wide


EXAMPLES = {
    "light": HostPage("A light page", "The chat keeps to light colours.", {"theme": "light"}),
    "dark": HostPage("A dark page", "The chat keeps to dark colours.", {"theme": "dark"}),
    "brand": HostPage("A page in its own colour", "Text on and in the colour is made readable.", {"accent": "#a3195b"}),
    "narrow": HostPage(
        "A narrow page",
        "320 pixels wide, the panel covers the page and keeps the focus.",
        {"theme": "light"},
        small=True,
    ),
    "rtl": HostPage("A page written from right to left", "Everything is mirrored.", {"theme": "light"}, lang="he"),
    "hostile": HostPage("A page with wild style sheets", "None of them reaches the chat.", {"theme": "light"}),
}
_PROSE: dict[str, tuple[str, tuple[str, ...]]] = {
    "he": (
        "ספרייה עירונית",
        (
            "הספרייה העירונית פתוחה בימים שלישי עד שבת. כרטיס קורא עולה שמונה עשר אירו לשנה.",
            "ילדים ובני נוער עד גיל שמונה עשרה קוראים בחינם.",
        ),
    ),
    "en": (
        "Town library",
        (
            "The town library is open from Tuesday to Saturday. A library card costs eighteen euros a year.",
            "Children and young people under eighteen read for free.",
        ),
    ),
}
Site = Annotated[str | None, Query(description="Default: the first one.")]


def routes() -> APIRouter:
    """Reads the files."""
    router = APIRouter(prefix="/widget", include_in_schema=False)
    folder = files("gateway.site") / "static"
    overview = Template((folder / "examples.html").read_text("utf-8"))
    host = Template((folder / "example.html").read_text("utf-8"))

    @router.get("/")
    @bounded("memory")
    async def index(edge: TheEdge, request: Request, site: Site = None) -> Response:
        chosen = site or next(iter(edge.settings.sites))
        html = overview.substitute(
            gateway=escape(str(request.base_url).rstrip("/")),
            site=escape(chosen),
            lang=escape(edge.settings.site(chosen).languages[0]),
            examples="\n".join(_card(name, example, chosen) for name, example in EXAMPLES.items()),
            attributes=_rows(ATTRIBUTES),
            events=_rows(EVENTS),
        )
        return _page(html, OVERVIEW_CSP)

    @router.get("/{name}")
    @bounded("memory")
    async def example(name: str, edge: TheEdge, site: Site = None) -> Response:
        if name not in EXAMPLES:
            raise Problem(404, "not-found", "no such example")
        chosen = site or next(iter(edge.settings.sites))
        settings = edge.settings.site(chosen)
        lang = EXAMPLES[name].lang or settings.languages[0]
        return _page(_host_page(host, name, chosen, settings.title or chosen, lang), CSP)

    return router


def _page(html: str, csp: str) -> Response:
    headers = {"Content-Security-Policy": csp, "Cache-Control": "no-cache"}
    return Response(html, media_type="text/html", headers=headers)


def _host_page(template: Template, name: str, site: str, town: str, lang: str) -> str:
    example = EXAMPLES[name]
    prose = lang if lang in _PROSE else "en"
    heading, paragraphs = _PROSE[prose]
    attributes = {"site": site, "lang": lang, "heading": town, **example.attributes}
    return template.substitute(
        name=name,
        lang=prose,
        dir="rtl" if prose in RIGHT_TO_LEFT else "ltr",
        title=escape(example.title),
        town=escape(town),
        heading=escape(heading),
        text="\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs),
        attributes=_tag(attributes),
    )


def _card(name: str, example: HostPage, site: str) -> str:
    address, title = escape(f"{name}?site={site}"), escape(example.title)
    tag = escape(_tag({"site": site, **example.attributes}))
    size = ' class="small"' if example.small else ""
    return (
        f'<section><h3><a href="{address}">{title}</a></h3><p>{escape(example.about)}</p>'
        f"<pre><code>&lt;script src=… {tag}&gt;</code></pre>"
        f'<iframe{size} src="{address}" title="{title}" loading="lazy"></iframe></section>'
    )


def _tag(attributes: Mapping[str, str]) -> str:
    return " ".join(f'data-{name}="{escape(value)}"' for name, value in attributes.items())


def _rows(lines: Mapping[str, str]) -> str:
    return "\n".join(f"<tr><td><code>{name}</code></td><td>{escape(about)}</td></tr>" for name, about in lines.items())
