"""HTML as browsers read it, written out again so that every parser reads the same.

libxml2, which lxml and BeautifulSoup read with, builds trees by the rules of HTML 4: it ignores a `</header>` while a
`div` in it is open, so that the whole page is in the header. lexbor builds them by those of HTML 5. They take quadratic
time on pages made for it, so a page of very many tags or attributes is left to libxml2.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

TAGS = 20_000  # of a page; when all are in one another they take half a second
ATTRIBUTES = 5_000  # of a tag; each is compared with all before it
ROOTS = 8  # tags of `html` and `body`, whose attributes go to one element
# Formatting elements that nobody closes begin again in each later block: so many times all tags, elements are made.
REOPENED = 5_000_000
_FORMATTING = re.compile(r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>]", re.IGNORECASE)
_NOSCRIPT = re.compile(r"</?noscript(?=[\s/>])", re.IGNORECASE)
_CELL = re.compile(r"<t[dh][\s/>]", re.IGNORECASE)
_ROOT = re.compile(r"<(?:html|body)[\s/]", re.IGNORECASE)
_TAG = re.compile("<[a-zA-Z](?:[^>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+")


def well_formed(text: str) -> str:
    """The same page with each end tag where a browser sees it.

    As it is where finding that may take long, and where a browser passes over the tags of cells that stand in no table:
    their words would run together.
    """
    if not _is_modest(text):
        return text
    # Browsers run scripts; a reader that does not would end the head at the picture in its `noscript`.
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
