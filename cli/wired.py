"""What commands take from `wiring`, each loaded when it is called: who asks for help waits for neither Kafka's client
nor Elasticsearch's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wiring.clients import Clients
    from wiring.settings import Settings


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
