"""What a website says about itself to those who read it by machine: robots.txt (RFC 9309) and sitemaps (sitemaps.org).

robots.txt ─▶ may we? how often? ─┐
           └▶ Sitemap: ─▶ index ─▶ sitemaps ─▶ locations
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from lxml import etree
from protego import Protego

from connectors.cms.fetching import Away, Fetched, Refused
from connectors.cms.sitemap.pace import Pace
from pipelines.runtime.errors import Permanent

AGENT = "Pagewire"
ROBOTS_LIMIT = 512 * 1024  # bytes; RFC 9309 asks for 500 KiB at least
SITEMAP_LIMIT = 50 * 1024 * 1024  # bytes, unpacked; the protocol's own limit
SITEMAPS = 1_000  # files of one index
DEPTH = 2  # an index of indexes is not allowed, and found all the same
SUFFIXES = (".xml", ".xml.gz", ".gz", ".txt")
DAY = timedelta(days=1)


class NotASitemap(Permanent):
    """What stands there is no sitemap, or more than we read."""

    code = "not-a-sitemap"


class Location(NamedTuple):
    """A page, as a sitemap lists it."""

    url: str
    lastmod: str = ""

    def settled(self) -> datetime | None:
        """The time after which what was fetched is what `lastmod` speaks of; None without a good one."""
        try:
            said = datetime.fromisoformat(self.lastmod)
        except ValueError:
            return None
        whole_day = len(self.lastmod) <= len("2026-05-04")
        said = said if said.tzinfo else said.replace(tzinfo=UTC)
        # A date alone may be of any time zone, and of any hour of that day.
        return said + (2 * DAY if whole_day else timedelta(minutes=1))


class Robots:
    """The rules of one host for us."""

    def __init__(self, text: str) -> None:
        self._rules = Protego.parse(text)
        self.sitemaps = tuple(self._rules.sitemaps)

    def allow(self, url: str) -> bool:
        return bool(self._rules.can_fetch(url, AGENT))

    @property
    def delay(self) -> float:
        """Seconds between requests that it asks for."""
        return float(self._rules.crawl_delay(AGENT) or 0.0)


async def read_robots(pace: Pace, site: str) -> Robots:
    """The robots.txt of the host of `site`.

    Raises:
        Away: it cannot be read; nobody knows what is allowed (RFC 9309, 2.3.1.4).
    """
    try:
        found = await pace.get(urljoin(site, "/robots.txt"), limit=ROBOTS_LIMIT)
    except Refused as err:
        if err.status is not None and 400 <= err.status < 500:
            return Robots("")
        raise
    return Robots(found.body.decode("utf-8-sig", errors="replace"))


def is_sitemap(url: str) -> bool:
    """Whether a setting names a sitemap and not a site."""
    return urlsplit(url).path.lower().endswith(SUFFIXES)


def same_site(one: str, other: str) -> bool:
    """Same host and port; https and http are taken for the same."""
    a, b = urlsplit(one), urlsplit(other)
    return (a.hostname, a.port) == (b.hostname, b.port)


async def locations(pace: Pace, url: str, robots: Robots) -> AsyncGenerator[Location, None]:
    """Every page of the sitemaps of `url`, a sitemap or a site.

    Raises:
        NotASitemap, Refused, Away: one of them cannot be read: then nobody knows all the pages.
    """
    if is_sitemap(url):
        waiting = [(url, 0)]
    else:
        waiting = [(found, 0) for found in robots.sitemaps] or [(urljoin(url, "/sitemap.xml"), 0)]
    seen: set[str] = set()
    while waiting:
        here, depth = waiting.pop(0)
        if here in seen:
            continue
        seen.add(here)
        if len(seen) > SITEMAPS or depth > DEPTH:
            raise NotASitemap(f"{url}: more than {SITEMAPS} sitemaps, or an index within an index within an index")
        if not same_site(here, url):
            raise NotASitemap(f"{here}: a sitemap at another host than {url}; make it a connector of its own")
        more, pages = await asyncio.to_thread(parse, await pace.get(here, limit=SITEMAP_LIMIT), here)
        waiting += [(urljoin(here, one), depth + 1) for one in more]
        for page in pages:
            yield Location(urljoin(here, page.url), page.lastmod)


def parse(found: Fetched, url: str) -> tuple[list[str], list[Location]]:
    """The sitemaps and the pages that a sitemap lists. Raises: NotASitemap."""
    body = _unpacked(found.body, url).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not body.startswith(b"<"):
        lines = body.decode("utf-8", errors="replace").split()
        if lines and all(line.startswith(("http://", "https://")) for line in lines):
            return [], [Location(line) for line in lines]
        raise NotASitemap(f"{url}: neither XML nor a list of addresses")
    # Entities stay closed and nothing is loaded: a sitemap is a stranger's file.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False)
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as err:
        raise NotASitemap(f"{url}: not XML: {err.msg}") from None
    kind = etree.QName(root).localname
    if kind not in ("urlset", "sitemapindex"):
        raise NotASitemap(f"{url}: its root is <{kind}>, not <urlset> or <sitemapindex>")
    entries = [_entry(child) for child in root if isinstance(child.tag, str)]
    listed = [one for one in entries if one is not None]
    return ([one.url for one in listed], []) if kind == "sitemapindex" else ([], listed)


def _entry(element: etree._Element) -> Location | None:
    said = {etree.QName(child).localname: (child.text or "").strip() for child in element if isinstance(child.tag, str)}
    return Location(said["loc"], said.get("lastmod", "")) if said.get("loc") else None


def _unpacked(body: bytes, url: str) -> bytes:
    """A gzip file opened, never further than the limit. Raises: NotASitemap."""
    if not body.startswith(b"\x1f\x8b"):
        return body
    try:
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        opened = unpacker.decompress(body, SITEMAP_LIMIT + 1)
    except zlib.error as err:
        raise NotASitemap(f"{url}: not what gzip packs: {err}") from None
    if len(opened) > SITEMAP_LIMIT:
        raise NotASitemap(f"{url}: unpacked larger than {SITEMAP_LIMIT:,} bytes")
    if not unpacker.eof:
        raise Away(f"{url}: the packed file ends too early")
    return opened
