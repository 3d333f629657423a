"""How often a record has ended its process: counted where the count outlives the process.

```
 <home>/attempts/<process>.begun    + <message>   a try begins      locked by its process while that lives
                                    ! <message>   it is on trial, and nothing else is at work
                                    ~ <message>   no longer
                                    - <message>   it has ended, however
 <home>/attempts/deaths/<message>   3 1           tries of it in which a process ended; on trial
```
A message goes by its topic and what is in it, not by its offset: the stage before often dies in the same process, and
before its commit, so it sends the message again. That copy is as guilty as the first one, and for an hour after that
was buried, too. What an operator puts back is told apart by how often: it gets tries of its own.

What a process that died had begun and not ended is counted as a death of each of those records, by the next process
that looks: at its start, and whenever it gets partitions. Such a record is tried after its neighbours, and no two of
them at a time. A crash in native code, a kill for memory and the watchdog's end of a process that stands still are all
seen so; an exception is not a death.

A kill from outside leaves the same traces, and finds whatever is at work just then, often the same record if that takes
long. So after two deaths a record is tried with nothing else at work, for which the others wait some seconds: if the
process dies in these, too, it is a dead letter. Of a healthy record somebody would have to kill the process just then.
Where the others do not come to an end in time, or a killer takes longer, twice as many deaths have to do.

Plain files, because they have to be there after SIGKILL and cost microseconds: what was written is in the kernel. They
are this machine's: a record that wanders to a worker with another `home` is counted anew there.
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
# A suspect waits so long for each of its deaths before its first try: its neighbours of this window are done meanwhile.
GRACE = 2.0  # seconds
TURN_LIMIT = 30.0  # seconds that a suspect waits for another one's try: an embedding may take minutes
QUIET_LIMIT = 10.0  # seconds that a trial waits until nothing else is at work
TRIAL_LIMIT = 10.0  # seconds of a trial after which others go on
CUT_AT = 256 * 1024  # bytes of our own file; then it is written anew
FORGET_AFTER = 14 * 24 * 3600.0  # seconds; by then its dead letter is gone, too
BURIED_FOR = 3600.0  # seconds after which a copy of what was buried is tried like any other


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
        """A folder that cannot be written to is told of, and nothing outlives the process then."""
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
            self._tombs.mkdir(parents=True, exist_ok=True)
            self._file = _locked(self._own)
        except OSError as err:
            log.warning("attempts are not kept: a record that ends the process will be tried for ever", error=str(err))
        self.adopt()

    def adopt(self) -> None:
        """Count what processes have left that died since the last look."""
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

    def guilty(self, record: Record) -> bool:
        """Whether it is not to be tried any more."""
        found = self._deaths.get(_name(record), NONE)
        return found.all >= (DEATHS if found.on_trial else DEATHS_AT_MOST)

    async def wait(self, record: Record) -> None:
        """Before its first try: a suspect lets its neighbours go first."""
        if deaths := self.deaths(record):
            log.warning("a record that was at work when a process died", record=str(record), deaths=deaths)
            await asyncio.sleep(deaths * GRACE)

    @asynccontextmanager
    async def trying(self, record: Record) -> AsyncIterator[None]:
        """Around one try; suspects one at a time, and the last try alone, as far as that holds up nobody for long."""
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
        """Nothing is begun from now on; whether what was at work has ended in time."""
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
        """It came to its end, and no process with it. What was buried as guilty stays so for copies, for an hour."""
        if not self.deaths(record):
            return
        tomb = self._tombs / _name(record)
        if self.guilty(record):
            forgotten_at = time.time() - FORGET_AFTER + BURIED_FOR
            with suppress(OSError):
                os.utime(tomb, (forgotten_at, forgotten_at))
        else:
            del self._deaths[_name(record)]
            tomb.unlink(missing_ok=True)

    def close(self) -> None:
        """The process ends in order: nothing of it counts."""
        if self._file is not None:
            self._own.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    @property
    def _tombs(self) -> Path:
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
            if self._size > CUT_AT:  # what is begun now, whole, is all that matters
                os.ftruncate(self._file, 0)
                self._size = os.write(self._file, "".join(f"+ {name}\n" for name in self._begun.elements()).encode())
            else:
                self._size += os.write(self._file, line.encode())
        except OSError as err:  # a full disk must not stop the work
            log.debug("attempt not noted", error=str(err))

    def _bury(self, path: Path) -> None:
        """Count the deaths that another process has left, if it is dead."""
        with suppress(FileNotFoundError, BlockingIOError):
            file = _locked(path, create=False)
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
                for name, on_trial in _unfinished(lines):
                    tomb = self._tombs / name
                    before = _read(tomb)
                    tomb.write_text(f"{before.all + 1} {before.on_trial + on_trial}", encoding="utf-8")
                path.unlink()
            finally:
                os.close(file)

    def _counted(self) -> Iterator[tuple[str, _Deaths]]:
        for tomb in self._tombs.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - tomb.stat().st_mtime > FORGET_AFTER:
                    tomb.unlink()
                else:
                    yield tomb.name, _read(tomb)


def _name(record: Record) -> str:
    """The same for copies of a message; a file's name."""
    content = blake2b(record.value or b"", key=blake2b(record.key or b"").digest(), digest_size=16)
    return f"{record.topic}.{content.hexdigest()}.{redrives_of(record.headers)}"


def _locked(path: Path, *, create: bool = True) -> int:
    """Raises: BlockingIOError: its process lives. FileNotFoundError: somebody else has counted it."""
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
    """What was at work, and whether it was on trial."""
    begun: Counter[str] = Counter()
    trial = ""
    for line in lines:
        sign, _, name = line.partition(" ")
        begun[name] += {"+": 1, "-": -1}.get(sign, 0)
        trial = {"!": name, "~": ""}.get(sign, trial)
    names = [name for name, count in begun.items() if count > 0 and name]
    return ((name, names == [trial]) for name in names)


def _read(tomb: Path) -> _Deaths:
    try:
        every, *alone = map(int, tomb.read_text(encoding="utf-8").split())
    except (FileNotFoundError, ValueError):
        return NONE
    return _Deaths(every, *alone[:1])  # one number: an earlier version wrote it
