"""The addresses of Kafka and Elasticsearch: configured ones, else the local engine's."""

from __future__ import annotations

from infra.running import discover
from pipelines.runtime.errors import Retryable
from wiring.settings import Settings


class ServiceMissing(Retryable):
    """A required service is not configured, and no local engine runs."""

    code = "service-missing"


def addresses(settings: Settings) -> Settings:
    """The settings with both addresses filled in.

    Raises:
        ServiceMissing: the message says how to start the local engine.
    """
    if settings.kafka and settings.elasticsearch:
        return settings
    local = discover(settings.home)
    if local is None:
        needed = {"PAGEWIRE_KAFKA": settings.kafka, "PAGEWIRE_ELASTICSEARCH": settings.elasticsearch}
        unset = " and ".join(name for name, value in needed.items() if not value)
        raise ServiceMissing(
            f"no local engine runs under {settings.home}, and no address is set by {unset}; "
            "start one with `pagewire engine start --detach`, or everything with `pagewire up`"
        )
    kafka, elasticsearch = local
    return settings.model_copy(
        update={"kafka": settings.kafka or kafka, "elasticsearch": settings.elasticsearch or elasticsearch}
    )
