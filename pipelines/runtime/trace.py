"""The trace id of the current work, from the HTTP request to the citation; between processes a Kafka header."""

from __future__ import annotations

from contextvars import ContextVar

# 32 lower-case hex digits (W3C Trace Context); empty outside of any request.
trace_id: ContextVar[str] = ContextVar("trace_id", default="")
