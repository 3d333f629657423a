"""Counts how often a record has ended its process, in files that outlive the process.

```
 <home>/attempts/<process>.begun    + <message>   a try begins      locked by its process while that lives
                                    ! <message>   it is on trial, and nothing else is at work
                                    ~ <message>   no longer
                                    - <message>   the try has ended
 <home>/attempts/deaths/<message>   3 1           tries of it in which a process ended; on trial
```
A message is named by its topic and content, not by its offset: the upstream stage often dies in the same process before
its commit, and sends the message again. The copy shares the count of the first one, also for an hour after the first
one became a dead letter. The number of redrives is part of the name, so a redriven message has tries of its own.

A process reads the files of dead processes at its start and whenever it gets partitions. Each record that was begun and
not ended there counts one death. Such a record is tried after its neighbours, one at a time. A crash in native code, a
kill for memory and the end by the watchdog all leave these files; an exception is not a death.

A kill from outside leaves the same files, and a slow record is often at work when it happens. So after two deaths a
record is tried with nothing else at work; the other records wait some seconds. If the process dies in these seconds,
the record becomes a dead letter. If the others do not end in time, or the process dies later, it takes twice as many
deaths.

Plain files survive SIGKILL and cost microseconds, because a written byte is in the kernel. They belong to one machine:
a worker with another `home` counts anew.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import structlog

from pipelines.runtime.dead_letters import redrives_of
from pipelines.runtime.errors import Permanent
from pipelines.runtime.record import Record

log = structlog.get_logger(__name__)

DEATHS = 3  # after which a record is not tried again, if it was on trial at the last one, ...
DEATHS_AT_MOST = 2 * DEATHS  # ... or in any case
GRACE = 2.0  # seconds that a suspect waits for each of its deaths, in which its neighbours in the window end
TURN_LIMIT = 30.0  # seconds that a suspect waits for another one's try: an embedding may take minutes
QUIET_LIMIT = 10.0  # seconds that a trial waits until nothing else is at work
TRIAL_LIMIT = 10.0  # seconds of a trial after which others go on
CUT_AT = 256 * 1024  # bytes of our own file; then it is rewritten
FORGET_AFTER = 14 * 24 * 3600.0  # seconds; by then its dead letter is gone, too
BURIED_FOR = 3600.0  # seconds after which a copy of a dead letter is tried like any other


class _Deaths(NamedTuple):
    """Of one record."""

    all: int = 0
    on_trial: int = 0  # in its first seconds, with nothing else at work


NONE = _Deaths()


class EndsWorker(Permanent):
    """The process that worked on the message ended, again and again: a crash, or a kill for want of memory."""

    code = "ends-worker"


class Attempts:
    """One per process; close it when the process ends in order."""

    def __init__(self, folder: Path) -> None:
        """Log a warning if the folder is not writable; the counts then end with the process."""
        self._folder = folder
        self._own = folder / f"{uuid4().hex}.begun"
        self._begun: Counter[str] = Counter()
        self._deaths: dict[str, _Deaths] = {}
        self._turn = asyncio.Lock()
        self._gate = asyncio.Event()  # closed while a record is on trial
        self._gate.set()
        self._ended = asyncio.Event()  # a try
        self._size = 0
        self._file: int | None = None
        try:
            self._counts.mkdir(parents=True, exist_ok=True)
            self._file = _locked(self._own)
        except OSError as err:
            log.warning("attempts are not kept: a record that ends the process will be tried for ever", error=str(err))
        self.adopt()

    def adopt(self) -> None:
        """Count the deaths of processes that died since the last call."""
        if self._file is None:
            return
        try:
            for path in self._folder.glob("*.begun"):
                if path != self._own:
                    self._bury(path)
            self._deaths = dict(self._counted())
        except OSError as err:
            log.warning("attempts of earlier processes cannot be read", error=str(err))

    def deaths(self, record: Record) -> int:
        """Tries of the record in which a process ended."""
        return self._deaths.get(_name(record), NONE).all if self._deaths else 0

    def must_bury(self, record: Record) -> bool:
        """Whether its process died too often to try it again."""
        found = self._deaths.get(_name(record), NONE)
        return found.all >= (DEATHS if found.on_trial else DEATHS_AT_MOST)

    async def wait(self, record: Record) -> None:
        """Delay the first try of a suspect until its neighbours are done."""
        if deaths := self.deaths(record):
            log.warning("a record that was at work when a process died", record=str(record), deaths=deaths)
            await asyncio.sleep(deaths * GRACE)

    @asynccontextmanager
    async def trying(self, record: Record) -> AsyncIterator[None]:
        """Surround one try. Suspects run one at a time, their last try alone; each waits for that within a limit."""
        deaths = self.deaths(record)
        mine = bool(deaths) and await self._turn_of_suspects()
        try:
            if not mine:
                await self._gate.wait()
            alone = mine and deaths >= DEATHS - 1 and await self._is_quiet()
            with self._noted(record), self._on_trial(record) if alone else nullcontext():
                yield
        finally:
            if mine:
                self._gate.set()
                self._turn.release()

    async def _is_quiet(self) -> bool:
        """Start no further try, and return whether all running tries end in time."""
        self._gate.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_LIMIT):
                while self._begun:
                    self._ended.clear()
                    await self._ended.wait()
                return True
        self._gate.set()
        return False

    @contextmanager
    def _on_trial(self, record: Record) -> Iterator[None]:
        def over() -> None:
            self._note(f"~ {_name(record)}\n")
            self._gate.set()

        self._note(f"! {_name(record)}\n")
        opening = asyncio.get_running_loop().call_later(TRIAL_LIMIT, over)
        try:
            yield
        finally:
            opening.cancel()

    async def _turn_of_suspects(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(TURN_LIMIT):
                return await self._turn.acquire()
        return False

    def settled(self, record: Record) -> None:
        """Forget the deaths of a record that ended; those of a dead letter an hour later, because of its copies."""
        if not self.deaths(record):
            return
        path = self._counts / _name(record)
        if self.must_bury(record):
            forgotten_at = time.time() - FORGET_AFTER + BURIED_FOR
            with suppress(OSError):
                os.utime(path, (forgotten_at, forgotten_at))
        else:
            del self._deaths[_name(record)]
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """End in order: no try of this process counts as a death."""
        if self._file is not None:
            self._own.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    @property
    def _counts(self) -> Path:
        return self._folder / "deaths"

    @contextmanager
    def _noted(self, record: Record) -> Iterator[None]:
        name = _name(record)
        self._begun[name] += 1
        self._note(f"+ {name}\n")
        try:
            yield
        finally:
            self._begun[name] -= 1
            if not self._begun[name]:
                del self._begun[name]
            self._note(f"- {name}\n")
            self._ended.set()

    def _note(self, line: str) -> None:
        if self._file is None:
            return
        try:
            if self._size > CUT_AT:  # only the tries that run now matter
                os.ftruncate(self._file, 0)
                self._size = os.write(self._file, "".join(f"+ {name}\n" for name in self._begun.elements()).encode())
            else:
                self._size += os.write(self._file, line.encode())
        except OSError as err:  # a full disk must not stop the work
            log.debug("attempt not noted", error=str(err))

    def _bury(self, path: Path) -> None:
        """Count the deaths in another process's file, if that process is dead."""
        with suppress(FileNotFoundError, BlockingIOError):
            file = _locked(path, create=False)
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
                for name, on_trial in _unfinished(lines):
                    count = self._counts / name
                    before = _read(count)
                    count.write_text(f"{before.all + 1} {before.on_trial + on_trial}", encoding="utf-8")
                path.unlink()
            finally:
                os.close(file)

    def _counted(self) -> Iterator[tuple[str, _Deaths]]:
        for path in self._counts.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > FORGET_AFTER:
                    path.unlink()
                else:
                    yield path.name, _read(path)


def _name(record: Record) -> str:
    """The same for copies of a message; a file's name."""
    content = blake2b(record.value or b"", key=blake2b(record.key or b"").digest(), digest_size=16)
    return f"{record.topic}.{content.hexdigest()}.{redrives_of(record.headers)}"


def _locked(path: Path, *, create: bool = True) -> int:
    """Raises: BlockingIOError: its process lives. FileNotFoundError: another process has counted it."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | (os.O_CREAT if create else 0), 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not path.exists():
            raise FileNotFoundError(path)
    except BaseException:
        os.close(file)
        raise
    return file


def _unfinished(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Names of the records at work, and whether each was on trial."""
    begun: Counter[str] = Counter()
    trial = ""
    for line in lines:
        sign, _, name = line.partition(" ")
        begun[name] += {"+": 1, "-": -1}.get(sign, 0)
        trial = {"!": name, "~": ""}.get(sign, trial)
    names = [name for name, count in begun.items() if count > 0 and name]
    return ((name, names == [trial]) for name in names)


def _read(path: Path) -> _Deaths:
    try:
        every, *alone = map(int, path.read_text(encoding="utf-8").split())
    except (FileNotFoundError, ValueError):
        return NONE
    return _Deaths(every, *alone[:1])  # one number: an earlier version wrote it
