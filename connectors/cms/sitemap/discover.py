"""A website's files for robots: robots.txt (RFC 9309) and sitemaps (sitemaps.org).

robots.txt ─▶ allowed paths, delay
           └▶ Sitemap: ─▶ index ─▶ sitemaps ─▶ locations
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from lxml import etree
from protego import Protego

from connectors.cms.addresses import same_site
from connectors.cms.fetching import AGENT, LIMIT, Fetched, FetchRefused, SafeFetch, ServerUnavailable
from connectors.cms.gzipped import MAGIC, Gunzip
from pipelines.runtime.errors import Permanent
from text.encodings import UTF_16, UnknownEncoding, decoded

ROBOTS_LIMIT = 512 * 1024  # bytes; RFC 9309 asks for 500 KiB at least
SITEMAP_LIMIT = 50 * 1024 * 1024  # bytes, unpacked; the protocol's own limit
SITEMAPS = 1_000  # files of one index
PACKED = 2  # times; some servers compress gzip files again
DEPTH = 2  # an index of indexes is not allowed, but exists
SUFFIXES = (".xml", ".xml.gz", ".gz", ".txt")
DAY = timedelta(days=1)
LONGEST_WAIT = 120.0  # seconds that a server may ask for; with longer ones, the page is left for the next run


class NotASitemap(Permanent):
    """The address has no sitemap, or a larger one than we read."""

    code = "not-a-sitemap"


class Location(NamedTuple):
    """A page, as a sitemap lists it."""

    url: str
    lastmod: str = ""

    def settled(self) -> datetime | None:
        """The time after which a fetched page has the content of `lastmod`; None without a valid one."""
        try:
            said = datetime.fromisoformat(self.lastmod)
        except ValueError:
            return None
        whole_day = len(self.lastmod) <= len("2026-05-04")
        said = said if said.tzinfo else said.replace(tzinfo=UTC)
        # A date without a time may mean any hour of that day, in any time zone.
        try:
            return said + (2 * DAY if whole_day else timedelta(minutes=1))
        except OverflowError:  # such as 9999-12-31, for a page that never changes
            return None


class _Sitemap(NamedTuple):
    """A sitemap to be read."""

    url: str
    depth: int  # of indexes above it
    named_by: str  # robots.txt, or the address of an index


class Robots:
    """The rules of one host for our robot."""

    def __init__(self, text: str) -> None:
        self._rules = Protego.parse(text)
        self.sitemaps = tuple(self._rules.sitemaps)

    def allow(self, url: str) -> bool:
        return bool(self._rules.can_fetch(url, AGENT))

    @property
    def delay(self) -> float:
        """The requested seconds between two requests."""
        return float(self._rules.crawl_delay(AGENT) or 0.0)


async def read_robots(pace: HostPace, site: str) -> Robots:
    """The robots.txt of the host of `site`.

    Raises:
        ServerUnavailable: it cannot be read, so nothing is allowed (RFC 9309, 2.3.1.4).
    """
    try:
        found = await pace.get(urljoin(site, "/robots.txt"), limit=ROBOTS_LIMIT)
    except FetchRefused as err:
        if err.status is not None and 400 <= err.status < 500:
            return Robots("")
        raise
    return Robots(found.body.decode("utf-8-sig", errors="replace"))


def is_sitemap(url: str) -> bool:
    """Whether a setting names a sitemap and not a site."""
    return urlsplit(url).path.lower().endswith(SUFFIXES)


class Broken(NamedTuple):
    """One of several sitemaps that cannot be read, so that its pages are unknown."""

    url: str
    why: str


async def locations(pace: HostPace, url: str, robots: Robots) -> AsyncGenerator[Location | Broken, None]:
    """Every page in the sitemaps of `url` (a sitemap or a site), and the unreadable sitemaps.

    Sitemaps must be on the site's own host, or be named in its robots.txt.

    Raises:
        NotASitemap, FetchRefused, ServerUnavailable: none of them can be read, or there are too many.
    """
    first = [url] if is_sitemap(url) else [*robots.sitemaps] or [urljoin(url, "/sitemap.xml")]
    waiting = [_Sitemap(one, 0, "robots.txt" if one in robots.sitemaps else url) for one in first]
    seen: set[str] = set()
    read, failed = 0, None
    while waiting:
        here, depth, named_by = waiting.pop(0)
        if here in seen:
            continue
        seen.add(here)
        if len(seen) > SITEMAPS or depth > DEPTH:
            raise NotASitemap(f"{url}: more than {SITEMAPS} sitemaps, or an index within an index within an index")
        try:
            if not (named_by == "robots.txt" or same_site(here, url) or same_site(here, named_by)):
                raise NotASitemap(f"{here}: a sitemap at another host than {url}; make it a connector of its own")
            more, pages = await asyncio.to_thread(parse, await pace.get(here, limit=SITEMAP_LIMIT), here)
        except (NotASitemap, FetchRefused, ServerUnavailable) as err:
            failed = failed or err
            yield Broken(here, str(err))
            continue
        waiting += [_Sitemap(urljoin(here, one), depth + 1, here) for one in more]
        read += not more
        for page in pages:
            yield Location(urljoin(here, page.url), page.lastmod)
    if failed is not None and not read:
        raise failed


def parse(found: Fetched, url: str) -> tuple[list[str], list[Location]]:
    """The sitemaps and the pages that a sitemap lists. Raises: NotASitemap."""
    root = read_xml(found.body, url)
    if isinstance(root, bytes):
        lines = root.decode("utf-8", errors="replace").split()
        if lines and all(line.startswith(("http://", "https://")) for line in lines):
            return [], [Location(line) for line in lines]
        raise NotASitemap(f"{url}: neither XML nor a list of addresses")
    kind = etree.QName(root).localname
    if kind not in ("urlset", "sitemapindex"):
        raise NotASitemap(f"{url}: its root is <{kind}>, not <urlset> or <sitemapindex>")
    listed = [one for child in root if isinstance(child.tag, str) for one in _entries(child)]
    return ([one.url for one in listed], []) if kind == "sitemapindex" else ([], listed)


def read_xml(body: bytes, url: str) -> etree._Element | bytes:
    """The root of an untrusted file, unpacked; its text in UTF-8 if it does not begin as XML.

    Raises: NotASitemap, ServerUnavailable.
    """
    body = _unpacked(body, url)
    wide = body.startswith(UTF_16)
    try:
        body = (decoded(body).encode() if wide else body).lstrip(b"\xef\xbb\xbf \t\r\n")
    except UnknownEncoding as err:
        raise NotASitemap(f"{url}: {err}") from None
    if not body.startswith(b"<"):
        return body
    # No entities and no loading, since the file is untrusted.
    parser = etree.XMLParser(
        encoding="utf-8" if wide else None,
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False,
    )  # fmt: skip
    try:
        return etree.fromstring(body, parser)
    except etree.XMLSyntaxError as err:
        raise NotASitemap(f"{url}: not XML: {err.msg}") from None


def _entries(element: etree._Element) -> Iterator[Location]:
    """The page of an entry, and its translations, which many sites list only there."""
    children = [child for child in element if isinstance(child.tag, str)]
    said = {etree.QName(child).localname: (child.text or "").strip() for child in children}
    if said.get("loc"):
        yield Location(said["loc"], said.get("lastmod", ""))
        yield from (Location(child.get("href")) for child in children if child.get("hreflang") and child.get("href"))


def _unpacked(body: bytes, url: str) -> bytes:
    """Decompress a gzip file, also one compressed twice, within the limit. Raises: NotASitemap, ServerUnavailable."""
    for _ in range(PACKED):
        if not body.startswith(MAGIC):
            break
        unpack = Gunzip(SITEMAP_LIMIT)
        try:
            body = unpack.feed(body)
        except zlib.error as err:
            raise NotASitemap(f"{url}: not what gzip packs: {err}") from None
        if len(body) > SITEMAP_LIMIT:
            raise NotASitemap(f"{url}: unpacked larger than {SITEMAP_LIMIT:,} bytes")
        if not unpack.ended:
            raise ServerUnavailable(f"{url}: the packed file ends too early")
    return body


class HostPace:
    """Requests to one host. `delay` (seconds) may be raised after robots.txt is read."""

    def __init__(self, fetch: SafeFetch, concurrency: int, delay: float) -> None:
        self._fetch = fetch
        self._slots = asyncio.Semaphore(concurrency)
        self._next_at = 0.0
        self.delay = delay

    async def get(
        self, url: str, *, etag: str | None = None, modified: str | None = None, limit: int = LIMIT
    ) -> Fetched:
        """As SafeFetch.get, but waits and retries once if the server asks for it (Retry-After)."""
        try:
            return await self._turn(url, etag, modified, limit)
        except ServerUnavailable as err:
            if err.retry_after is None or err.retry_after > LONGEST_WAIT:
                raise
            self._next_at = max(self._next_at, time.monotonic() + err.retry_after)  # for all requests
            return await self._turn(url, etag, modified, limit)

    async def _turn(self, url: str, etag: str | None, modified: str | None, limit: int) -> Fetched:
        async with self._slots:
            now = time.monotonic()
            at = max(now, self._next_at)
            self._next_at = at + self.delay
            await asyncio.sleep(at - now)
            return await self._fetch.get(url, etag=etag, modified=modified, limit=limit)
