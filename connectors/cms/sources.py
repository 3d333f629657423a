"""Opens the source of a connector in pagewire.yaml, and visits pages whose change a website has announced.

urlList ─▶ sitemap connector: conditional request ─▶ a page ─▶ intake, lane `save`
                                                  └▶ gone, moved, excluded ─▶ delete, if the search has it
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from importlib.util import find_spec
from typing import Protocol, cast

from connectors.cms.fetching import SafeFetch
from connectors.cms.frame import CmsSource, Listed, OwnThread
from connectors.cms.ledger import WantedPage
from connectors.cms.settings import (
    Connector,
    ConnectorsSettings,
    FolderConnector,
    ModuleConnector,
    PushConnector,
    SitemapConnector,
    WordPressConnector,
)
from connectors.cms.sync import Courier
from pipelines.ingest.accept import Intake
from pipelines.runtime.errors import Retryable, WrongUse, did_you_mean
from schemas.changed import ChangedAddress
from schemas.http import ListedPage
from schemas.keys import page_key


class NoSource(WrongUse):
    """There is no such connector, or it only pushes and cannot be read."""

    code = "no-source"


def others(connectors: Collection[str], name: str) -> str:
    """The end of a message about an unknown connector: the known ones."""
    if not connectors:
        return "it has none: docs/howto/connect.md"
    return f"pagewire.yaml has: {', '.join(sorted(connectors)) or 'none'}{did_you_mean(name, connectors)}"


def configured(settings: ConnectorsSettings, site: str, name: str) -> Connector:
    """The connector `name` of `site`. Raises: UnknownSite. NoSource: it does not exist."""
    connectors = settings.site(site).connectors
    if name not in connectors:
        raise NoSource(f"site {site} has no connector {name!r}; {others(connectors, name)}")
    return connectors[name]


@asynccontextmanager
async def opened(settings: ConnectorsSettings, site: str, name: str) -> AsyncIterator[CmsSource]:
    """Open the source of the connector `name` of `site`.

    Raises:
        UnknownSite.
        NoSource: the connector does not exist, or cannot be read.
    """
    connector, languages = configured(settings, site, name), settings.site(site).languages
    match connector:
        case PushConnector():
            raise NoSource(f"connector {name!r} of site {site} is of the kind push: it cannot be asked for its pages")
        case FolderConnector():
            from connectors.cms.folder.source import FolderSource

            yield FolderSource(connector, languages)
        case WordPressConnector():
            from connectors.cms.wordpress.source import WordPressSource

            async with SafeFetch(settings.fetch_allow) as fetch:
                yield WordPressSource(connector, fetch, languages)
        case ModuleConnector():
            from connectors.cms.module import ModuleSource

            async with SafeFetch(settings.fetch_allow) as fetch:
                yield ModuleSource(connector, fetch)
        case SitemapConnector():
            absent = [package for package in ("protego", "trafilatura") if find_spec(package) is None]
            if absent:
                raise NoSource(f"connectors of the kind sitemap need {' and '.join(absent)}: the extra `crawl`")
            from connectors.cms.sitemap.source import SitemapSource
            from connectors.cms.sitemap.visits import Visits

            file = settings.home / "crawls" / site / f"{name}.db"
            visits = partial(Visits, file, documents=connector.linked_documents)
            async with SafeFetch(settings.fetch_allow) as fetch, OwnThread(visits) as own:
                yield SitemapSource(connector, fetch, languages, own)


MOST = 100  # addresses at once; more are a reconcile's work
TIME = 90.0  # seconds; with a delay of 0.5 s there is time for all

# The pages that the search has at an address, of whichever groups.
AtAddress = Callable[[str], Awaitable[Sequence[ListedPage]]]


class Visiting(CmsSource, Protocol):
    """A source that can be asked for single addresses."""

    def visited(self, urls: Sequence[str]) -> AsyncGenerator[tuple[str, Listed | str], None]:
        """Each address with its page, or with why it has none. Raises: Retryable: the website is down."""
        ...

    def is_own(self, url: str) -> bool:
        """Whether the address is on this website."""
        ...

    def id_of(self, url: str) -> str:
        """The id of the page at an address."""
        ...


async def take_changed(
    settings: ConnectorsSettings, site: str, name: str, urls: Sequence[str], intake: Intake, at: AtAddress
) -> list[ChangedAddress]:
    """Visit these addresses. Returns the outcome of each, in their order.

    Raises:
        NoSource: the connector reads no website. Retryable: no broker.
    """
    if not isinstance(configured(settings, site, name), SitemapConnector):
        raise NoSource(f"connector {name!r} of site {site} reads no website: only the kind sitemap takes addresses")
    async with opened(settings, site, name) as source:
        work = _Work(cast(Visiting, source), site, name, intake, at)
        told = {url: "another website" for url in urls if not work.source.is_own(url)}
        outcomes = {url: ChangedAddress(url=url, state="refused", detail=why) for url, why in told.items()}
        own = [url for url in dict.fromkeys(urls) if url not in told]
        try:
            async with asyncio.timeout(TIME):
                async for one in work.take(own):
                    outcomes[one.url] = one
        except TimeoutError:
            why = f"no time was left after {TIME:.0f} s; send it again"
        except Retryable as err:
            why = str(err)
        else:
            why = "it was not visited"
        return [outcomes.get(url) or ChangedAddress(url=url, state="failed", detail=why) for url in urls]


class _Work:
    def __init__(self, source: Visiting, site: str, name: str, intake: Intake, at: AtAddress) -> None:
        self.source = source
        self._site = site
        self._at = at
        self._courier: Callable[[], Courier] = lambda: Courier(source, site, name, intake, "save")

    async def take(self, urls: Sequence[str]) -> AsyncGenerator[ChangedAddress, None]:
        """Raises: Retryable: the website or the broker is down."""
        async with aclosing(self.source.visited(urls)) as visits:
            async for url, found in visits:
                yield await (self._delete(url, found) if isinstance(found, str) else self._send(url, found))

    async def _send(self, url: str, listed: Listed) -> ChangedAddress:
        courier, key = self._courier(), page_key(self._site, listed.lang, listed.page_id)
        await courier.deliver([WantedPage(key, listed, "newer")])
        failures, revision = courier.outcome.failures, courier.outcome.revisions.get(key)
        if failures:
            return ChangedAddress(url=url, state="failed", page_key=key, detail=failures[0].reason)
        if revision is None:
            return ChangedAddress(url=url, state="refused", page_key=key, detail="a newer change was accepted before")
        return ChangedAddress(url=url, state="accepted", page_key=key, revision=revision)

    async def _delete(self, url: str, why: str) -> ChangedAddress:
        """Delete the page that a website of this kind has made of the address, in all languages."""
        there = [page for page in await self._at(url) if page.page_id == self.source.id_of(url)]
        if not there:
            return ChangedAddress(url=url, state="refused", detail=why)
        now, courier = await self.source.now(), self._courier()
        await courier.delete([Listed(page.page_id, page.lang, now) for page in there])
        key = page_key(self._site, there[0].lang, there[0].page_id)
        return ChangedAddress(url=url, state="deleted", page_key=key, revision=now, detail=why)
