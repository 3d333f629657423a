"""Fields of page documents, from what HTML documents and files say: titles, languages, media types."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree, html

FIELD = 20_000  # characters of a short field
_SEPARATOR = " ?(?:[|·•»«–—]| - |::) ?"  # between a page's title and its site's name, both in single spaces
LANG = re.compile(r"([a-zA-Z]{2,3})((?:[-_][A-Za-z0-9]{2,8})*)")
# Not read here: the page gets the file as an attachment, which the ingest workers read.
OFFICE = {
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".eml": "message/rfc822",
    ".txt": "text/plain",
    ".csv": "text/csv",
}


def title_of(tree: Any) -> str:
    """The title of an HTML document: its heading if the title contains it (`Library - Town of X`), else its title
    without the site's name, else its first heading, else empty.
    """
    site = _meta(tree, "og:site_name")
    title = _cut(_spaced(next(iter(tree.xpath("//head/title/text()")), "")) or _meta(tree, "og:title"), site)
    headings = [found for found in (_spaced(heading.text_content()) for heading in tree.xpath("//h1")) if found]
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
    return _spaced(next(iter(tree.xpath("//meta[@property=$name or @name=$name]/@content", name=name)), ""))


def _spaced(value: object) -> str:
    return " ".join(str(value).split())[:FIELD]


def language_of(tag: str | None, languages: tuple[str, ...]) -> str | None:
    """The site's language for a tag such as `de-AT`, else the normalized tag; None: it is no language."""
    match = LANG.fullmatch((tag or "").strip())
    if match is None:
        return None
    primary = match[1].lower()
    whole = primary + match[2].replace("_", "-")
    for own in languages:
        if own.lower() == whole.lower():
            return own
    return primary if primary in languages else whole
