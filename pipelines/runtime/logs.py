"""Log lines of every process: one per event, with stage, record and trace, never with message contents."""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from time import monotonic
from typing import Annotated, Any, Literal, TextIO

from pydantic import BeforeValidator, Field

from pipelines.runtime.settings import SettingsGroup

# Libraries that log the same outage ten times a second, or every line they read. Faust's services log under the module
# of our subclass.
CHATTY = (
    "uvicorn",
    "aiokafka",
    "faust",
    "mode",
    "worker.faust_app",
    "elastic_transport",
    "httpx",
    "httpcore",
    "openai",
    "markdown_it",
    "opentelemetry",
    "urllib3",
)
# Logged and retried until a new broker has made its own topics, and leads the partitions of ours: about a second.
EXPECTED = ("GroupCoordinatorNotAvailableError", "Marking the coordinator dead", "NotLeaderForPartitionError")
OUTAGE_LOGS_PER = 10.0  # seconds between two lines from the same place of a chatty library


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


class LogSettings(SettingsGroup):
    """What is logged, and how."""

    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"
    log_json: bool = Field(default=False, description="Logs as JSON lines.")


class OncePer(logging.Filter):
    """Passes one line per place in the code and period, and counts the others."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._last: dict[tuple[str, int], float] = {}
        self._held: defaultdict[tuple[str, int], int] = defaultdict(int)

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(CHATTY):
            return True
        if any(expected in record.getMessage() for expected in EXPECTED):
            return False
        place = (record.pathname, record.lineno)
        now = monotonic()
        last = self._last.get(place)
        if last is not None and now - last < self._seconds:
            self._held[place] += 1
            return False
        self._last[place] = now
        if held := self._held.pop(place, 0):
            record.msg = f"{record.getMessage()} (and {held} more like it)"
            record.args = ()
        return True


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`: a progress bar replaces it, and keeps log lines above itself."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        """The handler's own constructor sets one."""


def configure(settings: LogSettings) -> None:
    """Send structlog's and the libraries' logs to stderr, as text or JSON lines."""
    import structlog  # here, because the settings alone do not need it

    level = getattr(logging, settings.log_level.upper())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    # A traceback by rich, structlog's default, contains the values of all variables, with visitors' words and keys, and
    # blocks the event loop for many seconds.
    plain = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    render: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()] if settings.log_json else [plain]
    )
    handler = _Stderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    handler.addFilter(OncePer(OUTAGE_LOGS_PER))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
