"""A message as a stage receives it: raw bytes and their position in the log."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, get_args

# 32 lower-case hex digits (W3C Trace Context); empty outside of any request.
trace_id: ContextVar[str] = ContextVar("trace_id", default="")


TRACE_HEADER = "pagewire-trace"
# Bulk work (imports, repairs) has consumers of its own, so that an editor's save need not wait for it.
LANE_HEADER = "pagewire-lane"
Lane = Literal["save", "bulk"]
LANES: tuple[Lane, ...] = get_args(Lane)

# As on the wire: Kafka allows a header name twice and null values, and dead letters keep both.
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Record:
    """One message of a topic. `topic` is the broker's name, prefix included."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int = 0
    # True only if no earlier try is possible: this is the first one, and the message was written after its partition
    # was assigned to this worker.
    fresh: bool = False
    attempt: int = 1  # tries of this worker, from 1
    # Where it was parked: partition and offset among the dead letters of its topic; None: it comes from the topic.
    letter: tuple[int, int] | None = None

    def header(self, name: str) -> bytes | None:
        """The last value of a header, None when absent."""
        return next((value for key, value in reversed(self.headers) if key == name), None)

    @property
    def trace_id(self) -> str:
        """The sender's trace, else one that is the same at every replay of this record."""
        given = self.header(TRACE_HEADER)
        if given:
            return given.decode("ascii", "replace")
        return blake2b(f"{self.topic}/{self.partition}/{self.offset}".encode(), digest_size=16).hexdigest()

    @property
    def lane(self) -> Lane:
        return lane_of(self.headers)

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


def lane_of(headers: Iterable[tuple[str, bytes | None]]) -> Lane:
    """The lane that headers name; a record without one, or with an unknown one, is a save."""
    lane: Lane = "save"
    for name, value in headers:
        if name == LANE_HEADER:
            lane = "bulk" if value == b"bulk" else "save"
    return lane


def in_lane(headers: Headers, lane: Lane) -> Headers:
    """The headers with this lane; a save needs no header."""
    others = tuple((name, value) for name, value in headers if name != LANE_HEADER)
    return others if lane == "save" else (*others, (LANE_HEADER, lane.encode()))
