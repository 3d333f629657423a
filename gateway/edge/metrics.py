"""What the edge counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from prometheus_client import Counter, Gauge, Histogram

from pipelines.runtime.metrics import HANDOVERS
from schemas.conversation import Rating

REQUEST_SECONDS = Histogram(
    "pagewire_http_request_seconds",
    "Time until a response was complete; of a stream, until it began.",
    ("method", "route", "status"),
    buckets=(0.002, 0.005, 0.015, 0.04, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
FEEDBACK = Counter(
    "pagewire_feedback_total", "What visitors said of answers: up or down, each time they said it.", ("site", "rating")
)
MCP_CALLS = Counter(
    "pagewire_mcp_calls_total",
    "Calls of the MCP server's tools, and of its resources what was refused; `refused` is empty, or a problem's code.",
    ("tool", "refused"),
)
OPEN_STREAMS = Gauge("pagewire_answer_streams", "Answers being streamed to visitors.")


def begin(sites: Iterable[str]) -> None:
    """Say 0 of what has not happened yet: the first rating is an increase only where there was a 0 before it.

    Args:
        sites: what metrics call them.
    """
    for site in sites:
        for rating in get_args(Rating):
            FEEDBACK.labels(site, rating)
        HANDOVERS.labels(site, "kept")
