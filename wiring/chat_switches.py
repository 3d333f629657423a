"""The switches of the sites' chats, put together: for gateways, workers and commands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from adapters.elastic.bundle import Elastic
from adapters.elastic.states import ElasticStates
from pipelines.operate.chat_switches import ChatSwitches
from wiring.settings import Settings


def chat_switches(settings: Settings, elastic: Elastic, now: Callable[[], datetime]) -> ChatSwitches:
    """The switches of all sites; the caller starts and closes them."""
    enabled = {name: site.chat.enabled for name, site in settings.sites.items()}
    return ChatSwitches(ElasticStates(elastic.es, elastic.indexes), enabled, now)
