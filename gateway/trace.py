"""The trace id of the work at hand: made or taken over at the edge, then carried by whatever the edge calls.

It follows W3C Trace Context (https://www.w3.org/TR/trace-context/): 32 lower-case hex digits, not all zero.
"""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar

trace_id: ContextVar[str] = ContextVar("trace_id", default="")

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def trace_from(traceparent: str | None) -> str:
    """The caller's trace id, or a new one when there is none or it is malformed."""
    match = _TRACEPARENT.match(traceparent or "")
    if match and match[1] != "0" * 32:
        return match[1]
    return secrets.token_hex(16)
