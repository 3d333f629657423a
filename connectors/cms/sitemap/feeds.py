"""RSS and Atom feeds of a website: its newest pages, with their times. Pure.

RSS 0.9x and 2.0, RSS 1.0 (RDF), Atom 1.0 (RFC 4287).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from urllib.parse import urljoin

import httpx
from lxml import etree

from connectors.cms.sitemap.discover import Location, NotASitemap, read_xml

FEED_LIMIT = 5 * 1024 * 1024  # bytes; feeds with whole articles have some 500 KiB
ENTRIES = 100  # of one feed; older pages come with the next reconcile
TIMES = ("updated", "modified", "date", "pubDate", "published")  # the time of the last change first


def entries_of(body: bytes, url: str) -> list[Location]:
    """The first entries of the feed at `url`, without those that link to no page.

    Raises: NotASitemap, ServerUnavailable: it cannot be read.
    """
    root = read_xml(body, url)
    if isinstance(root, bytes) or etree.QName(root).localname not in ("rss", "RDF", "feed"):
        raise NotASitemap(f"{url}: neither RSS nor Atom")
    entries = map(_location, islice(root.iter("{*}item", "{*}entry"), ENTRIES))
    return [Location(there, lastmod) for link, lastmod in entries if link and (there := _absolute(url, link))]


def hub_of(body: bytes, link_header: str, url: str) -> tuple[str | None, str]:
    """The WebSub hub of the feed at `url` and its address there, from the header `Link` or the feed's own links.

    Raises: NotASitemap, ServerUnavailable: it cannot be read.
    """
    named = httpx.Response(200, headers=[(b"Link", link_header.encode())]).links.items()
    said = {relation: str(link["url"]) for names, link in named for relation in (names or "").split()}
    if "hub" not in said:
        root = read_xml(body, url)
        if isinstance(root, bytes):
            raise NotASitemap(f"{url}: neither RSS nor Atom")
        links = [*root.iterfind("{*}link"), *root.iterfind("{*}channel/{*}link")]
        said = {
            relation: str(link.get("href"))
            for link in reversed(links)
            for relation in str(link.get("rel")).split()
            if link.get("href")
        }
    hub = _absolute(url, said["hub"]) if "hub" in said else ""
    return hub or None, _absolute(url, said.get("self", url)) or url


def _location(entry: etree._Element) -> Location:
    children = [child for child in entry if isinstance(child.tag, str)]
    said = {etree.QName(child).localname: (child.text or "").strip() for child in children}
    time = next(filter(None, map(said.get, TIMES)), "")
    return Location(next(_links(children), ""), _iso(time))


def _links(children: list[etree._Element]) -> Iterator[str]:
    """Atom links by `href`, RSS by text."""
    for child in children:
        if etree.QName(child).localname == "link" and child.get("rel", "alternate") == "alternate":
            link = (child.get("href") or child.text or "").strip()
            if link:
                yield link


def _absolute(feed: str, link: str) -> str:
    with suppress(ValueError):
        return urljoin(feed, link)
    return ""


def _iso(time: str) -> str:
    """ISO 8601 of a time as RFC 3339 or RFC 822 writes it; as it is, where it is neither."""
    with suppress(ValueError):
        datetime.fromisoformat(time)
        return time
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(time).isoformat()
    return time
