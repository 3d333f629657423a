"""A website as a source: by its sitemaps, or by following its links.

    robots.txt ─▶ sitemaps ──┐
                  or links ──┴▶ address ─▶ conditional request ─▶ 304: as it was
                                                                └▶ 200: text, language, own address ─▶ visits

A page's revision is the time when its content was first seen here. The modified times of websites are unreliable, and
are only used to save requests. So the inventory fetches the pages, and `fetch` returns the stored ones.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from more_itertools import chunked

from connectors.cms.addresses import same_site
from connectors.cms.fetching import FetchRefused, SafeFetch, ServerUnavailable
from connectors.cms.frame import Listed, Omitted, OwnThread, UnreadablePage, together
from connectors.cms.settings import SitemapConnector
from connectors.cms.sitemap.discover import Broken, HostPace, Location, NotASitemap, Robots, locations, read_robots
from connectors.cms.sitemap.feeds import FEED_LIMIT, entries_of
from connectors.cms.sitemap.page import normal, page_id
from connectors.cms.sitemap.reader import Reader
from connectors.cms.sitemap.visits import Visit, Visits
from schemas.page import PageDocument

log = logging.getLogger(__name__)

# Not requested when crawling, since they have no text.
OTHER_FILES = (
    ".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".ico", ".css", ".js", ".json", ".xml", ".zip", ".gz", ".mp3",
    ".mp4", ".webm", ".woff", ".woff2", ".ics", ".exe", ".dmg", ".iso",
)  # fmt: skip
TOGETHER = 64  # addresses visited between two reports
FAILURES = 10  # in a row, after which the server counts as down
GONE = frozenset({404, 410})
BARRED = frozenset({401, 403})  # visitors may not read the page, or the server takes us for an attacker
CONCURRENCY = 2  # requests at once
MAX_DEPTH = 10  # links followed from `url`, when crawling


class FeedRead(NamedTuple):
    """A feed that has changed."""

    visit: Visit  # to keep
    entries: dict[str, str]  # addresses of this website, by entry
    new: tuple[str, ...]  # addresses of entries that were not there before


class SitemapSource:
    """One website, and the stored visits. For one task at a time."""

    def __init__(
        self, connector: SitemapConnector, fetch: SafeFetch, languages: tuple[str, ...], own: OwnThread[Visits]
    ) -> None:
        self._connector = connector
        self._languages = languages
        self._pace = HostPace(fetch, CONCURRENCY, connector.delay)
        self._own = own
        self._visits = own.thing
        self._begun = self._clock()
        self._failures = 0
        self._refuses_us: bool | None = None  # None: the site's own address was not asked yet
        self._robots: Robots | None = None
        self._elsewhere = ""  # another host in the pages' addresses
        self._circular: set[str] = set()  # addresses whose canonical address redirects back to them
        self._forbidden: dict[str, str] = {}  # addresses that are not requested, and why
        self._broken: list[Broken] = []  # unreadable sitemaps

    async def inventory(self) -> AsyncGenerator[Listed | Omitted | UnreadablePage, None]:
        """Raises: NotASitemap, FetchRefused, ServerUnavailable: none of its sitemaps can be read."""
        self._failures = 0
        self._refuses_us = None
        self._circular = set()
        self._forbidden = {}
        self._broken = []
        robots = await self._read_robots()
        found = self._crawled() if self._connector.crawl else self._listed(robots)
        count = 0
        async for visit in found:
            if visit.kind == "page":
                count += 1
                # An unreadable page counts as new, so that it is retried and reported.
                yield Listed(visit.page_id, visit.lang, visit.revision if visit.problem is None else self._clock())
            else:
                yield Omitted(visit.url, visit.why)
        for url, why in self._forbidden.items():
            yield Omitted(url, why)
        for broken in self._broken:
            yield UnreadablePage(Listed(page_id(broken.url), self._connector.lang or self._languages[0], 0), broken.why)
        if not count and self._elsewhere:
            raise NotASitemap(f"{self._connector.url}: its pages are at {self._elsewhere}; give that as `url`")
        await self._own.do(self._visits.forget, self._clock())

    async def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | UnreadablePage, None]:
        """The documents that the inventory has stored."""
        documents = await self._own.do(self._visits.documents, [(one.page_id, one.lang) for one in wanted])
        for listed, (document, problem) in zip(wanted, documents, strict=True):
            if problem is not None:
                yield UnreadablePage(listed, problem)
            elif document is not None:
                yield document

    async def visited(self, urls: Sequence[str]) -> AsyncGenerator[tuple[str, Listed | str], None]:
        """Visit single addresses, those that they redirect to included: each with its page, or with why it has none.

        Raises: ServerUnavailable: the server is down.
        """
        await self._read_robots()
        for some in chunked(urls, CONCURRENCY):
            wanted = {url: self._wanted(url) for url in some}
            visits = await together(self._visit(Location(own)) for own in wanted.values() if own is not None)
            of = {visit.url: visit for visit in visits}
            for url, own in wanted.items():
                visit = of.get(own or "")
                if visit is None:
                    yield url, self._forbidden.get(url, "not an address of this website")
                    continue
                yield url, _listed(visit)
                if visit.kind == "moved" and self._wanted(visit.target) not in (None, own):
                    async for target in self._visit_all([Location(visit.target)], {visit.target}):
                        yield target.url, _listed(target)

    async def read_feed(self, url: str) -> FeedRead | None:
        """A feed, and those of its entries that are new or changed since `keep_feed`; None: it is unchanged.

        Raises: NotASitemap, FetchRefused, ServerUnavailable.
        """
        name = _row(url)
        before = await self._own.do(self._visits.get, name) or Visit(name, "nothing", why="a feed")
        found = await self._pace.get(url, etag=before.etag, modified=before.modified, limit=FEED_LIMIT)
        if found.unchanged:
            await self._own.do(self._visits.seen, name, self._clock())
            return None
        entries = await asyncio.to_thread(entries_of, found.body, found.url)
        own = {_entry(one): one.url for one in entries if self.is_own(one.url)}
        new = dict.fromkeys(address for entry, address in own.items() if entry not in before.links)
        visit = replace(before, etag=found.etag, modified=found.modified)
        return FeedRead(visit, own, tuple(new))

    async def keep_feed(self, read: FeedRead, failed: Collection[str]) -> None:
        """Note the entries as known, but those of pages that `failed`, by id: the next read has them again."""
        known = tuple(entry for entry, url in read.entries.items() if self.id_of(url) not in failed)
        visit = replace(read.visit, links=known)
        if len(known) < len(read.entries):
            visit = replace(visit, etag=None, modified=None)
        await self._keep(visit)

    def is_own(self, url: str) -> bool:
        """Whether the address is on this website."""
        try:
            return same_site(normal(url), self._connector.url)
        except ValueError:
            return False

    def id_of(self, url: str) -> str:
        """The id of the page at an address."""
        return page_id(normal(url))

    async def _read_robots(self) -> Robots:
        if self._robots is None:
            self._robots = await read_robots(self._pace, self._connector.url)
            self._pace.delay = max(self._connector.delay, min(self._robots.delay, 60.0))
        return self._robots

    async def now(self) -> int:
        """Our own clock, which revisions are from."""
        return self._clock()

    async def _listed(self, robots: Robots) -> AsyncIterator[Visit]:
        seen: set[str] = set()
        chunk: list[Location] = []
        async for location in locations(self._pace, self._connector.url, robots):
            if isinstance(location, Broken):
                self._broken.append(location)
                continue
            url = self._wanted(location.url)
            if url is None or url in seen:
                continue
            seen.add(url)
            self._check_number(seen)
            chunk.append(Location(url, location.lastmod))
            if len(chunk) == TOGETHER:
                async for visit in self._visit_all(chunk, seen):
                    yield visit
                chunk = []
        async for visit in self._visit_all(chunk, seen):
            yield visit

    async def _crawled(self) -> AsyncIterator[Visit]:
        """Breadth first, so that pages near the start are found before the limit."""
        start = normal(self._connector.url)
        seen = {start}
        level = [Location(start)]
        for _ in range(MAX_DEPTH + 1):
            following: list[Location] = []
            for some in chunked(level, TOGETHER):
                async for visit in self._visit_all(some, seen):
                    yield visit
                    for link in visit.links:
                        url = self._wanted(link)
                        if url is None or url in seen or urlsplit(url).path.lower().endswith(OTHER_FILES):
                            continue
                        seen.add(url)
                        self._check_number(seen)
                        following.append(Location(url))
            level = following

    async def _visit_all(self, chunk: Iterable[Location], seen: set[str]) -> AsyncIterator[Visit]:
        """Visit these, and the canonical addresses that they name."""
        waiting = list(chunk)
        moved: dict[str, Visit] = {}
        while waiting:
            visits = await together(self._visit(location) for location in waiting)
            waiting = []
            for visit in visits:
                yield visit
                target = self._wanted(visit.target) if visit.kind == "moved" else None
                if target is None:
                    continue
                moved[visit.url] = visit
                page = _page_of(visit, moved.get(target))
                if page is not None and page not in self._circular:
                    self._circular.add(page)
                    waiting.append(Location(page))
                if target not in seen:
                    seen.add(target)
                    waiting.append(Location(target))

    def _wanted(self, url: str) -> str | None:
        """The normal form of an address; None: it is not allowed or not wanted."""
        try:
            url = normal(url)
        except ValueError:
            return None
        if not same_site(url, self._connector.url):
            self._elsewhere = "{0.scheme}://{0.netloc}".format(urlsplit(url))
            return None
        if why := self._why_forbidden(url):
            self._forbidden[url] = why
            return None
        return url

    def _why_forbidden(self, url: str) -> str:
        """Why an address is not requested; empty: it may be."""
        assert self._robots
        if not self._robots.allow(url):
            return "robots.txt forbids it"
        if urlsplit(url).path.startswith(tuple(self._connector.exclude)):
            return "the connector's `exclude`"
        return ""

    def _check_number(self, seen: set[str]) -> None:
        if len(seen) > self._connector.max_pages:
            raise NotASitemap(
                f"{self._connector.url}: more than {self._connector.max_pages:,} addresses; "
                "leave some out with `exclude`, or raise `max_pages`"
            )

    async def _visit(self, location: Location) -> Visit:
        url = location.url
        before = await self._own.do(self._visits.get, url)
        if before is not None and self._is_settled(before, location):
            await self._own.do(self._visits.seen, url, self._clock())
            return before
        known = before if before and before.problem is None and not self._is_circular(before) else None
        try:
            found = await self._pace.get(
                url, etag=known.etag if known else None, modified=known.modified if known else None
            )
        except FetchRefused as err:
            self._failures = 0
            if err.status in GONE or (err.status in BARRED and not await self._refuses_all()):
                return await self._keep(Visit(url, "nothing", why=f"the server answered {err.status}"))
            return await self._unread(before, url, str(err))
        except ServerUnavailable as err:
            self._failures += 1
            if self._failures >= FAILURES:
                raise
            return await self._unread(before, url, str(err))
        self._failures = 0
        if found.unchanged and before is not None:
            await self._own.do(self._visits.unchanged, url, self._clock())
            return before
        reader = Reader(self._connector, self._languages, self._why_forbidden, self._clock())
        visit, document = await asyncio.to_thread(reader.read, url, found, is_own=url in self._circular)
        return await self._keep(visit, document)

    async def _refuses_all(self) -> bool:
        """Whether the server refuses the site's own address, too: then it refuses us, not visitors of one page."""
        if self._refuses_us is None:
            try:
                await self._pace.get(self._connector.url)
                self._refuses_us = False
            except FetchRefused as err:
                self._refuses_us = err.status in BARRED
            except ServerUnavailable:
                return True
        return self._refuses_us

    def _is_settled(self, before: Visit, location: Location) -> bool:
        """Whether no request is needed: the page was fetched just now, or after its `lastmod`."""
        if self._is_circular(before):
            return False
        if before.fetched_at >= self._begun:
            return True
        settled = location.settled()
        return (
            settled is not None
            and before.problem is None
            and datetime.fromtimestamp(before.fetched_at / 1000, UTC) > settled
        )

    def _is_circular(self, before: Visit) -> bool:
        return before.kind == "moved" and before.url in self._circular

    async def _unread(self, before: Visit | None, url: str, why: str) -> Visit:
        """Report a page that exists and cannot be read. Its last document is kept."""
        log.info("cannot be read: %s", why)
        if before is None or before.kind != "page":
            lang = self._connector.lang or self._languages[0]
            before = Visit(url, "page", page_id=page_id(url), lang=lang)
            return await self._keep(replace(before, problem=why))
        await self._own.do(self._visits.unread, url, self._clock(), why)
        return replace(before, problem=why)

    async def _keep(self, visit: Visit, document: PageDocument | None = None) -> Visit:
        return await self._own.do(self._visits.keep, visit, self._clock(), document)

    @staticmethod
    def _clock() -> int:
        return int(time.time() * 1000)


def _row(feed: str) -> str:
    """Under which a feed is kept: a crawl may visit the same address."""
    return f"feed {feed}"


def _entry(one: Location) -> str:
    return f"{one.lastmod} {one.url}"


def _listed(visit: Visit) -> Listed | str:
    return Listed(visit.page_id, visit.lang, visit.revision) if visit.kind == "page" else visit.why


def _page_of(one: Visit, other: Visit | None) -> str | None:
    """Of two addresses that lead to each other, the one that does not redirect; None: neither or both redirect."""
    if other is None or other.target != one.url:
        return None
    stay = [visit.url for visit in (one, other) if visit.why != f"redirects to {visit.target}"]
    return stay[0] if len(stay) == 1 else None
