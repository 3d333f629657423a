"""Child processes for code that may crash: how they are started, asked, and started again.

    Kept.ask ─▶ [size][bytes] ─▶ child ─▶ [size][bytes] ─▶ answer
                 it ends, or is too slow: killed ────────▶ ChildEnded; the next order starts another one, after a pause
                                                           that grows with each death in a row

Parent and child hold the ends of one socket: the child ends when its parent does, whatever ended that.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import BinaryIO

SIZE = struct.Struct(">Q")
OURS = Path(__file__).parents[1]  # where this package is found
# What a child may know of us: where things are, no secrets.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV")
LONGEST_ANSWER = 64 * 1024 * 1024  # bytes
STARTING = 300.0  # seconds until it must be ready, also where it gives way to much other work
ENDING = 2.0  # seconds to end by itself
# Before the third start in a row without an answer between them; twice as long before each further one.
PAUSE = 0.2  # seconds
LONGEST_PAUSE = 2.0  # seconds; questions may wait as well


@dataclass(frozen=True)
class Limits:
    """Of one order, in seconds."""

    computing: float  # of all its threads together; the child ends itself
    waiting: float  # by the clock; its parent ends it


class ChildEnded(Exception):
    """The child ended, or was killed for being too slow, before it answered. Says how."""


class NotReady(ChildEnded):
    """It ended before it could take an order: no order is to blame."""


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """A child's, with what else it is to know."""
    path = os.pathsep.join(filter(None, (str(OURS), os.environ.get("PYTHONPATH"))))
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | {"PYTHONPATH": path} | dict(more)


def how_it_ended(code: int) -> str:
    if code == -signal.SIGPROF:
        return "computed for too long"
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def block(source: BinaryIO) -> bytes | None:
    """The next block for the child; None when there will be none."""
    head = source.read(SIZE.size)
    return source.read(SIZE.unpack(head)[0]) if len(head) == SIZE.size else None


def answers() -> BinaryIO:
    """Where the child's blocks go. What libraries print goes to standard error from now on: it is no answer."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def put(out: BinaryIO, data: bytes) -> None:
    out.write(SIZE.pack(len(data)) + data)
    out.flush()


@contextmanager
def within(limits: Limits) -> Iterator[None]:
    """In the child: end it, in native code as well, when its work takes longer."""
    signal.setitimer(signal.ITIMER_PROF, limits.computing)
    # For the case that nobody is there any more to end us: the parent's own limit comes first.
    signal.setitimer(signal.ITIMER_REAL, limits.waiting + ENDING)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)


class Kept:
    """One child, kept for the next order. It takes one at a time: use it from one thread.

    The child answers an empty block when it is ready for the first order.
    """

    def __init__(self, module: str, args: Sequence[str] = (), *, environment: Mapping[str, str]) -> None:
        """Args:
        module: As for `python -m`.
        environment: All of it.
        """
        # -P: a folder of the same name where we were started is not ours.
        self._command = (sys.executable, "-P", "-m", module, *args)
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._deaths = 0  # in a row
        self._closing = threading.Event()

    @property
    def pid(self) -> int | None:
        """Of the child, if there is one."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Raises: NotReady."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None:
            self._end()
        if self._deaths > 1:
            self._closing.wait(min(PAUSE * 2 ** (self._deaths - 2), LONGEST_PAUSE))
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                # Of our session: Linux shares processors out among sessions before niceness counts. Of its own group:
                # Ctrl-C is for us.
                self._process = subprocess.Popen(  # noqa: S603 - ourselves
                    self._command, stdin=theirs.fileno(), stdout=theirs.fileno(), env=self._environment, process_group=0
                )
            self._answer(monotonic() + STARTING)
        except OSError as err:
            raise NotReady(self._ended(err, STARTING)) from err

    def ask(self, order: bytes, seconds: float) -> bytes:
        """The child's answer.

        Raises:
            ChildEnded: there is none, within the seconds.
        """
        self.start()
        assert self._socket
        deadline = monotonic() + seconds
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(SIZE.pack(len(order)) + order)
            answer = self._answer(deadline)
        except OSError as err:
            raise ChildEnded(self._ended(err, seconds)) from err
        self._deaths = 0
        return answer

    def close(self) -> None:
        """End the child: by itself, as a rule. From any thread, when nothing is asked any more."""
        self._closing.set()
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            try:
                self._process.wait(ENDING)
            except subprocess.TimeoutExpired:
                self._end()

    def _ended(self, err: OSError, seconds: float) -> str:
        """End it, and how it has ended."""
        self._deaths += 1
        if self._process is None:
            return str(err)
        code = self._end()
        return f"took more than {seconds:g} s" if isinstance(err, TimeoutError) else how_it_ended(code)

    def _end(self) -> int:
        """Kill the child, and how it ended if it had already."""
        assert self._process
        assert self._socket
        self._socket.close()
        with suppress(ProcessLookupError):
            # Not process.kill(): it reaps a child that has ended already, and how it ended would be lost.
            os.kill(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._process = None
        return code

    def _answer(self, deadline: float) -> bytes:
        [size] = SIZE.unpack(self._exactly(SIZE.size, deadline))
        if size > LONGEST_ANSWER:
            raise ConnectionError("an answer that long is none")
        return self._exactly(size, deadline)

    def _exactly(self, size: int, deadline: float) -> bytes:
        """Raises: TimeoutError, ConnectionError."""
        assert self._socket
        data = bytearray(size)
        view = memoryview(data)
        while view:
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            count = self._socket.recv_into(view)
            if not count:
                raise ConnectionError("the child has ended")
            view = view[count:]
        return bytes(data)
