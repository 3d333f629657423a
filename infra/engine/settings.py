"""Settings, folders and status of the local engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from infra.running import engine_root
from pipelines.runtime.errors import SettingsError
from text.user_cache import user_cache

SEPARATORS = ",:"  # in Kafka's and Elasticsearch's lists of folders, in Java's class and module paths


def default_cache() -> Path:
    """The user's cache folder for downloaded jars."""
    return user_cache() / "engine"


@dataclass(frozen=True)
class LocalEngineSettings:
    """Settings of one local engine. Raises: SettingsError: a folder's path does not suit Java.

    `home` is PAGEWIRE_HOME, ports are tried first, heaps are Java sizes such as "320m" or "1g"; wiring.settings has
    checked them.
    """

    home: Path
    kafka_port: int = 19092
    es_port: int = 19200
    # Keeps the resident memory of both below 1.6 GiB: heap + ~200 MB (Kafka), + ~250 MB (Elasticsearch).
    kafka_heap: str = "320m"
    es_heap: str = "640m"
    cache: Path = field(default_factory=default_cache)

    def __post_init__(self) -> None:
        for name, folder in (("PAGEWIRE_HOME", self.home), ("XDG_CACHE_HOME", self.cache)):
            if any(mark in str(folder.resolve()) for mark in SEPARATORS):
                raise SettingsError(
                    f"{name}={folder.resolve()} is not usable: Java's paths allow no comma and no colon."
                )

    @property
    def root(self) -> Path:
        """The absolute folder of all files of this engine."""
        return engine_root(self.home)


@dataclass(frozen=True)
class ServerStatus:
    """The status of one server; `url`, `port`, `pid` and `rss_bytes` are None if it does not run."""

    name: str
    version: str
    data_dir: Path
    log_file: Path
    running: bool = False
    healthy: bool = False
    url: str | None = None
    port: int | None = None
    pid: int | None = None
    rss_bytes: int | None = None


@dataclass(frozen=True)
class EngineStatus:
    """The status of both servers; `running`: both processes exist."""

    running: bool
    kafka: ServerStatus
    elasticsearch: ServerStatus
