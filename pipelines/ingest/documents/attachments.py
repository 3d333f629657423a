"""Attachments: the files of a page become text that goes on behind its own, each piece with the place it stands at.

                    ┌ turned away by its name or type = a note
    attachment ─────┴─▶ room for its bytes? ─▶ fetched (never from behind our walls), ─▶ read in a child process
                        waits, saves first     from the site's folder, or decoded           │   one at a time
                          ▲                      └ turned away by its headers              ├─▶ pieces with places
                          └──────────── its bytes are gone ◀───────────────────────────────┴─▶ a note; for what is
                                                                                               damaged or a bomb
                                                                                               a dead letter, too
A page is searchable without the attachments that cannot be read. What was read travels in ingest.chunks, so that
nothing is fetched again when an index is made from there.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import unquote

from pipelines.ingest.chunk import AttachmentPiece
from pipelines.ingest.documents.budget import MemoryBudget, MemoryShare
from pipelines.ingest.documents.kinds import (
    SUFFIXES,
    Kind,
    NotADocument,
    charset_of,
    essence,
    expected,
    is_none,
    suffix_of,
)
from pipelines.runtime import errors, metrics
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.folder import Folder, reason
from schemas.page import Attachment, AttachmentPlace, PageDocument
from text.loss import CUT, UNWRITTEN, Words, is_lacking, whole

INSTALL = "make setup-attachments"
MAX_NAME = 200  # characters
# Seconds that the attachments of a page may take to be fetched and read, without those in which they wait for others';
# the chunk stage's limit is above.
PAGE_TIMEOUT = 240.0
_NOT_PATH = re.compile("^[a-z]+://[^/?#]*|[?#].*", re.IGNORECASE)
AT_ONCE = 8  # attachments that are fetched, or fetched and not yet read


class Unread(Permanent):
    """The attachment cannot be read: protected, damaged, not what it is said to be, or too much for the limits."""

    code = "unreadable-attachment"


class AttachmentsAway(Retryable):
    """The servers of some attachments do not answer; the page is searchable without them meanwhile."""

    code = "attachments-away"
    kind = errors.Kind.MOMENT


@dataclass(frozen=True)
class Section:
    """The text at one place of a document."""

    text: str
    label: str = ""  # `3/12`, or the sheet's name: says where, in no language
    page: int | None = None  # that a viewer can open it at, from 1


@dataclass(frozen=True)
class Sections:
    """A document as text, and what is not in that text."""

    sections: tuple[Section, ...]
    cut: str = ""  # of a document that is too long, for editors: the part that was read
    left_out: Mapping[str, int] = field(default_factory=dict)  # `{"hidden rows": 3}`
    seen: int | None = None  # words that its readers see; None: unknown

    @property
    def words(self) -> Words:
        """Words that its readers see, and those that are in the text."""
        indexed = sum(whole(section.text).indexed for section in self.sections)
        lost = max((self.seen or 0) - indexed, 0)
        why = CUT if self.cut else UNWRITTEN
        return Words(indexed + lost, indexed, {why: lost} if lost else {})

    @property
    def note(self) -> str | None:
        """What an editor should know of what is not in the text; None: nothing is missing."""
        left_out = ", ".join(f"{what}: {count:,}" for what, count in self.left_out.items())
        notes = [self.cut and f"too long, {self.cut} is searchable", left_out and f"left out: {left_out}"]
        words = self.words if self.seen else None
        if words and (is_lacking(words) or (words.left_out and any(notes))):
            notes.append(f"{words.indexed:,} of {words.visible:,} words are searchable")
        return "; ".join(filter(None, notes)) or None


class Got(Protocol):
    """What a server sent."""

    @property
    def body(self) -> bytes: ...

    @property
    def content_type(self) -> str:
        """Media type and its parameters, as the server says."""
        ...

    @property
    def length(self) -> int | None:
        """Bytes of the body, where they are known before it is there."""
        ...


class Fetch(Protocol):
    """Fetches what others wrote the URL of (connectors.cms.fetching.SafeFetch)."""

    async def get(self, url: str, *, limit: int, answered: Callable[[Got], None]) -> Got:
        """`answered` gets the server's headers before the body; when it raises, no body is fetched.

        Raises: Retryable, Permanent, what `answered` raises.
        """
        ...

    async def aclose(self) -> None: ...


class Reader(Protocol):
    """Reads documents within limits of time and memory (adapters.extraction.reader.DocumentReader)."""

    def can_read(self, kind: Kind) -> bool:
        """Whether what reads it is installed."""
        ...

    async def read(self, data: bytes, media_type: str, suffix: str, limit: int) -> Sections:
        """At most `limit` characters. Raises: Unread, NotADocument, Missing."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class Limits:
    """What may be read."""

    size: int  # bytes of one attachment
    text: int = 1_000_000  # characters of a page's attachments together
    # Bytes of all attachments together that a process holds at once, fetched and not yet read. Others wait, and a
    # larger one waits until it is alone.
    budget: int = 40 * 1024 * 1024
    folders: Mapping[str, Path] = field(default_factory=dict)  # where `path` attachments of a site may lie


@dataclass(frozen=True)
class Attached:
    """The text of a page's attachments."""

    pieces: tuple[AttachmentPiece, ...] = ()
    notes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()  # those of the notes that somebody should look into
    away: bool = False  # some of these may be readable later


NOTHING = Attached()


class Attachments:
    """One per process: its stages share what there is of memory. Close it."""

    def __init__(self, fetch: Fetch, reader: Reader, limits: Limits) -> None:
        self._fetch = fetch
        self._reader = reader
        self._limits = limits
        self._budget = MemoryBudget(limits.budget, AT_ONCE, metrics.ATTACHMENT_BYTES.set)
        self._turns = MemoryBudget(1, 1)  # to be read

    async def aclose(self) -> None:
        await self._reader.aclose()
        await self._fetch.aclose()

    async def read(self, site: str, page: PageDocument, *, urgent: bool = True) -> Attached:
        """The text of all attachments of a site's page that can be read, and what to say of the others.

        `urgent`: before those of pages that are not.
        """
        pieces: list[AttachmentPiece] = []
        notes: list[str] = []
        failed: list[str] = []
        away, missing = False, 0
        time = _Time(PAGE_TIMEOUT)
        for number, attachment in enumerate(page.attachments):
            name = name_of(attachment, number)
            try:
                room = self._limits.text - sum(len(p.text) for p in pieces)
                document = await self._one(site, attachment, room, time, urgent)
            except Missing:
                missing += 1
            except NotADocument as err:
                notes.append(f"{name} is not searchable: {err}")
            except (Permanent, Retryable, TimeoutError) as err:
                away |= isinstance(err, Retryable)
                why = str(err) or f"the attachments of the page take more than {PAGE_TIMEOUT:g} s to read"
                failed.append(f"{name} is not searchable: {why}")
            else:
                pieces += _pieces(document, attachment, number, page)
                note = document.note
                if not document.sections:
                    notes.append(f"{name} is not searchable: it holds no text ({note or 'a scan?'})")
                elif note:
                    notes.append(f"{name}: {note}")
        if missing:
            notes.append(not_installed(missing))
        return Attached(tuple(pieces), (*notes, *failed), tuple(failed), away)

    async def _one(self, site: str, attachment: Attachment, room: int, time: _Time, urgent: bool) -> Sections:
        if room <= 0:
            raise NotADocument(f"the page has {self._limits.text:,} characters of attachments before it")
        said, file = attachment.media_type, file_name(attachment)
        self._check(said, file)
        async with self._budget.take(self._size(attachment), urgent=urgent) as share:
            async with time.spent():
                data, said = await self._bytes(site, attachment, share)
            share.shrink(len(data))
            async with self._turns.take(1, urgent=urgent), time.spent():
                return await self._reader.read(data, said, suffix_of(file), room)

    def _check(self, said: str, file: str) -> None:
        """Raises: NotADocument, Missing: it would be fetched in vain."""
        kind = expected(said, file)
        if kind and not self._reader.can_read(kind):
            raise Missing

    def _size(self, attachment: Attachment) -> int:
        """At most so many bytes."""
        if attachment.data_base64 is not None:
            return len(attachment.data_base64) * 3 // 4
        return self._limits.size

    async def _bytes(self, site: str, attachment: Attachment, share: MemoryShare) -> tuple[bytes, str]:
        said = attachment.media_type
        if attachment.url is not None:
            answered = partial(self._answered, attachment, share)
            got = await self._fetch.get(attachment.url, limit=self._limits.size, answered=answered)
            if said == DEFAULT_TYPE:
                return got.body, got.content_type
            charset = charset_of(said) or charset_of(got.content_type)
            return got.body, f"{essence(said)}; charset={charset}" if charset else said
        if attachment.path is not None:
            return await asyncio.to_thread(_from_folder, attachment.path, site, self._limits), said
        return await asyncio.to_thread(_decoded, attachment.data_base64 or "", self._limits.size), said

    def _answered(self, attachment: Attachment, share: MemoryShare, head: Got) -> None:
        """Raises: NotADocument, Missing, Unread: its body would be fetched in vain."""
        if attachment.media_type == DEFAULT_TYPE:
            self._check(head.content_type, file_name(attachment))
        elif is_none(head.content_type):
            raise Unread(f"said to be {attachment.media_type}, but its server says {essence(head.content_type)}")
        if head.length is not None:
            share.shrink(head.length)


class _Time:
    """Seconds that a page's attachments have left."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @asynccontextmanager
    async def spent(self) -> AsyncIterator[None]:
        """Raises: TimeoutError."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(max(self._left, 0.0)):
                yield
        finally:
            self._left -= clock() - began


class Missing(Exception):
    """What reads this kind is not installed."""


DEFAULT_TYPE: str = Attachment.model_fields["media_type"].default


def not_installed(count: int) -> str:
    """What the receipt says of attachments that no package here can read."""
    what = "1 attachment is" if count == 1 else f"{count} attachments are"
    return f"{what} kept but not searchable; `{INSTALL}` installs what reads such files"


def file_name(attachment: Attachment) -> str:
    """What its file is called, for the suffix: of several names the first that a document has, else the first."""
    paths = [_NOT_PATH.sub("", path or "") for path in (attachment.path, attachment.url, attachment.link)]
    names = [*(unquote(PurePosixPath(path).name) for path in paths), attachment.title]
    return next((name for name in names if suffix_of(name) in SUFFIXES), next(filter(suffix_of, names), ""))


def name_of(attachment: Attachment, number: int) -> str:
    """What an editor calls it: its title, else the name of the file."""
    path = attachment.path or re.sub("[?#].*", "", attachment.url or attachment.link)
    names = (attachment.title, unquote(PurePosixPath(path).name), f"attachment {number + 1}")
    return next(name for name in (" ".join(name.split())[:MAX_NAME] for name in names) if name)


def _pieces(document: Sections, attachment: Attachment, number: int, page: PageDocument) -> list[AttachmentPiece]:
    own = page.title or page.name
    name = name_of(attachment, number) if attachment.title or not attachment.data_base64 or attachment.link else ""
    title = " – ".join(dict.fromkeys(filter(None, (own, name))))  # a file that is its own page has one name
    link = attachment.link or attachment.url or page.url
    return [
        AttachmentPiece(
            AttachmentPlace(
                file=number, title=f"{title} · {section.label}" if section.label else title, url=_at(link, section)
            ),
            section.text,
        )
        for section in document.sections
    ]


def _at(link: str, section: Section) -> str:
    """The link, opened at the place; browsers know pages of PDFs (RFC 8118)."""
    return f"{link.partition('#')[0]}#page={section.page}" if link and section.page else link


def _from_folder(path: str, site: str, limits: Limits) -> bytes:
    """A file of the site's own folder, of a kind that is read: who may change the site's pages may publish it."""
    if site not in limits.folders:
        raise Unread(
            f"files of this machine are not read; setting sites.{site}.attachment_folder may permit one folder"
        )
    if suffix_of(path) not in SUFFIXES:
        raise Unread(f"files of this machine are read by `path` when their names end in {', '.join(sorted(SUFFIXES))}")
    try:
        return Folder(limits.folders[site]).read(Path(path), limits.size)
    except (OSError, RuntimeError, ValueError) as err:
        raise Unread(reason(err)) from err


def _decoded(data: str, size: int) -> bytes:
    try:
        return _fitting(base64.b64decode("".join(data.split()), validate=True), size)
    except binascii.Error as err:
        raise Unread(f"its data is not base64: {err}") from err


def _fitting(data: bytes, size: int) -> bytes:
    if len(data) > size:
        raise Unread(f"larger than {size:,} bytes")
    return data
