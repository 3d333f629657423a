"""Reads documents in a child process, so that a malicious one ends this process and not the worker.

    read ─▶ (one at a time) ─▶ child: answers ─────────────────────▶ Document
                               too slow: killed ───────────────────▶ Unreadable
                               dies: once more in a new child, dies ▶ Unreadable

The first document starts the child, the next ones reuse it. It ends after a minute without a document.
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

from adapters.extraction.child import installed
from adapters.extraction.fence import SIZE, environment, exit_reason
from pipelines.ingest.documents.attachments import Missing, Section, Sections, Unread
from pipelines.ingest.documents.kinds import Kind, NotADocument

MEMORY = 2_048  # MiB of address space
SECONDS = 60.0  # for one document
IDLE = 60.0  # seconds without a document after which the child ends: it holds some 250 MB
TRIES = 2  # the kernel may have killed the child for the memory of another process
LONGEST_ANSWER = 64 * 1024 * 1024  # bytes
KEPT = 32  # documents whose text is cached, for further saves and other languages of a page
KEPT_CHARS = 8_000_000
PIECE = 256 * 1024  # bytes
# The child's other variables. One thread, since each would reserve address space, which is limited.
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
    """The reader was killed, but not by its own limits: another try may succeed."""


class DocumentReader:
    """One per process. Implements pipelines.ingest.documents.attachments.Reader."""

    def __init__(self, *, memory: int = MEMORY, seconds: float = SECONDS) -> None:
        """
        Args:
            memory: limit of the child, in MiB.
            seconds: limit for one document.
        """
        self._memory = memory
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._child: asyncio.subprocess.Process | None = None
        self._retiring: asyncio.Task[None] | None = None
        # Not a cache of cachetools, which has one size: here, documents and characters are both limited.
        self._known: OrderedDict[bytes, Known] = OrderedDict()

    @property
    def pid(self) -> int | None:
        """The child's process id; None: there is no child."""
        return self._child.pid if self._child else None

    def can_read(self, kind: Kind) -> bool:
        """Whether the packages for this kind are installed."""
        return installed(kind)

    async def read(self, data: bytes, media_type: str, suffix: str, limit: int) -> Sections:
        """The text of a document, at most `limit` characters.

        Args:
            media_type, suffix: as declared, see `kind_of`.

        Raises:
            Unread: protected, damaged, mislabelled, or beyond the limits; says which.
            NotADocument: a picture, an archive.
            Missing: a package is not installed.
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
                    raise ReaderDied(f"ended what reads it, {TRIES} times ({exit_reason(code)})") from None
                continue
            except BaseException:  # cancelled: otherwise the next caller would get this answer
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
            return Sections(sections, answer["cut"], answer["left_out"], answer["seen"])
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
                start_new_session=True,  # Ctrl-C must reach only the parent
            )
        return self._child

    async def _retire(self) -> None:
        """End the idle child. The next document cancels this."""
        await asyncio.sleep(IDLE)
        async with self._turn:
            await self._end()

    async def _end(self) -> int:
        """Kill the child. Returns its exit code, also where it had ended before."""
        child, self._child = self._child, None
        if child is None:
            return 0
        if child.stdin:
            child.stdin.close()
        if child.returncode is None:
            with suppress(ProcessLookupError):
                # Not child.kill(): it would reap a child that has ended already, and lose its exit code.
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
    for start in range(0, len(view), PIECE):  # in pieces, so that asyncio does not buffer a copy of all
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
