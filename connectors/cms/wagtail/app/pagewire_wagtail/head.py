"""Reads what a page's template tells machines in its head: JSON-LD and OpenGraph, as an anonymous visitor gets it."""

from __future__ import annotations

import logging
import re
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.template.loader import render_to_string

LONGEST = 1_000_000  # characters of a rendered page; a longer one has no head for us
MOST = 100_000  # characters of what is taken
HEAD_END = re.compile(r"</head\s*>|<body\b", re.IGNORECASE)
SAID = re.compile(
    r"<script\b[^<>]{0,500}\bld\+json\b[^<>]{0,500}>(?s:.{0,50000}?)</script\s*>"
    r"|<meta\b[^<>]{0,300}\bproperty=[\"'](?:og|article):[^<>]{0,2000}>",
    re.IGNORECASE,
)

log = logging.getLogger(__name__)


def head(page: Any, url: str) -> str:
    """HTML of it; empty if there is none, or if the template needs more than a plain request of a visitor."""
    request = _request(url)
    try:
        rendered = str(render_to_string(page.get_template(request), page.get_context(request), request))
    except Exception as err:  # noqa: BLE001  # a template raises anything, and the page is sent without its head
        log.info("pagewire: the template of page %s is not read: %s: %s", page.pk, type(err).__name__, err)
        return ""
    end = HEAD_END.search(rendered) if len(rendered) <= LONGEST else None
    said = "".join(SAID.findall(rendered[: end.start()])) if end else ""
    return said if len(said) <= MOST else ""


def _request(url: str) -> HttpRequest:
    """A visitor's GET of the address, without cookies and not logged in."""
    parts = urlsplit(url)
    request = HttpRequest()
    request.method = "GET"
    request.path = request.path_info = parts.path
    secure = parts.scheme == "https"
    request.META = {
        "HTTP_HOST": parts.netloc,
        "SERVER_NAME": parts.hostname or "",
        "SERVER_PORT": str(parts.port or (443 if secure else 80)),
        "REQUEST_METHOD": "GET",
        "wsgi.url_scheme": parts.scheme,
    }
    from django.contrib.auth.models import AnonymousUser

    request.user = AnonymousUser()
    return request
