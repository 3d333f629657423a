"""Supervises child processes: all end with this process, and each is restarted after a crash.

supervisor ──pipe to stdin──▶ child   (the pipe closes when this process ends in any way, and the child stops)
           ◀──stdout──────── "ready ..."
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

log = logging.getLogger(__name__)

STOP_TIMEOUT = 30.0  # seconds for an orderly stop: a worker drains for 10 and leaves its groups
FIRST_PAUSE = 0.5  # seconds before the restart of a crashed child, doubled each time ...
LONGEST_PAUSE = 30.0  # ... up to this
NO_SERVICE = 3  # the exit code of cli/output.py
STABLE_AFTER = 60.0  # seconds of running, after which a crash counts as the first one again


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


@dataclass
class Child:
    """One process: `pagewire ARGUMENTS`."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    ready: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    _process: asyncio.subprocess.Process | None = None
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
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # without the working directory: a user's folder `text` must not be imported as our package
            "-m",
            "cli.main",
            *self.arguments,
            "--follow-parent",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **self.environment},
            # A group of its own, since a terminal sends Ctrl-C to the whole group, and we decide the order of stops.
            # Not a new session: Linux may schedule by session first (sched(7), "autogroup"), and a child's niceness
            # would have no effect on the others.
            process_group=0,
        )
        assert self._process.stdout
        async for line in self._process.stdout:
            text = line.decode(errors="replace").strip()
            if text.startswith("ready") and not self.ready.done():
                self.ready.set_result(text.removeprefix("ready").strip())
        return await self._process.wait()

    async def stop(self) -> None:
        """Stop the child; kill it after `STOP_TIMEOUT`."""
        self._stopping = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await process.wait()
        except TimeoutError:
            log.error("%s did not end in %.0f s; killed", self.name, STOP_TIMEOUT)
            process.kill()
            await process.wait()
