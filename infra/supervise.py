"""Supervises child processes: all end with this process, and each is restarted after a crash.

supervisor ──pipe to stdin──▶ child   (the pipe closes when this process ends in any way, and the child stops)
           ◀──stdout──────── "ready ..."

On Linux children are forks of one process that has loaded their modules (`preload`): they share its memory, and need
not load them each.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic

log = logging.getLogger(__name__)

STOP_TIMEOUT = 30.0  # seconds for an orderly stop: a worker drains for 10 and leaves its groups
FIRST_PAUSE = 0.5  # seconds before the restart of a crashed child, doubled each time ...
LONGEST_PAUSE = 30.0  # ... up to this
NO_SERVICE = 3  # the exit code of cli/output.py
STABLE_AFTER = 60.0  # seconds of running, after which a crash counts as the first one again
FORKED = sys.platform == "linux"  # elsewhere system libraries may not survive a fork

_context = multiprocessing.get_context("forkserver") if FORKED else multiprocessing.get_context("spawn")


class ChildFailed(Exception):
    """A child ended before it was ready; its own output says why. `code`: the exit code for our command."""

    def __init__(self, name: str, code: int) -> None:
        why = f"ended with exit code {code} before it was ready; its last lines, above, say why"
        if code == NO_SERVICE:
            why += ". On a machine that is busy with other things, start again when it has less to do"
        if code < 0:
            why = (
                f"was ended by {signal.Signals(-code).name} before it was ready; SIGKILL often means: no memory is left"
            )
        super().__init__(f"{name} {why}")
        self.code = max(code, 1)


def preload(*modules: str) -> None:
    """Begin to load what children need, beside this process. Once, before the first child."""
    if FORKED:
        os.environ["PYTHONSAFEPATH"] = "1"  # a user's folder `text` must not be imported as our package
        _context.set_forkserver_preload(list(modules))
        ensure_running()


@dataclass
class Child:
    """One process: `pagewire ARGUMENTS`."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    program: str = "cli.main"  # the module whose `main` it calls
    ready: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    _process: BaseProcess | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: bool = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def run(self) -> None:
        """Keep the child running until `stop`.

        Raises:
            ChildFailed: it ended before it was ready.
        """
        pause = FIRST_PAUSE
        while not self._stopping:
            began = monotonic()
            code = await self._once()
            if self._stopping:
                return
            if not self.ready.done():
                raise ChildFailed(self.name, code)
            if monotonic() - began > STABLE_AFTER:
                pause = FIRST_PAUSE
            log.error("%s ended with exit code %d; starting it again in %.1f s", self.name, code, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)  # not pipelines.runtime.retry: infra does not import the pipelines

    async def _once(self) -> int:
        stdin, held = _context.Pipe(duplex=False)
        notices, stdout = _context.Pipe(duplex=False)
        what = (self.program, self.name, (*self.arguments, "--follow-parent"), {**os.environ, **self.environment})
        process = _context.Process(target=_run, args=(*what, stdin, stdout))
        with held, notices:
            with stdin, stdout:
                await asyncio.to_thread(process.start)  # waits until everything is preloaded
            self._ended.clear()
            self._process = process
            if self._stopping:
                process.terminate()
            await asyncio.gather(self._listen(notices), _end(process))
        self._ended.set()
        return int(process.exitcode or 0)

    async def _listen(self, notices: Connection) -> None:
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), notices)
        async for line in lines:
            text = line.decode(errors="replace").strip()
            if text.startswith("ready") and not self.ready.done():
                self.ready.set_result(text.removeprefix("ready").strip())

    async def stop(self) -> None:
        """Stop the child; kill it after `STOP_TIMEOUT`."""
        self._stopping = True
        process = self._process
        if process is None or self._ended.is_set():
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await self._ended.wait()
        except TimeoutError:
            log.error("%s did not end in %.0f s; killed", self.name, STOP_TIMEOUT)
            process.kill()
            await self._ended.wait()


async def _end(process: BaseProcess) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)
    process.join()


def _run(
    program: str,
    name: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stdin: Connection,
    stdout: Connection,
) -> None:
    """What a child does."""
    gc.freeze()  # what was preloaded stays shared: a collection would write to it
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)  # for ps and top
    # A group of its own, since a terminal sends Ctrl-C to the whole group, and we decide the order of stops. Not a new
    # session: Linux may schedule by session first (sched(7), "autogroup"), and a child's niceness would have no effect
    # on the others.
    os.setpgid(0, 0)
    for given, place in ((stdin, 0), (stdout, 1)):
        os.dup2(given.fileno(), place)
        given.close()
    os.environ.update(environment)
    sys.argv = ["pagewire", *arguments]
    import_module(program).main()
