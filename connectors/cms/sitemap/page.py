"""Reads a web page: its language, canonical address and links. Pure.

content.py finds the content. Scripts, navigation, consent bars and the like are removed later, for every source
(text/html.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from itertools import islice
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from lxml import etree, html

from connectors.cms.page_fields import FIELD, title_of
from connectors.cms.sitemap.content import content_of
from pipelines.ingest.documents.structured_data import structured_data
from schemas.page import PageMetadata
from text.encodings import decoded
from text.html5 import well_formed
from text.html_tree import MAX_TAGS, first_tags, struck_classes
from text.loss import LeftOutText

MAX_ID = 256  # characters of a page id
VALUED = frozenset({"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"})
REFRESH = re.compile(r"\s*[0-5](?:\.[0-9]*)?\s*[;,]\s*url\s*=(.+)", re.IGNORECASE | re.DOTALL)  # within five seconds
LINKS = 2_000  # of one page
TAGS = 2 * MAX_TAGS  # read of one page, navigation included; the receipt says where the content was cut


@dataclass(frozen=True)
class WebPage:
    """The parts of an HTML document."""

    canonical: str  # its canonical address, by default where it was found
    base: str  # which links in `content` are relative to
    lang: str | None
    title: str
    description: str
    keywords: tuple[str, ...]
    content: str  # HTML
    left_out: tuple[LeftOutText, ...]  # what its visitors see beside that
    links: tuple[str, ...]  # absolute, without fragments; none that it asks not to follow
    indexed: bool  # False: it asks to be left out of searches
    until: datetime | None = None  # when it asks to be left out from
    metadata: PageMetadata | None = None  # what it says of itself for machines


def read_page(body: bytes, url: str, charset: str | None = None, robots_tag: str = "") -> WebPage:
    """Read an HTML document found at `url`; `robots_tag` is its header X-Robots-Tag.

    Raises:
        ValueError: there is nothing to read.
    """
    tree = _tree(decoded(body, charset, page=True))
    base = urljoin(url, next(iter(tree.xpath("//base/@href")), ""))
    metas = [(str(m.get("name") or m.get("property")).lower(), m.get("content", "")) for m in tree.iter("meta")]
    meta = dict(metas)
    asked = [*robots_tag.split("\n"), *(content for name, content in metas if name in ("robots", "pagewire"))]
    robots, until = _directives(asked)
    links = () if robots & {"nofollow", "none"} else tuple(islice(_links(tree, base), LINKS))
    metadata = structured_data(tree)  # before `content_of` takes parts out of the tree
    _strike(tree)
    content, left_out = content_of(tree)
    said = _refresh(tree) or next(filter(None, map(_canonical, tree.iter("link"))), "")
    return WebPage(
        base=base,
        canonical=_as_safe(normal(urljoin(base, said)), url) if said else normal(url),
        lang=_language(tree, base, url),
        title=title_of(tree),
        description=_text(meta.get("description") or meta.get("og:description", "")),
        keywords=tuple(filter(None, map(_text, meta.get("keywords", "").split(","))))[:1_000],
        content=content,
        left_out=left_out,
        links=links,
        indexed=not robots & {"noindex", "none"},
        until=until,
        metadata=metadata,
    )


def _strike(tree: Any) -> None:
    """Write into elements what the page's own style sheets strike through, since the content has no style sheets."""
    struck = frozenset[str]().union(*(struck_classes(style.text or "") for style in tree.iter("style")))
    for element in tree.iter(etree.Element) if struck else ():
        if not struck.isdisjoint((element.get("class") or "").split()):
            element.set("style", f"{element.get('style') or ''};text-decoration:line-through")


def links_in(page: WebPage) -> Iterator[tuple[str, str]]:
    """The links in a page's content: those of `links`, each with its words."""
    if not page.content:
        return
    followed = set(page.links)
    for anchor in html.fragment_fromstring(page.content, create_parent="div").iter("a"):
        with suppress(ValueError):
            there = normal(urljoin(page.base, (anchor.get("href") or "").strip()))
            if there in followed:
                yield there, _text(" ".join(anchor.itertext()))


def _directives(lines: list[str]) -> tuple[set[str], datetime | None]:
    """The directives for all robots and for ours, and the earliest time of `unavailable_after`. The strictest wins.

    In a line of X-Robots-Tag, `otherbot: noindex, nofollow` is for another robot; `max-image-preview: none` is no
    `none`.
    """
    asked: set[str] = set()
    times: list[datetime] = []
    for line in map(str.lower, lines):
        whose = "robots"
        parts = line.split(",")
        for number, part in enumerate(parts):
            name, colon, value = (piece.strip() for piece in part.partition(":"))
            if colon and name not in VALUED:
                whose, name = name, value.partition(":")[0].strip()
            if whose in ("robots", "pagewire"):
                asked.update(name.split())
                if "unavailable_after:" in part.replace(" ", ""):
                    said = part.partition("unavailable_after")[2].lstrip(" :")
                    times += filter(None, [_time(said) or _time(",".join([said, *parts[number + 1 : number + 2]]))])
    return asked, min(times, default=None)


def _time(said: str) -> datetime | None:
    """A time as ISO 8601, RFC 822 or RFC 850 write it, by default of UTC."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, OverflowError):
            time = read(said.strip().upper())
            return time if time.tzinfo else time.replace(tzinfo=UTC)
    return None


def _canonical(link: Any) -> str:
    is_one = "canonical" in (link.get("rel") or "").lower().split()
    return (link.get("href") or "").strip() if is_one else ""


def _refresh(tree: Any) -> str:
    """The target of a page's immediate redirect; empty without one."""
    for meta in tree.iter("meta"):
        match = REFRESH.fullmatch(meta.get("content") or "")
        if match is None or (meta.get("http-equiv") or "").lower() != "refresh":
            continue
        if next(meta.iterancestors("noscript", "template"), None) is None:
            return match[1].strip("\"' ")
    return ""


def _as_safe(address: str, url: str) -> str:
    """The https address, where a page found by https has a canonical http address on the same site."""
    here, there = urlsplit(url), urlsplit(address)
    safe = here.scheme == "https" and there.scheme == "http" and here.netloc.lower() == there.netloc
    return urlunsplit(there._replace(scheme="https")) if safe else address


def page_id(url: str) -> str:
    """Path and query, which stay the same when a site moves to another host or to https."""
    parts = urlsplit(url)
    found = parts.path + (f"?{parts.query}" if parts.query else "")
    if len(found) <= MAX_ID:
        return found
    digest = blake2b(found.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{found[: MAX_ID - 17]}!{digest}"


def normal(url: str) -> str:
    """The normal form of an address: no fragment, host in lower case, no spaces, a path. Raises: ValueError."""
    parts = urlsplit(url.strip())
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = f":{parts.port}" if parts.port not in (None, default) else ""
    keep = "/%:@!$&'()*+,;=~-._?"
    return urlunsplit(
        (parts.scheme.lower(), host + port, quote(parts.path or "/", safe=keep), quote(parts.query, safe=keep), "")
    )


def _tree(text: str) -> Any:
    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
    try:
        tree = html.document_fromstring(well_formed(first_tags(text, TAGS)).encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as err:
        raise ValueError(f"no HTML: {err}") from None
    return tree


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


def _text(value: str) -> str:
    return " ".join(value.split())[:FIELD]
