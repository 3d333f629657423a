"""Settings, folders and status of the local engine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from infra.engine.errors import InvalidEngineSetting
from infra.running import engine_root
from text.user_cache import user_cache

DEFAULT_KAFKA_PORT = 19092
DEFAULT_ES_PORT = 19200
# Keeps the resident memory of both below 1.6 GiB: heap + ~200 MB (Kafka), + ~250 MB (Elasticsearch).
DEFAULT_KAFKA_HEAP = "320m"
DEFAULT_ES_HEAP = "640m"

HEAP_SIZE = re.compile(r"[1-9][0-9]*[mMgG]")
SEPARATORS = ",:"  # in Kafka's and Elasticsearch's lists of folders, in Java's class and module paths


def default_cache() -> Path:
    """The user's cache folder for downloaded jars."""
    return user_cache() / "engine"


@dataclass(frozen=True)
class LocalEngineSettings:
    """Settings of one local engine; raises `InvalidEngineSetting`.

    `home` is PAGEWIRE_HOME, ports are tried first, heaps are Java sizes such as "320m" or "1g".
    """

    home: Path
    kafka_port: int = DEFAULT_KAFKA_PORT
    es_port: int = DEFAULT_ES_PORT
    kafka_heap: str = DEFAULT_KAFKA_HEAP
    es_heap: str = DEFAULT_ES_HEAP
    cache: Path = field(default_factory=default_cache)

    def __post_init__(self) -> None:
        for name, port in (("KAFKA_PORT", self.kafka_port), ("ES_PORT", self.es_port)):
            if not 0 < port < 65536:
                raise InvalidEngineSetting(f"PAGEWIRE_ENGINE_{name}", port, "a port is 1 to 65535")
        if self.kafka_port == self.es_port:
            raise InvalidEngineSetting("PAGEWIRE_ENGINE_ES_PORT", self.es_port, "Kafka has the same port")
        for name, heap in (("KAFKA_HEAP", self.kafka_heap), ("ES_HEAP", self.es_heap)):
            if not HEAP_SIZE.fullmatch(heap):
                raise InvalidEngineSetting(f"PAGEWIRE_ENGINE_{name}", heap, "write a size as 320m or 1g")
        for name, folder in (("PAGEWIRE_HOME", self.home), ("XDG_CACHE_HOME", self.cache)):
            if any(mark in str(folder.resolve()) for mark in SEPARATORS):
                raise InvalidEngineSetting(name, folder.resolve(), "Java's paths allow no comma and no colon")

    @property
    def root(self) -> Path:
        """The absolute folder of all files of this engine."""
        return engine_root(self.home)


@dataclass(frozen=True)
class ServerStatus:
    """The status of one server; `url`, `port`, `pid` and `rss_bytes` are None if it does not run."""

    name: str
    version: str
    running: bool
    healthy: bool
    url: str | None
    port: int | None
    pid: int | None
    rss_bytes: int | None
    data_dir: Path
    log_file: Path


@dataclass(frozen=True)
class EngineStatus:
    """The status of both servers; `running`: both processes exist."""

    running: bool
    kafka: ServerStatus
    elasticsearch: ServerStatus
