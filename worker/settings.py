"""The settings of a worker process, and the limits of its work."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from adapters.kafka.settings import KafkaSettings
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.settings import HomeSettings, ListenSettings, SitesSettings

RETRY = RetryPolicy()


@dataclass(frozen=True)
class WorkerLimits:
    """How a worker treats its messages. Tests of faults choose others."""

    window: int = 16  # messages of a partition that a stage works on at once
    records: int = 512  # messages of a stage in one process, of all its partitions together
    bytes: int = 64 * 1024 * 1024  # the same in bytes; the largest message has 8 MiB
    try_timeout: float = 60.0  # seconds of one try without progress
    drain_timeout: float = 10.0  # seconds for running work when a worker stops or loses partitions
    stall_timeout: float = 120.0  # seconds without progress, in spite of waiting messages, until a worker ends itself
    retry: RetryPolicy = RETRY


LIMITS = WorkerLimits()


class WorkerSettings(KafkaSettings, HomeSettings, ListenSettings, SitesSettings):
    """The stream worker."""

    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="A port of its own for the metrics of a worker or a gateway. Default: a worker serves none, a "
        "gateway does at its public port.",
    )
