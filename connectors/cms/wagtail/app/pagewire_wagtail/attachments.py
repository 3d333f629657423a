"""The documents that a page's content links to: files that everybody may open, as attachments of the page."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from django.apps import apps
from django.urls import Resolver404, resolve

MOST = 20  # of a page
READABLE = frozenset({"pdf", "docx", "pptx", "xlsx", "odt", "txt", "eml"})
HREF = re.compile(r"""<a\s[^<>]{0,2000}?\bhref=["']([^"'<>]{1,2000})["']""", re.IGNORECASE)


def attachments(content: str, page_url: str) -> list[dict[str, str]]:
    """The documents, in the order of their links, 20 at most; none if the site has no Wagtail documents."""
    if not apps.is_installed("wagtail.documents"):
        return []
    found: dict[Any, dict[str, str]] = {}
    for href in dict.fromkeys(map(unescape, HREF.findall(content))):
        try:
            url = urljoin(page_url, href)
            document = _document(url, page_url)
        except ValueError:  # an editor's address is none
            continue
        if document is not None and document.file_extension.lower() in READABLE and _is_public(document):
            found.setdefault(document.pk, {"url": url, "title": document.title, "media_type": document.content_type})
        if len(found) == MOST:
            break
    return list(found.values())


def _document(url: str, page_url: str) -> Any | None:
    """The document at an address of this site: served by Wagtail, or directly by the storage of its file."""
    from wagtail.documents import get_document_model

    model = get_document_model()
    parts = urlsplit(url)
    if parts.netloc == urlsplit(page_url).netloc:
        try:
            match = resolve(parts.path)
        except Resolver404:
            match = None
        if match is not None and match.url_name == "wagtaildocs_serve":
            return model.objects.filter(pk=match.args[0]).first()
    storage = model._meta.get_field("file").storage
    base = urljoin(page_url, getattr(storage, "base_url", None) or "")
    if base != page_url and url.startswith(base):
        return model.objects.filter(file=unquote(url.removeprefix(base)).partition("?")[0]).first()
    return None


def _is_public(document: Any) -> bool:
    return not document.collection.get_view_restrictions()
