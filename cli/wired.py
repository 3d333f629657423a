"""What commands take from `wiring`, each loaded when it is called: who asks for help waits for neither Kafka's client
nor Elasticsearch's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from cli.output import explained

if TYPE_CHECKING:
    from wiring.clients import Clients
    from wiring.settings import Settings

Value = TypeVar("Value")


def load() -> Settings:
    """The settings. Raises: SettingsError."""
    from wiring.settings_file import load

    return load()


def logged() -> Settings:
    """The settings; what this process logs from now on goes where they say. Raises: SettingsError."""
    settings = load()
    configure_logs(settings)
    return settings


def configure_logs(settings: Settings) -> None:
    """Log as these settings say."""
    from pipelines.runtime import logs

    logs.configure(settings)


def connected(settings: Settings) -> Clients:
    """All that commands ask of the running system: a context. Raises: ServiceMissing."""
    from wiring.clients import Clients

    return Clients(settings)


def on_site(site: str, work: Callable[[Clients], Awaitable[Value]], settings: Settings | None = None) -> Value:
    """What `work` returns, connected to the running system; an error ends the command with its sentence.

    Args:
        settings: default: as they are read.
    """

    async def run() -> Value:
        known = settings or load()
        configure_logs(known)
        known.site(site)
        async with connected(known) as clients:
            return await work(clients)

    with explained():
        return asyncio.run(run())
