"""Where a trace begins: taken over from the caller or made at the edge.

It follows W3C Trace Context (https://www.w3.org/TR/trace-context/): 32 lower-case hex digits, not all zero.
"""

from __future__ import annotations

import re
import secrets

from pipelines.runtime.record import trace_id

__all__ = ["trace_from", "trace_id"]

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def trace_from(traceparent: str | None) -> str:
    """The caller's trace id, or a new one when there is none or it is malformed."""
    match = _TRACEPARENT.match(traceparent or "")
    if match and match[1] != "0" * 32:
        return match[1]
    return secrets.token_hex(16)
