"""Reads documents in a child process, so that one made to hurt costs a process and not the worker.

    read ─▶ (one at a time) ─▶ child: answers ─────────────────────▶ Document
                               too slow: killed ───────────────────▶ Unreadable
                               dies: once more in a new child, dies ▶ Unreadable

The child is started by the first document, serves the next ones, and ends when there was none for a minute.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from adapters.child_process import SIZE, environment, how_it_ended
from adapters.extraction.child import installed
from pipelines.ingest.documents.attachments import Missing, Section, Sections, Unread
from pipelines.ingest.documents.kinds import Kind, NotADocument

IDLE = 60.0  # seconds without a document after which the child ends: it holds some 250 MB
TRIES = 2  # a child that was killed may have been the wrong one: by the kernel, for want of memory elsewhere
LONGEST_ANSWER = 64 * 1024 * 1024  # bytes
KEPT = 32  # documents whose text is remembered: a save again, a page in another language
KEPT_CHARS = 8_000_000
PIECE = 256 * 1024  # bytes
# What else the child knows of us. One thread: each would reserve address space, which is limited.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "DO_NOT_TRACK": "1",
    "SCARF_NO_ANALYTICS": "true",
    "UNSTRUCTURED_DISABLE_NOTICE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}

Known = Sections | Unread | NotADocument


class ReaderDied(Unread):
    """Not by its own limits: another time it may go well."""


class DocumentReader:
    """One per process. Implements pipelines.ingest.documents.attachments.Reader."""

    def __init__(self, *, memory: int, seconds: float) -> None:
        """
        Args:
            memory: MiB that the child may use.
            seconds: that one document may take.
        """
        self._memory = memory
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._child: asyncio.subprocess.Process | None = None
        self._retiring: asyncio.Task[None] | None = None
        # Not of cachetools, which knows one size: documents and their characters are both limited.
        self._known: OrderedDict[bytes, Known] = OrderedDict()

    @property
    def pid(self) -> int | None:
        """Of the child, if there is one."""
        return self._child.pid if self._child else None

    def can_read(self, kind: Kind) -> bool:
        """Whether what reads it is installed."""
        return installed(kind)

    async def read(self, data: bytes, media_type: str, suffix: str, limit: int) -> Sections:
        """The text of a document, at most `limit` characters.

        Args:
            media_type, suffix: what is said of it, see `kind_of`.

        Raises:
            Unread: protected, damaged, mislabelled, too large to read within the limits; says which.
            NotADocument: a picture, an archive.
            Missing: what would read it is not installed.
        """
        order = {"said": media_type, "suffix": suffix, "limit": limit, "seconds": self._seconds}
        digest = await asyncio.to_thread(_digest, order, data)
        async with self._turn:
            known = self._known.get(digest)
            if known is None:
                try:
                    known = await self._ask(order, data)
                except ReaderDied:
                    raise
                except (Unread, NotADocument) as err:
                    known = err
                self._remember(digest, known)
        if isinstance(known, Exception):
            raise type(known)(str(known))
        return known

    async def aclose(self) -> None:
        if self._retiring:
            self._retiring.cancel()
        async with self._turn:
            await self._end()

    async def _ask(self, order: dict[str, Any], data: bytes) -> Sections:
        for left in reversed(range(TRIES)):
            child = await self._started()
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await _exchange(child, order, data)
            except TimeoutError:
                await self._end()
                raise Unread(f"takes more than {self._seconds:g} s to read") from None
            except (asyncio.IncompleteReadError, ConnectionError):
                code = await self._end()
                if code == -signal.SIGXCPU:
                    raise Unread(f"takes more than {self._seconds:g} s to read") from None
                if not left:
                    raise ReaderDied(f"ended what reads it, {TRIES} times ({how_it_ended(code)})") from None
                continue
            except BaseException:  # cancelled: the answer would come to whoever asks next
                await self._end()
                raise
            if answer["spent"]:
                await self._end()
            else:
                self._retiring = asyncio.create_task(self._retire(), name="retire-reader")
            if "unread" in answer:
                raise Unread(answer["unread"])
            if "not_read" in answer:
                raise NotADocument(answer["not_read"])
            if "missing" in answer:
                raise Missing
            sections = tuple(Section(**section) for section in answer["sections"])
            return Sections(sections, answer["left_out"], answer["hidden"])
        raise AssertionError("unreachable")

    async def _started(self) -> asyncio.subprocess.Process:
        if self._retiring:
            self._retiring.cancel()
        if self._child is None or self._child.returncode is not None:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "adapters.extraction.child",
                str(self._memory),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment(ENVIRONMENT),
                start_new_session=True,  # Ctrl-C is for us
            )
        return self._child

    async def _retire(self) -> None:
        """End the child, unless there is something to read before."""
        await asyncio.sleep(IDLE)
        async with self._turn:
            await self._end()

    async def _end(self) -> int:
        """Kill the child, and how it ended if it had already."""
        child, self._child = self._child, None
        if child is None:
            return 0
        if child.stdin:
            child.stdin.close()
        if child.returncode is None:
            with suppress(ProcessLookupError):
                # Not child.kill(): it reaps a child that has ended already, and how it ended would be lost.
                os.kill(child.pid, signal.SIGKILL)
        return await child.wait()

    def _remember(self, digest: bytes, known: Known) -> None:
        self._known[digest] = known
        while len(self._known) > KEPT or sum(map(_weight, self._known.values())) > KEPT_CHARS:
            self._known.popitem(last=False)


async def _exchange(child: asyncio.subprocess.Process, order: dict[str, Any], data: bytes) -> dict[str, Any]:
    assert child.stdin
    assert child.stdout
    encoded = json.dumps(order).encode()
    child.stdin.write(SIZE.pack(len(encoded)) + encoded + SIZE.pack(len(data)))
    view = memoryview(data)
    for start in range(0, len(view), PIECE):  # all at once, asyncio would hold it a second time
        child.stdin.write(view[start : start + PIECE])
        await child.stdin.drain()
    [size] = SIZE.unpack(await child.stdout.readexactly(SIZE.size))
    if size > LONGEST_ANSWER:
        raise ConnectionError("an answer that long is none")
    answer: dict[str, Any] = json.loads(await child.stdout.readexactly(size))
    return answer


def _digest(order: dict[str, Any], data: bytes) -> bytes:
    digest = blake2b(json.dumps(order).encode(), digest_size=16)
    digest.update(data)
    return digest.digest()


def _weight(known: Known) -> int:
    return sum(len(section.text) for section in known.sections) if isinstance(known, Sections) else 0
