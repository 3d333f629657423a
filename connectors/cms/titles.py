"""Finds the title of a page without one in its metadata."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree, html

FIELD = 20_000  # characters of a short field
_SEPARATOR = " ?(?:[|·•»«–—]| - |::) ?"  # between a page's title and its site's name, both in single spaces


def title_of(tree: Any) -> str:
    """The title of an HTML document: its heading if the title contains it (`Library - Town of X`), else its title
    without the site's name, else its first heading, else empty.
    """
    site = _meta(tree, "og:site_name")
    title = _cut(_text(next(iter(tree.xpath("//head/title/text()")), "")) or _meta(tree, "og:title"), site)
    headings = [found for found in (_text(heading.text_content()) for heading in tree.xpath("//h1")) if found]
    if not title:
        return headings[0] if headings else ""
    return headings[0] if len(headings) == 1 and headings[0] in title else title


def title_in(content: str) -> str:
    """The same for HTML text. Empty if it cannot be parsed."""
    try:
        return title_of(html.document_fromstring(content, parser=html.HTMLParser(no_network=True, huge_tree=False)))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return ""


def _cut(title: str, site: str) -> str:
    if not site:
        return title
    name = re.escape(site)
    return re.sub(rf"{_SEPARATOR}{name}$|^{name}{_SEPARATOR}", "", title) or title


def _meta(tree: Any, name: str) -> str:
    return _text(next(iter(tree.xpath("//meta[@property=$name or @name=$name]/@content", name=name)), ""))


def _text(value: object) -> str:
    return " ".join(str(value).split())[:FIELD]
