"""Pages as Markdown and llms.txt for assistants, under the site's own address.

    /library.md, /library/?format=md, Accept: text/markdown ─▶ Wagtail's answer for the page ─▶ its text from Pagewire
    /llms.txt ─────────────────────────────────────────────────────────▶ the list from Pagewire

Wagtail and the other middlewares decide first whether a visitor gets the page. Where Pagewire has nothing or does not
answer, the site answers as always.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from wagtail.models import Site

from pagewire_wagtail.conf import Pagewire, WrongSetting, pagewire
from pagewire_wagtail.public import Page, key_of
from pagewire_wagtail.wire import Away, Given, get

SUFFIX = ".md"
FRESH = 10  # seconds before a kept answer is asked for again, conditionally
KEPT = 3600  # seconds that an answer is kept
PAUSE = 30  # seconds in which a Pagewire that is away is not asked again
AWAY = "pagewire-away"
LANG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


class MarkdownMiddleware:
    """`MIDDLEWARE = ["pagewire_wagtail.markdown.MarkdownMiddleware", ...]`, the first one: it reads the address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._list(request) if request.path_info == "/llms.txt" else None
        if response is None:
            _without_suffix(request)
            response = self._get_response(request)
        if response.get("Content-Type", "").startswith("text/markdown") and "ETag" in response:
            return get_conditional_response(request, etag=response["ETag"], response=response) or response
        return response

    def process_template_response(self, request: HttpRequest, response: Any) -> Any:
        """Give a page's answer another content, before its template is rendered."""
        page, setting = (response.context_data or {}).get("page"), _setting()
        if setting is None or not isinstance(page, Page) or not _is_public(request, response, page):
            return response
        asked = request.GET.get("format") == "md"
        if not asked:
            patch_vary_headers(response, ["Accept"])
        if asked or _prefers_markdown(request):
            page_id, lang = key_of(page)
            body = _fetched(setting, f"pages/{quote(page_id, safe='')}{SUFFIX}?{urlencode({'lang': lang})}")
            if body is not None:
                response.content = body  # so Django does not render it
                _describe(response, body)
                response["Link"] = f'<{page.get_full_url(request)}>; rel="canonical"'
        return response

    @staticmethod
    def _list(request: HttpRequest) -> HttpResponse | None:
        setting, site = _setting(), Site.find_for_request(request)
        if setting is None or site is None or request.method not in ("GET", "HEAD"):
            return None
        query, lang = {"below": f"{site.root_url}/"}, request.GET.get("lang", "")
        if LANG.fullmatch(lang):
            query["lang"] = lang
        body = _fetched(setting, f"llms.txt?{urlencode(query)}")
        return None if body is None else _describe(HttpResponse(body), body)


def _setting() -> Pagewire | None:
    try:
        return pagewire()
    except WrongSetting:
        return None  # `manage.py check` reports it


def _without_suffix(request: HttpRequest) -> None:
    """`/library.md` is `/library/?format=md` from here on."""
    if request.method in ("GET", "HEAD") and re.search(r"[^/]\.md\Z", request.path_info):
        request.path_info = f"{request.path_info.removesuffix(SUFFIX)}/"
        request.path = f"{request.path.removesuffix(SUFFIX)}/"
        query = request.META.get("QUERY_STRING", "")
        request.META["QUERY_STRING"] = f"{query}&format=md" if query else "format=md"


def _is_public(request: HttpRequest, response: Any, page: Any) -> bool:
    """Whether the answer is the page itself, as everybody gets it: no form, no preview, no route below."""
    return (
        response.status_code == 200
        and request.method in ("GET", "HEAD")
        and not getattr(request, "is_preview", False)
        and urlsplit(page.get_url(request) or "").path == request.path
        and not page.get_view_restrictions()
    )


def _prefers_markdown(request: HttpRequest) -> bool:
    """Whether Markdown is accepted by name, and at least as much as HTML."""
    weights = {f"{one.main_type}/{one.sub_type}": _weight(one.params.get("q", "1")) for one in request.accepted_types}
    markdown = weights.get("text/markdown", 0.0)
    return 0 < markdown >= weights.get("text/html", 0.0)


def _weight(said: str | bytes) -> float:
    try:
        return float(said)
    except ValueError:
        return 0.0


def _describe(response: HttpResponse, body: str) -> HttpResponse:
    response["Content-Type"] = "text/markdown; charset=utf-8"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-cache"
    response["ETag"] = f'"{sha256(body.encode()).hexdigest()[:20]}"'
    return response


def _fetched(setting: Pagewire, path: str) -> str | None:
    """Pagewire's answer, kept for a while; None: it has none, or is away."""
    key = f"pagewire-md-{sha256(f'{setting.url} {setting.site} {path}'.encode()).hexdigest()}"
    at, kept = cache.get(key) or (0.0, None)
    if kept is not None and at > time.time() - FRESH:
        return str(kept.body)
    if cache.get(AWAY):
        return None
    try:
        given: Given | None = get(setting, path, kept)
    except Away:
        cache.set(AWAY, True, PAUSE)
        return None
    if given is None:
        cache.delete(key)
        return None
    cache.set(key, (time.time(), given), KEPT)
    return given.body
