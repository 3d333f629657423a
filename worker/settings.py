"""How a worker process treats its messages."""

from __future__ import annotations

from pydantic import Field

from adapters.kafka.settings import KafkaSettings
from pipelines.runtime.settings import HomeSettings, ListenSettings, RetrySettings, SitesSettings


class WorkerSettings(KafkaSettings, HomeSettings, RetrySettings, ListenSettings, SitesSettings):
    """The stream worker."""

    window: int = Field(default=16, ge=1, le=64, description="Messages of a partition that a stage works on at once.")
    in_flight_records: int = Field(
        default=512, ge=64, description="Messages a stage holds in one process, of all its partitions together."
    )
    in_flight_bytes: int = Field(
        default=64 * 1024 * 1024, ge=16 * 1024 * 1024, description="The same in bytes; the largest is 8 MiB."
    )
    try_timeout: float = Field(
        default=60.0, gt=0, description="Seconds one try at a message may take without getting on."
    )
    drain_timeout: float = Field(
        default=10.0,
        gt=0,
        le=40,
        description="Seconds work may go on when a worker stops or loses partitions.",
    )
    stall_timeout: float = Field(
        default=120.0,
        gt=0,
        description="Seconds without progress, in spite of waiting messages, until a worker ends itself.",
    )
    static_membership: str | None = Field(
        default=None, description="Stable member name of this process (StatefulSets)."
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="A port of its own for the metrics of a worker or a gateway. Default: a worker serves none, a "
        "gateway does at its public port.",
    )
