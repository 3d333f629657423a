"""A dead letter for display: a line of a list, its details, and the effect of its change on the page."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter

from pipelines.ingest.ports import KnownPages
from pipelines.runtime.bus import LogReader
from pipelines.runtime.dead_letters import DeadLetter, Mark, UnreadableLetter
from pipelines.runtime.errors import Retryable, WrongUse
from pipelines.runtime.record import Record
from schemas.base import MAX_REVISION, Message, SiteId, WireError
from schemas.head import Head
from schemas.ingest import PageChunks, PageEmbeddings, ReceiptEvent
from schemas.keys import PageAddress, ahead_key, page_of_part, parse_page_key, part_key
from schemas.letters import UNREADABLE, DeadLetterDetail, DeadLetterSummary, LetterHeader, RevisionDiff
from schemas.page import ChangeRef, PageChange
from schemas.query import Question, Rephrased, Retrieved
from schemas.topics import CHANGES, Topic
from text.diff import Page, page_diff

MAX_TEXT = 4_000  # characters of a value that is no message
MAX_HEX = 256  # bytes of one that is no text either
VECTOR_START = 12  # characters of a vector's base64

_SITE: TypeAdapter[str] = TypeAdapter(SiteId)


def letter_id(topic: Topic, partition: int, offset: int) -> str:
    """The letter at this place among the dead letters of `topic`, for example `cms.changes/0/17`."""
    return f"{topic.name}/{partition}/{offset}"


def page_of_key(key: bytes | None) -> PageAddress | None:
    """The page that a message's key names; None when it names none."""
    try:
        address = parse_page_key(page_of_part((key or b"").decode()))
        _SITE.validate_python(address.site)
    except ValueError:  # of the bytes, the parts or the site
        return None
    return address


def summary(topic: Topic, record: Record, found: DeadLetter | UnreadableLetter, mark: Mark | None) -> DeadLetterSummary:
    """One line of a list."""
    address = page_of_key(record.key)
    known = found if isinstance(found, DeadLetter) else None
    return DeadLetterSummary(
        id=letter_id(topic, record.partition, record.offset),
        topic=topic.name,
        state=mark.action if mark else "parked" if known and known.parked else "open",
        stage=known.stage if known else None,
        code=known.code if known else UNREADABLE,
        message=found.message if isinstance(found, DeadLetter) else found.why,
        key=None if record.key is None else record.key.decode("utf-8", "replace"),
        site=address.site if address else None,
        lang=address.lang if address else None,
        page_id=address.page_id if address else None,
        attempts=known.attempts if known else None,
        redrives=known.redrives if known else 0,
        first_failed_at=known.first_failed_at if known else None,
        last_failed_at=known.last_failed_at if known else _written_at(record),
        size=len(record.value or b""),
        handled_at=mark.at if mark else None,
    )


def detail(
    topic: Topic,
    record: Record,
    found: DeadLetter | UnreadableLetter,
    mark: Mark | None,
    diff: RevisionDiff | None,
    *,
    full: bool,
) -> DeadLetterDetail:
    """All details; without `full` vectors and undecodable values are cut."""
    known = found if isinstance(found, DeadLetter) else None
    value, problem = _message(topic, record.value, full=full)
    return DeadLetterDetail(
        letter=summary(topic, record, found, mark),
        error_class=known.error_class if known else None,
        source_partition=known.partition if known else None,
        source_offset=known.offset if known else None,
        headers=tuple(LetterHeader(name=name, value=_text(header)) for name, header in record.headers),
        value=value,
        text=_text(record.value, limit=None if full else MAX_TEXT) if problem else None,
        problem=problem,
        diff=diff,
    )


async def compare(topic: Topic, record: Record, heads: KnownPages, changes: LogReader) -> RevisionDiff | None:
    """The diff from the page's revision in the live index to the letter's change; None: not about a page."""
    address = page_of_key(record.key)
    if address is None:
        return None
    key = page_of_part((record.key or b"").decode())
    try:
        new = await _version_of(topic, record, changes)
        head = (await heads.heads(address.site, [key])).get(key)
        old = await _in_log(head.change, changes) if head and head.state == "live" else None
    except Retryable as err:
        return RevisionDiff(last_good=None, revision=None, note=f"cannot be compared now: {err}")
    last_good = head.change.revision if head else None
    note = _note(head, old, new)
    lines: tuple[str, ...] = ()
    if old and new and new.readable:
        name = "dead letter" if new.revision is None else f"revision {new.revision} (dead letter)"
        lines = await asyncio.to_thread(page_diff, old.page, new.page, f"revision {last_good} (in the index)", name)
    return RevisionDiff(last_good=last_good, revision=new.revision if new else None, lines=lines, note=note)


@dataclass(frozen=True)
class _Version:
    """A page at a revision; `page` None: deleted."""

    revision: int | None
    page: Page | None
    readable: bool = True


def _note(head: Head | None, old: _Version | None, new: _Version | None) -> str:
    if head is None:
        return "there is no last good revision: the index shows nothing of this page"
    shown = head.change.revision
    if head.state == "deleted":
        return f"there is no last good revision: the page is deleted, as of revision {shown}"
    if old is None:
        return f"the last good revision {shown} is not in {CHANGES.name} any more"
    if new is None:
        return f"the letter's change is not in {CHANGES.name} any more"
    if not new.readable:
        return "the letter's value is no page"
    if new.revision is not None and new.revision <= shown:
        return (
            f"the index shows revision {shown} already: redriven, the letter does not change the page's own text; "
            "attachments that could not be read are read again"
        )
    return ""


async def _version_of(topic: Topic, record: Record, changes: LogReader) -> _Version | None:
    """The page after the letter's change; None: the change is no longer in the log."""
    if topic == CHANGES:
        return _change(record.value)
    assert topic.value
    try:
        message = topic.value.decode(record.value)
    except WireError:
        return _Version(None, None, readable=False)
    if isinstance(message, PageChunks | PageEmbeddings | ReceiptEvent):
        return await _in_log(message.change, changes)
    return _Version(None, None, readable=False)


def _change(value: bytes | None) -> _Version:
    """Parse without the schema: a change that it refuses may still contain a page to compare."""
    try:
        return _version(PageChange.decode(value))
    except WireError:
        pass
    try:
        loose = json.loads(value or b"")
        page, revision = loose["page"], loose.get("revision")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return _Version(None, None, readable=False)
    fits = type(revision) is int and 0 <= revision <= MAX_REVISION
    return _Version(revision if fits else None, page if isinstance(page, dict) else None, isinstance(page, dict))


async def _in_log(ref: ChangeRef, changes: LogReader) -> _Version | None:
    records = await changes.read(ref.partition, ref.offset, ref.offset + 1)
    try:
        change = PageChange.decode(records[0].value) if records else None
    except WireError:
        return None
    if change is None or (change.page_key, change.revision) != (ref.page_key, ref.revision):
        return None
    return _version(change)


def _version(change: PageChange) -> _Version:
    return _Version(change.revision, change.page.model_dump(mode="json") if change.page else None)


def _message(topic: Topic, value: bytes | None, *, full: bool) -> tuple[Any, str | None]:
    """The value as JSON, or the reason why it is no message of its topic."""
    assert topic.value
    try:
        found: dict[str, Any] = topic.value.decode(value).model_dump(mode="json")
    except WireError as err:
        return None, str(err)
    if not full and topic.value is PageEmbeddings:
        for chunk in found["chunks"]:
            chunk["vector"] = f"{chunk['vector'][:VECTOR_START]}... {len(chunk['vector'])} characters of base64"
    return found, None


def _text(value: bytes | None, limit: int | None = MAX_TEXT) -> str | None:
    """UTF-8 text, else hex."""
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        shown = "0x" + value[:MAX_HEX].hex()
        return shown if len(value) <= MAX_HEX else f"{shown}... {len(value):,} bytes"
    return text if limit is None or len(text) <= limit else f"{text[:limit]}... {len(text):,} characters"


def _written_at(record: Record) -> datetime:
    """Kafka's timestamp, which any writer may choose freely."""
    try:
        return datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


class BadValue(WrongUse):
    """The corrected value is no message of the letter's topic and key."""

    code = "bad-value"


def checked(topic: Topic, key: bytes | None, value: bytes) -> bytes:
    """The bytes of a corrected value. Raises: BadValue: not a message of `topic`, or not of this key."""
    assert topic.value
    try:
        message = topic.value.decode(value, strict=True)
    except WireError as err:
        raise BadValue(str(err)) from err
    if _key_of(message).encode() != key:
        ours = (key or b"").decode(errors="replace")
        raise BadValue(f"the value's key is {_key_of(message)!r}, the letter's is {ours!r}: another page or part")
    return message.encode()


def _key_of(message: Message) -> str:
    """The key of a message in its topic (docs/reference/topics.md)."""
    match message:
        case PageChange():
            return message.page_key
        case PageEmbeddings():
            key = message.change.page_key
            return ahead_key(key) if message.ahead else part_key(key, message.part)
        case PageChunks() | ReceiptEvent():
            return message.change.page_key
        case Question():
            return message.conversation_id
        case Rephrased() | Retrieved():
            return message.request.conversation_id
        case _:
            raise TypeError(f"no topic with dead letters carries {type(message).__name__}")
