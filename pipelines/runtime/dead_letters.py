"""Dead letters: the message untouched, and in its headers why it could not be worked on.

In the manner of Kafka Connect's `__connect.errors.*`: key, value and headers stay byte for byte, so that
a redrive can put the message back as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pipelines.runtime.errors import PagewireError
from pipelines.runtime.record import Headers, Record
from schemas.base import WireError

PREFIX = "pagewire.errors."
MAX_ERROR_TEXT = 2_000  # characters; the topic has 1 MiB to spare for all headers
WIRE_ERROR_CODE = "bad-message"
UNEXPLAINED_CODE = "unexplained"


@dataclass(frozen=True)
class DeadLetter:
    """Why and where a record failed. Times are UTC."""

    stage: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    error_class: str
    code: str
    message: str
    attempts: int
    first_failed_at: datetime
    last_failed_at: datetime


def describe(record: Record, stage: str, error: BaseException, attempts: int, first_failed_at: datetime) -> DeadLetter:
    """The dead letter of a record that `stage` gives up on now."""
    if isinstance(error, PagewireError):
        code = error.code
    else:
        code = WIRE_ERROR_CODE if isinstance(error, WireError) else UNEXPLAINED_CODE
    return DeadLetter(
        stage=stage,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        error_class=f"{type(error).__module__}.{type(error).__qualname__}",
        code=code,
        message=(str(error) or type(error).__name__)[:MAX_ERROR_TEXT],
        attempts=attempts,
        first_failed_at=first_failed_at,
        last_failed_at=datetime.now(UTC),
    )


def to_headers(original: Headers, letter: DeadLetter) -> Headers:
    """The record's own headers, then the reason. Reasons of an earlier failure (a redrive) are replaced."""
    reason = {
        "stage": letter.stage,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp_ms,
        "class": letter.error_class,
        "code": letter.code,
        "message": letter.message,
        "attempts": letter.attempts,
        "first_failed_at": letter.first_failed_at.isoformat(),
        "last_failed_at": letter.last_failed_at.isoformat(),
    }
    return original_headers(original) + tuple(
        (PREFIX + name, str(value).encode("utf-8", "replace")) for name, value in reason.items()
    )


def original_headers(headers: Headers) -> Headers:
    """The headers without the reason: what a redrive sends."""
    return tuple((name, value) for name, value in headers if not name.startswith(PREFIX))


def from_headers(headers: Headers) -> DeadLetter:
    """Read the reason back.

    Raises:
        WireError: not a dead letter of ours; names the header.
    """
    found = {name.removeprefix(PREFIX): value for name, value in headers if name.startswith(PREFIX)}

    def text(name: str) -> str:
        value = found.get(name)
        if value is None:
            raise WireError(f"not a dead letter: header {PREFIX}{name} is missing")
        return value.decode("utf-8", "replace")

    try:
        return DeadLetter(
            stage=text("stage"),
            topic=text("topic"),
            partition=int(text("partition")),
            offset=int(text("offset")),
            timestamp_ms=int(text("timestamp")),
            error_class=text("class"),
            code=text("code"),
            message=text("message"),
            attempts=int(text("attempts")),
            first_failed_at=datetime.fromisoformat(text("first_failed_at")),
            last_failed_at=datetime.fromisoformat(text("last_failed_at")),
        )
    except WireError:
        raise
    except ValueError as err:
        raise WireError(f"not a dead letter: {err}") from err
