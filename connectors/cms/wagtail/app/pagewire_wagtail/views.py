"""Two views for Pagewire only, with the same signatures as deliveries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from pagewire_wagtail import survey
from pagewire_wagtail.conf import Pagewire, WrongSetting, pagewire
from pagewire_wagtail.models import milliseconds
from pagewire_wagtail.signing import BadSignature, verify

MOST_PAGES = 50  # of a request
LIMIT = 4 * 1024 * 1024  # characters of content in one answer, before the last page


@never_cache
@require_GET
def inventory(request: HttpRequest) -> HttpResponse:
    """All public pages after the primary key `after`."""
    return _answer(request, "inventory", lambda setting: survey.inventory(setting, request.GET.get("after", "")))


@never_cache
@require_GET
def pages(request: HttpRequest) -> HttpResponse:
    """Pages by `page=LANG:ID`, which may be repeated."""
    wanted = [(id, lang) for lang, _, id in (asked.partition(":") for asked in request.GET.getlist("page"))]
    if len(wanted) > MOST_PAGES:
        return _problem(400, "too-many", f"the limit is {MOST_PAGES} pages")
    return _answer(request, "pages", lambda setting: survey.documents(setting, wanted, LIMIT))


def _answer(request: HttpRequest, name: str, found: Callable[[Pagewire], Iterator[dict[str, Any]]]) -> HttpResponse:
    """NDJSON: the current time, then the lines of `found`. Not streamed, so that an error never truncates a list."""
    try:
        setting = pagewire()
    except WrongSetting:
        setting = None
    if setting is None:
        return _problem(404, "not-configured", "PAGEWIRE is not set here; see manage.py check")
    query = request.META.get("QUERY_STRING", "")
    try:
        verify(request.headers, setting.keys, f"GET {name}?{query}".encode())
    except BadSignature as err:
        return _problem(401, "bad-signature", str(err))
    try:
        lines = [{"now": milliseconds()}, *found(setting)]
    except (ValueError, ValidationError):
        return _problem(400, "bad-query", "no such key")
    return HttpResponse("".join(json.dumps(line) + "\n" for line in lines), content_type="application/x-ndjson")


def _problem(status: int, code: str, detail: str) -> HttpResponse:
    body = {"status": status, "code": code, "detail": detail}
    return JsonResponse(body, status=status, content_type="application/problem+json")
