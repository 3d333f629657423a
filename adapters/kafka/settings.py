"""Where Kafka is, and how topics are made in it."""

from __future__ import annotations

from pydantic import Field

from pipelines.runtime.settings import SettingsGroup


class KafkaSettings(SettingsGroup):
    """The bus."""

    kafka: str | None = Field(default=None, description="Bootstrap servers `host:port,...`; default: the local engine.")
    topic_prefix: str = Field(default="", pattern=r"^[A-Za-z0-9._-]*$", description="Put before every topic and group.")
    partitions: int = Field(default=4, ge=1, le=1000, description="Partitions of new topics.")
    replication: int = Field(default=1, ge=1, description="Copies of new topics (3 in production).")
