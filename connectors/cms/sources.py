"""Opens the source of a connector in pagewire.yaml."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec

from connectors.cms.fetching import SafeFetch
from connectors.cms.frame import CmsSource
from connectors.cms.own_thread import OwnThread
from connectors.cms.settings import (
    Connector,
    ConnectorsSettings,
    FolderConnector,
    ModuleConnector,
    PushConnector,
    SitemapConnector,
    WordPressConnector,
)
from pipelines.runtime.errors import WrongUse
from pipelines.runtime.near_names import did_you_mean


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
            from connectors.cms.module.source import ModuleSource

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
