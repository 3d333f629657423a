"""Converts a page to Pagewire's document: five searchable fields, rendered as visitors see them.

A page model can override fields: `def pagewire_document(self)` returns a dictionary with some of `title`, `name`,
`description`, `keywords`, `content`, `url`, `attachments`, `labels`, or None to exclude the page.
`pagewire_document = None` on the class excludes every page of that model.

The documents that its content links to, files that everybody may open, are attachments of the page.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from hashlib import sha256
from html import unescape
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from django.apps import apps
from django.db import models
from django.urls import Resolver404, resolve
from django.utils import timezone, translation
from django.utils.html import linebreaks
from taggit.managers import TaggableManager
from wagtail.blocks import StreamValue
from wagtail.fields import RichTextField, StreamField
from wagtail.rich_text import expand_db_html

from pagewire_wagtail.head import head
from pagewire_wagtail.public import Page, key_of

OVERRIDABLE = frozenset({"url", "name", "title", "description", "keywords", "content", "attachments", "labels"})
MAX_LABELS = 200  # of a page; Pagewire refuses more
MOST_ATTACHMENTS = 20  # of a page
READABLE = frozenset({"pdf", "docx", "pptx", "xlsx", "odt", "txt", "eml"})
HREF = re.compile(r"""<a\s[^<>]{0,2000}?\bhref=["']([^"'<>]{1,2000})["']""", re.IGNORECASE)


class Unrenderable(Exception):
    """The page's own code or templates failed."""


def document(page: Any | None) -> dict[str, Any] | None:
    """The page's document without a revision; None: it is excluded, or has no address.

    Args:
        page: the specific page, as visitors see it now; None if there is none.

    Raises:
        Unrenderable: an error of a template, a block or `pagewire_document`.
    """
    if page is None:
        return None
    page_id, lang = key_of(page)
    try:
        with translation.override(page.locale.language_code):
            url = page.full_url
            own = page.pagewire_document() if hasattr(page, "pagewire_document") else {}
            if own is None or not url:
                return None
            if unknown := own.keys() - OVERRIDABLE:
                raise ValueError(f"pagewire_document: no such field: {', '.join(sorted(unknown))}")
            found = {
                "id": page_id,
                "lang": lang,
                "url": url,
                "name": getattr(page, "seo_title", "") or page.title,
                "title": page.title,
                "description": getattr(page, "search_description", ""),
                "keywords": keywords(page) if "keywords" not in own else (),
                **({"labels": tags} if (tags := labels(page)) and "labels" not in own else {}),
                "content": content(page) + head(page, url) if "content" not in own else "",
                "changed_at": _aware(page.last_published_at),
            }
            found |= own
            if "attachments" not in own and (files := attachments(str(found["content"]), url)):
                found["attachments"] = files
            # Convert to JSON here, so that lazy translations are evaluated in the page's language.
            return json.loads(json.dumps(found, default=str))
    except Exception as err:
        raise Unrenderable(f"{type(err).__name__}: {err}"[:1_000]) from err


def digest(document: dict[str, Any]) -> str:
    """A hash of the document, to detect changes."""
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def content(page: Any) -> str:
    """HTML of the page's fields: its search fields, or else its rich text and streams."""
    names = _searchable(page) or [
        f.name for f in page._meta.get_fields() if isinstance(f, (RichTextField, StreamField))
    ]
    return "\n".join(filter(None, (_html(page, name) for name in names)))


def keywords(page: Any) -> list[str]:
    """The page's tags."""
    return sorted({tag for tags in _tags(page).values() for tag in tags})


def labels(page: Any) -> dict[str, list[str]]:
    """The page's tags by their field: `{"tags": ["fees"]}`."""
    found, left = {}, MAX_LABELS
    for name, tags in _tags(page).items():
        if kept := tags[:left]:
            found[name] = kept
        left -= len(kept)
    return found


def _tags(page: Any) -> dict[str, list[str]]:
    fields = [field.name for field in page._meta.get_fields() if isinstance(field, TaggableManager)]
    return {name: sorted({str(tag) for tag in getattr(page, name).all()}) for name in fields}


def _searchable(page: Any) -> list[str]:
    common = {field.field_name for field in Page.get_searchable_search_fields()}
    names = dict.fromkeys(field.field_name for field in page.get_searchable_search_fields())
    order = [field.name for field in page._meta.get_fields()]
    own = [name for name in names if name not in common]
    return sorted(own, key=lambda name: order.index(name) if name in order else len(order))


def _html(page: Any, name: str) -> str:
    value = getattr(page, name)
    field = next((field for field in page._meta.get_fields() if field.name == name), None)
    if isinstance(value, StreamValue):
        return str(value.render_as_block({"page": page, "self": page}))
    if isinstance(field, RichTextField):
        return str(expand_db_html(value or ""))
    if isinstance(field, models.Field) and field.is_relation:
        return ""
    if callable(value):
        value = value()
    if hasattr(value, "__html__"):
        return str(value.__html__())
    return linebreaks(str(value), autoescape=True) if value not in (None, "") else ""


def _aware(moment: datetime | None) -> str | None:
    """ISO 8601 with an offset, even if USE_TZ is off."""
    if moment is None:
        return None
    return (timezone.make_aware(moment) if timezone.is_naive(moment) else moment).isoformat()


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
        if len(found) == MOST_ATTACHMENTS:
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
