"""Dead letters: the unchanged message, with headers that say why it failed or is parked.

As with Kafka Connect's `__connect.errors.*`, key, value and headers stay byte for byte, so that a redrive can put the
message back as it was. The outcome of a letter is a record of its own behind it, a mark:

```
 <topic>.dlq   letter 17 ─ letter 18 ─ mark {settles: 17, action: redriven}
 <topic>       the message of 17 again, in its old partition, with its earlier failures in pagewire.redriven.*
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import get_args

from pipelines.runtime.errors import Kind, PagewireError
from pipelines.runtime.record import Headers, Record
from schemas.base import WireError
from schemas.letters import Action

PREFIX = "pagewire.errors."
HISTORY_PREFIX = "pagewire.redriven."  # on a redriven message
MARK_PREFIX = "pagewire.letter."  # on a mark
MAX_ERROR_TEXT = 2_000  # characters; the topic has 1 MiB to spare for all headers
WIRE_ERROR_CODE = "bad-message"
UNEXPLAINED_CODE = "unexplained"


@dataclass(frozen=True)
class DeadLetter:
    """Why and where a record failed. Times are UTC.

    `attempts` and `first_failed_at` cover its whole life, across `redrives`.
    """

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
    redrives: int = 0
    parked: bool = False  # not dead: its stage retries it by itself


@dataclass(frozen=True)
class Mark:
    """The outcome of the letter at offset `settles` of the mark's own partition."""

    settles: int
    action: Action
    at: datetime


@dataclass(frozen=True)
class UnreadableLetter:
    """A record in a dead letter topic that is neither a letter nor a mark."""

    why: str


def kind_of(error: BaseException) -> Kind:
    """The kind of a handler's error."""
    if isinstance(error, PagewireError):
        return error.kind
    return Kind.RECORD if isinstance(error, WireError) else Kind.UNKNOWN


def code_of(error: BaseException) -> str:
    """The stable code of a handler's error."""
    if isinstance(error, PagewireError):
        return error.code
    return WIRE_ERROR_CODE if isinstance(error, WireError) else UNEXPLAINED_CODE


def describe(
    record: Record, stage: str, error: BaseException, attempts: int, first_failed_at: datetime, *, parked: bool = False
) -> DeadLetter:
    """The dead letter of a record that `stage` gives up on now, or parks."""
    redrives, attempts_before, first_ever = _history(record.headers)
    return DeadLetter(
        stage=stage,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        error_class=f"{type(error).__module__}.{type(error).__qualname__}",
        code=code_of(error),
        message=(str(error) or type(error).__name__)[:MAX_ERROR_TEXT],
        attempts=attempts_before + attempts,
        first_failed_at=first_ever or first_failed_at,
        last_failed_at=datetime.now(UTC),
        redrives=redrives,
        parked=parked,
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
        "redrives": letter.redrives,
        "first_failed_at": letter.first_failed_at.isoformat(),
        "last_failed_at": letter.last_failed_at.isoformat(),
    } | ({"parked": "yes"} if letter.parked else {})
    return original_headers(original) + _headers(PREFIX, reason)


def original_headers(headers: Headers) -> Headers:
    """The headers as the message first came, without ours."""
    return tuple((name, value) for name, value in headers if not name.startswith((PREFIX, HISTORY_PREFIX)))


def redrive_headers(headers: Headers, letter: DeadLetter) -> Headers:
    """The original headers and the letter's history, so that a new failure continues the counts."""
    past = {
        "times": letter.redrives + 1,
        "attempts": letter.attempts,
        "first_failed_at": letter.first_failed_at.isoformat(),
    }
    return original_headers(headers) + _headers(HISTORY_PREFIX, past)


def mark_headers(mark: Mark) -> Headers:
    return _headers(MARK_PREFIX, {"settles": mark.settles, "action": mark.action, "at": mark.at.isoformat()})


def from_headers(headers: Headers) -> DeadLetter:
    """Read the reason back.

    Raises:
        WireError: not a dead letter of ours; names the header.
    """
    found = _Found(headers, PREFIX, "a dead letter")
    return DeadLetter(
        stage=found.text("stage"),
        topic=found.text("topic"),
        partition=found.number("partition"),
        offset=found.number("offset"),
        timestamp_ms=found.number("timestamp"),
        error_class=found.text("class"),
        code=found.text("code"),
        message=found.text("message"),
        attempts=found.number("attempts"),
        first_failed_at=found.time("first_failed_at"),
        last_failed_at=found.time("last_failed_at"),
        redrives=found.number("redrives") if "redrives" in found else 0,  # letters of older versions have none
        parked="parked" in found,
    )


def entry(record: Record) -> DeadLetter | Mark | UnreadableLetter:
    """Parse a record of a dead letter topic. Any program may have written it, so nothing in it is trusted."""
    names = {name for name, _ in record.headers}
    try:
        # The letter's headers first: a message may bring headers of any name, and keeps them.
        if PREFIX + "stage" not in names and MARK_PREFIX + "settles" in names:
            return _mark(record)
        return from_headers(record.headers)
    except WireError as err:
        return UnreadableLetter(str(err))


def redrives_of(headers: Headers) -> int:
    """How often the message was redriven."""
    return _history(headers)[0]


def _mark(record: Record) -> Mark:
    found = _Found(record.headers, MARK_PREFIX, "a mark")
    action = next((a for a in get_args(Action) if a == found.text("action")), None)
    settles = found.number("settles")
    if action is None or settles >= record.offset:
        raise WireError(f"not a mark: {found.text('action')!r} of offset {settles}")
    return Mark(settles, action, found.time("at"))


def _history(headers: Headers) -> tuple[int, int, datetime | None]:
    """Redrives, attempts and first failure before; a message that was not redriven has none."""
    found = _Found(headers, HISTORY_PREFIX, "a redriven message")
    try:
        return found.number("times"), found.number("attempts"), found.time("first_failed_at")
    except WireError:
        return 0, 0, None


def _headers(prefix: str, values: Mapping[str, object]) -> Headers:
    return tuple((prefix + name, str(value).encode("utf-8", "replace")) for name, value in values.items())


class _Found:
    """Headers with a prefix. All methods raise WireError, naming the header."""

    def __init__(self, headers: Headers, prefix: str, what: str) -> None:
        self._values = {name.removeprefix(prefix): value for name, value in headers if name.startswith(prefix)}
        self._prefix = prefix
        self._what = what

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if value is None:
            raise WireError(f"not {self._what}: header {self._prefix}{name} is missing")
        return value.decode("utf-8", "replace")

    def number(self, name: str) -> int:
        text = self.text(name)
        if not re.fullmatch(r"-?[0-9]{1,19}", text):
            raise self._unfit(name)
        return int(text)

    def time(self, name: str) -> datetime:
        text = self.text(name)
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError) as err:
            raise self._unfit(name) from err

    def _unfit(self, name: str) -> WireError:
        return WireError(f"not {self._what}: header {self._prefix}{name} is {self.text(name)[:50]!r}")
