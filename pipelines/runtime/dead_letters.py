"""Dead letters: the unchanged message, with headers that say why it failed or is parked.

As with Kafka Connect's `__connect.errors.*`, key, value and headers stay byte for byte, so that a redrive can put the
message back as it was. The outcome of a letter is a record of its own behind it, a mark:

```
 <topic>.dlq   letter 17 ─ letter 18 ─ mark {settles: 17, action: redriven}
 <topic>       the message of 17 again, in its old partition, with its earlier failures in pagewire.redriven.*
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

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
SHORTENED = {"timestamp_ms": "timestamp", "error_class": "class"}  # fields, as headers call them


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError as err:
        raise ValueError("is out of range") from err


Number = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Moment = Annotated[datetime, AfterValidator(_in_utc)]


@dataclass(frozen=True)
class DeadLetter:
    """Why and where a record failed. Times are UTC.

    `attempts` and `first_failed_at` cover its whole life, across `redrives`.
    """

    stage: str
    topic: str
    partition: Number
    offset: Number
    timestamp_ms: Number
    error_class: str
    code: str
    message: str
    attempts: Number
    first_failed_at: Moment
    last_failed_at: Moment
    redrives: Number = 0  # letters of older versions have none
    parked: bool = False  # not dead: its stage retries it by itself


@dataclass(frozen=True)
class Mark:
    """The outcome of the letter at offset `settles` of the mark's own partition."""

    settles: Number
    action: Action
    at: Moment


@dataclass(frozen=True)
class UnreadableLetter:
    """A record in a dead letter topic that is neither a letter nor a mark."""

    why: str


@dataclass(frozen=True)
class _History:
    """Of a redriven message, before."""

    times: Number
    attempts: Number
    first_failed_at: Moment


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
    before = _history(record.headers)
    return DeadLetter(
        stage=stage,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        error_class=f"{type(error).__module__}.{type(error).__qualname__}",
        code=code_of(error),
        message=(str(error) or type(error).__name__)[:MAX_ERROR_TEXT],
        attempts=attempts + (before.attempts if before else 0),
        first_failed_at=before.first_failed_at if before else first_failed_at,
        last_failed_at=datetime.now(UTC),
        redrives=before.times if before else 0,
        parked=parked,
    )


def to_headers(original: Headers, letter: DeadLetter) -> Headers:
    """The record's own headers, then the reason. Reasons of an earlier failure (a redrive) are replaced."""
    reason = asdict(letter) | {"parked": "yes" if letter.parked else None}
    return original_headers(original) + _headers(PREFIX, reason)


def original_headers(headers: Headers) -> Headers:
    """The headers as the message first came, without ours."""
    return tuple((name, value) for name, value in headers if not name.startswith((PREFIX, HISTORY_PREFIX)))


def redrive_headers(headers: Headers, letter: DeadLetter) -> Headers:
    """The original headers and the letter's history, so that a new failure continues the counts."""
    past = _History(letter.redrives + 1, letter.attempts, letter.first_failed_at)
    return original_headers(headers) + _headers(HISTORY_PREFIX, asdict(past))


def mark_headers(mark: Mark) -> Headers:
    return _headers(MARK_PREFIX, asdict(mark))


def from_headers(headers: Headers) -> DeadLetter:
    """Read the reason back.

    Raises:
        WireError: not a dead letter of ours; names the header.
    """
    return _found(DeadLetter, headers, PREFIX, "a dead letter")


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
    return before.times if (before := _history(headers)) else 0


def _mark(record: Record) -> Mark:
    mark = _found(Mark, record.headers, MARK_PREFIX, "a mark")
    if mark.settles >= record.offset:
        raise WireError(f"not a mark: {mark.action!r} of offset {mark.settles}")
    return mark


def _history(headers: Headers) -> _History | None:
    """None: it was not redriven."""
    if not any(name.startswith(HISTORY_PREFIX) for name, _ in headers):  # each try asks
        return None
    try:
        return _found(_History, headers, HISTORY_PREFIX, "a redriven message")
    except WireError:
        return None


def _headers(prefix: str, values: Mapping[str, object]) -> Headers:
    """Headers of these values, without None."""
    given = {SHORTENED.get(name, name): value for name, value in values.items() if value is not None}
    texts = {name: at.isoformat() if isinstance(at, datetime) else str(at) for name, at in given.items()}
    return tuple((prefix + name, text.encode("utf-8", "replace")) for name, text in texts.items())


Kept = TypeVar("Kept")
_READERS: dict[type, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in (DeadLetter, Mark, _History)}


def _found(kind: type[Kept], headers: Headers, prefix: str, what: str) -> Kept:
    """Read the headers with this prefix. Raises: WireError: names the header."""
    names = {short: name for name, short in SHORTENED.items()}
    values = {
        names.get(name, name): None if value is None else value.decode("utf-8", "replace")
        for name, value in ((key.removeprefix(prefix), value) for key, value in headers if key.startswith(prefix))
    }
    try:
        found: Kept = _READERS[kind].validate_python(values)
        return found
    except ValidationError as err:
        first = err.errors(include_url=False)[0]
        name = str(first["loc"][0])
        said = f"{first['msg']}, not {given[:50]!r}" if (given := values.get(name)) else first["msg"]
        raise WireError(f"not {what}: header {prefix}{SHORTENED.get(name, name)}: {said}") from None
