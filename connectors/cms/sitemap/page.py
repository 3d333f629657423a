"""A web page as a page document: what is its text, its language, its own address, and where it leads. Pure.

The text is what the page marks as `<main>`. Without that, trafilatura tells it from the frame around it; where it finds
next to nothing, as on pages of links, all of the body is taken. Scripts, navigation, consent bars and the like are left
out later, for every source alike (text/html.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from lxml import etree, html

from connectors.cms.titles import FIELD, title_of
from text.encodings import decoded

MAX_ID = 256  # characters of a page id
LITTLE = 0.25  # share of the body's text under which an extraction has lost the page
# Elements and characters of a page whose frame is told from its text: trafilatura takes the square of nested lists, and
# a page of more is mostly text.
EXTRACTED, EXTRACTED_CHARS = 10_000, 1_000_000
LANG = re.compile(r"([a-zA-Z]{2,3})((?:[-_][A-Za-z0-9]{2,8})*)")
LINKS = 2_000  # of one page


@dataclass(frozen=True)
class WebPage:
    """What one HTML document says."""

    canonical: str  # its own address, by its own word or by where it was found
    lang: str | None
    title: str
    description: str
    keywords: tuple[str, ...]
    content: str  # HTML
    links: tuple[str, ...]  # absolute, without fragments; none that it asks not to follow
    indexed: bool  # False: it asks to be left out of searches


def read_page(body: bytes, url: str, charset: str | None = None, robots_tag: str = "") -> WebPage:
    """Read an HTML document found at `url`; `robots_tag` is its header X-Robots-Tag.

    Raises:
        ValueError: there is nothing to read.
    """
    tree = _tree(decoded(body, charset, page=True))
    base = urljoin(url, next(iter(tree.xpath("//base/@href")), ""))
    meta = {str(m.get("name") or m.get("property")).lower(): m.get("content", "") for m in tree.iter("meta")}
    directives = f"{robots_tag},{meta.get('robots', '')},{meta.get('pagewire', '')}".lower()
    links = () if re.search(r"\b(nofollow|none)\b", directives) else tuple(islice(_links(tree, base), LINKS))
    said = _first(tree, "//link[contains(concat(' ', @rel, ' '), ' canonical ')]/@href")
    return WebPage(
        canonical=normal(urljoin(base, said)) if said else normal(url),
        lang=_language(tree, base, url),
        title=title_of(tree),
        description=_text(meta.get("description") or meta.get("og:description", "")),
        keywords=tuple(filter(None, map(_text, meta.get("keywords", "").split(","))))[:1_000],
        content=_content(tree),
        links=links,
        indexed=re.search(r"\b(noindex|none)\b", directives) is None,
    )


def page_id(url: str) -> str:
    """The path and the query: what stays when a site moves to another host or to https."""
    parts = urlsplit(url)
    found = parts.path + (f"?{parts.query}" if parts.query else "")
    if len(found) <= MAX_ID:
        return found
    digest = blake2b(found.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{found[: MAX_ID - 17]}!{digest}"


def normal(url: str) -> str:
    """One spelling for the same address: no fragment, host in lower case, no spaces, a path. Raises: ValueError."""
    parts = urlsplit(url.strip())
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = f":{parts.port}" if parts.port not in (None, default) else ""
    keep = "/%:@!$&'()*+,;=~-._?"
    return urlunsplit(
        (parts.scheme.lower(), host + port, quote(parts.path or "/", safe=keep), quote(parts.query, safe=keep), "")
    )


def language_of(tag: str | None, languages: tuple[str, ...]) -> str | None:
    """A site's own language for a tag such as `de-AT`, else the tag as we write it; None for what is no language."""
    match = LANG.fullmatch((tag or "").strip())
    if match is None:
        return None
    primary = match[1].lower()
    whole = primary + match[2].replace("_", "-")
    for own in languages:
        if own.lower() == whole.lower():
            return own
    return primary if primary in languages else whole


def _tree(text: str) -> Any:
    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
    try:
        tree = html.document_fromstring(text.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as err:
        raise ValueError(f"no HTML: {err}") from None
    return tree


def _content(tree: Any) -> str:
    mains = tree.xpath("//main | //*[@role='main']")
    if len(mains) == 1 and _words(mains[0]):
        return _inner(mains[0])
    bodies = tree.xpath("//body")
    if not bodies:
        return ""
    found = _extracted(tree)
    if found is not None and len(_words(found)) >= LITTLE * len(_words(bodies[0])):
        return _inner(found)
    return _inner(bodies[0])


def _extracted(tree: Any) -> Any:
    """The body of trafilatura's own document; None when it finds none, or would take long to."""
    from trafilatura import extract  # 0.4 s

    source = html.tostring(tree)
    if len(source) > EXTRACTED_CHARS or sum(1 for _ in islice(tree.iter(), EXTRACTED + 1)) > EXTRACTED:
        return None
    try:
        text = extract(
            html.fromstring(source),
            output_format="html",
            include_links=True,
            include_tables=True,
            include_formatting=True,
            include_comments=False,
            favor_precision=True,
            deduplicate=False,
        )
    except (etree.LxmlError, ValueError, RecursionError):
        return None
    bodies = html.document_fromstring(text).xpath("//body") if text else []
    return bodies[0] if bodies else None


def _words(element: Any) -> str:
    """The text that is read, without scripts and the frame."""
    texts = element.xpath(
        ".//text()[not(ancestor::script or ancestor::style or ancestor::nav or ancestor::noscript or ancestor::header "
        "or ancestor::footer)]"
    )
    return " ".join("".join(texts).split())


def _inner(element: Any) -> str:
    return "".join(
        [element.text or "", *(html.tostring(child, encoding="unicode") for child in element if child.tag is not None)]
    ).strip()


def _language(tree: Any, base: str, url: str) -> str | None:
    said = tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang") or tree.get("xml:lang")
    if said:
        return str(said)
    for link in tree.xpath("//link[@hreflang and @href]"):
        try:
            if normal(urljoin(base, link.get("href"))) == normal(url) and link.get("hreflang") != "x-default":
                return str(link.get("hreflang"))
        except ValueError:
            continue
    return None


def _links(tree: Any, base: str) -> Iterator[str]:
    for anchor in tree.iter("a"):
        href = (anchor.get("href") or "").strip()
        if not href or href.startswith("#") or "nofollow" in (anchor.get("rel") or "").lower():
            continue
        try:
            there = urljoin(base, href)
            if urlsplit(there).scheme in ("http", "https"):
                yield normal(there)
        except ValueError:
            continue


def _first(tree: Any, path: str) -> str:
    return str(next(iter(tree.xpath(path)), "")).strip()


def _text(value: str) -> str:
    return " ".join(value.split())[:FIELD]
