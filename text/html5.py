"""Normalizes HTML as browsers parse it, so that other parsers build the same tree.

libxml2, the parser of lxml and BeautifulSoup, follows HTML 4: it ignores a `</header>` while a `div` in it is open, so
that the whole page is in the header. lexbor follows HTML 5, but may take quadratic time for malicious pages. So a page
with very many tags or attributes is left to libxml2.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

TAGS = 20_000  # of a page; if all are nested, they take half a second
ATTRIBUTES = 5_000  # of a tag; each is compared with all previous ones
ROOTS = 8  # `html` and `body` tags, whose attributes are merged
# Most elements from unclosed formatting elements, which are reopened in each later block.
REOPENED = 5_000_000
_FORMATTING = re.compile(r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>]", re.IGNORECASE)
_NOSCRIPT = re.compile(r"</?noscript(?=[\s/>])", re.IGNORECASE)
_CELL = re.compile(r"<t[dh][\s/>]", re.IGNORECASE)
_ROOT = re.compile(r"<(?:html|body)[\s/]", re.IGNORECASE)
_TAG = re.compile("<[a-zA-Z](?:[^>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+")


def well_formed(text: str) -> str:
    """The page with all end tags, as browsers see them.

    Returned unchanged if parsing may take too long, or if cells are outside of tables: browsers ignore their tags, and
    the words of cells would run together.
    """
    if not _is_modest(text):
        return text
    # Browsers run scripts and skip `noscript`; without this, an image in it would end the head.
    found = LexborHTMLParser(_NOSCRIPT.sub(_as_template, text)).html or ""
    return found if len(_CELL.findall(found)) >= len(_CELL.findall(text)) else text


def _as_template(tag: re.Match[str]) -> str:
    return "</template" if tag[0].startswith("</") else "<template data-noscript"


def _is_modest(text: str) -> bool:
    tags = text.count("<")
    if tags > TAGS or len(_FORMATTING.findall(text)) * tags > REOPENED or len(_ROOT.findall(text)) > ROOTS:
        return False
    long = (tag[0] for tag in _TAG.finditer(text) if tag.end() - tag.start() > 2 * ATTRIBUTES)
    return all(sum(map(tag.count, " \t\n\r\f/=")) <= ATTRIBUTES for tag in long)
