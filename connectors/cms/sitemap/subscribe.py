"""Keeps a website's feeds subscribed at their hubs, while `pagewire watch` follows them.

The feeds are polled all the same: a hub that fails, or ends a subscription early, delays entries and loses none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from connectors.cms.fetching import SafeFetch
from connectors.cms.sitemap.feeds import FEED_LIMIT, hub_of
from connectors.cms.sitemap.websub import LONGEST_TOPIC, RENEWAL, Subscription
from pipelines.runtime.errors import Permanent, Retryable

log = logging.getLogger(__name__)

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


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
