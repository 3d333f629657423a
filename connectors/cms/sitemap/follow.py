"""Follows a website's feeds between two reconciles, so that a new page is searchable minutes after its entry.

    feed, conditionally ─▶ entries that the last read did not have ─▶ visits ─▶ intake, lane `save`
                                                                            └▶ read: kept with the visits

Feeds are polled although they are subscribed at their hubs: a hub that fails, or ends a subscription early, delays
entries and loses none. A feed lists the newest pages only. So it deletes nothing: `reconcile` does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import cast

from connectors.cms.fetching import SafeFetch
from connectors.cms.frame import CmsSource, Listed
from connectors.cms.ledger import WantedPage
from connectors.cms.settings import SitemapConnector
from connectors.cms.sitemap.feeds import FEED_LIMIT, hub_of
from connectors.cms.sitemap.source import SitemapSource
from connectors.cms.sitemap.websub import LONGEST_TOPIC, RENEWAL, Subscription
from connectors.cms.sync import Courier, SyncOutcome
from pipelines.ingest.accept import Intake
from pipelines.runtime.errors import Permanent, Retryable
from schemas.keys import page_key

log = logging.getLogger(__name__)

# A new one for each poll, since it reads robots.txt once.
Opened = Callable[[], AbstractAsyncContextManager[CmsSource]]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def follow(
    connector: SitemapConnector,
    opened: Opened,
    site: str,
    name: str,
    intake: Intake,
    on_outcome: Callable[[SyncOutcome], None],
) -> None:
    """Poll the connector's feeds until cancelled. The next poll retries a website or a broker that is down."""
    while True:
        try:
            async with opened() as source:
                async for outcome in poll(cast(SitemapSource, source), connector.feeds, site, name, intake):
                    on_outcome(outcome)
        except (Retryable, Permanent) as err:
            log.warning("the feeds are polled again in %.0f s: %s", connector.feed_interval, err)
        await asyncio.sleep(connector.feed_interval)


async def poll(
    source: SitemapSource, feeds: tuple[str, ...], site: str, name: str, intake: Intake
) -> AsyncIterator[SyncOutcome]:
    """The outcome of each feed with new entries. A feed that cannot be read stops no other.

    Raises: Retryable: the website or the broker is down; the next poll finds the same entries.
    """
    for feed in feeds:
        try:
            read = await source.read_feed(feed)
        except (Permanent, Retryable) as err:
            log.warning("a feed cannot be read: %s", err)
            continue
        if read is None:
            continue
        courier = Courier(source, site, name, intake, "save")
        wanted: list[WantedPage] = []
        if read.new:
            async with aclosing(source.visited(read.new)) as visits:
                async for _, found in visits:
                    if isinstance(found, Listed):
                        wanted.append(WantedPage(page_key(site, found.lang, found.page_id), found, "newer"))
        if wanted:
            await courier.deliver(wanted)
            yield courier.outcome
        # Only now, so that nothing is lost if this process dies before.
        await source.keep_feed(read, {one.page_id for one in courier.outcome.failures})


async def keep_subscribed(
    fetch: SafeFetch, feeds: Sequence[str], gateway: str, subscription: Callable[[str], Subscription]
) -> None:
    """Subscribe to each feed and renew until cancelled. Args: subscription: of a topic."""
    while True:
        for feed in feeds:
            try:
                await subscribe(fetch, feed, gateway, subscription)
            except (Permanent, Retryable) as err:
                log.warning("no WebSub subscription to %s, it is polled only: %s", feed, err)
        await asyncio.sleep(RENEWAL)


async def subscribe(
    fetch: SafeFetch, feed: str, gateway: str, subscription: Callable[[str], Subscription]
) -> str | None:
    """The hub that was asked; None: the feed names none. Raises: FetchRefused, ServerUnavailable, NotASitemap."""
    found = await fetch.get(feed, limit=FEED_LIMIT)
    hub, topic = await asyncio.to_thread(hub_of, found.body, found.headers.get("link", ""), found.url)
    if hub is None or len(topic) > LONGEST_TOPIC:
        log.info("%s names no hub", feed)
        return None
    await fetch.post(hub, subscription(topic).request(gateway), FORM)
    return hub
