"""What gateways and workers share: counts over a topic, and the switches of the chats."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial

from adapters.elastic.bundle import Elastic
from adapters.elastic.system_index import ElasticStates
from adapters.kafka.log import KafkaLogReader, KafkaLogTail
from adapters.kafka.sender import KafkaSender
from adapters.kafka.settings import KafkaSettings
from pipelines.operate.chat_switches import ChatSwitches
from pipelines.runtime.counts import DAY, CountsExchange, SharedCounts
from schemas.topics import BUDGETS, Topic
from wiring.settings import Settings

# Returns the counts over a topic, in periods of so many seconds; the same object for the same topic.
Share = Callable[[Topic, int], SharedCounts]


@asynccontextmanager
async def sharing(settings: KafkaSettings, sender: KafkaSender, now: Callable[[], float]) -> AsyncIterator[Share]:
    """Makes shared counts, and closes them at the end.

    Args:
        now: Unix time.
    """
    async with AsyncExitStack() as stack:
        shared: dict[Topic, SharedCounts] = {}

        def share(topic: Topic, seconds: int) -> SharedCounts:
            if topic not in shared:
                shared[topic] = SharedCounts(seconds, now)
                before = KafkaLogReader(settings, topic) if topic is BUDGETS else None
                if before is not None:
                    stack.push_async_callback(before.aclose)
                exchange = CountsExchange(shared[topic], topic, sender, partial(KafkaLogTail, settings, topic), before)
                stack.push_async_callback(exchange.aclose)
                exchange.start()
            return shared[topic]

        yield share


@asynccontextmanager
async def token_budgets(settings: Settings) -> AsyncIterator[SharedCounts]:
    """Tokens spent per site and day, for a worker; not shared if no site has such a limit."""
    if all(site.daily_tokens is None for site in settings.sites.values()):
        yield SharedCounts(DAY)
        return
    sender = KafkaSender(settings)
    try:
        async with sharing(settings, sender, time.time) as share:
            yield share(BUDGETS, DAY)
    finally:
        await sender.stop()


def chat_switches(settings: Settings, elastic: Elastic, now: Callable[[], datetime]) -> ChatSwitches:
    """The switches of all sites; the caller starts and closes them."""
    enabled = {name: site.chat.enabled for name, site in settings.sites.items()}
    return ChatSwitches(ElasticStates(elastic.es, elastic.indexes), enabled, now)
