"""Rebuilds started over HTTP: `pagewire index rebuild` and similar commands, each in a process of its own.

POST .../rebuilds ─▶ pagewire index rebuild SITE ... (low priority) ─▶ ready, or its error
                     its end of the pipe to stdin closes when the gateway dies: it stops, and can be resumed
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from adapters.elastic.rebuilds import RebuildRunning
from pipelines.operate.rebuild.generations import generations
from pipelines.operate.rebuild.rebuild import NothingThere, NotVerified, StillLive
from pipelines.runtime.errors import Permanent, Retryable
from schemas.rebuild import Generation, RebuildList, RebuildOrder
from wiring.clients import Clients

log = structlog.get_logger(__name__)

START_WAIT = 60.0  # seconds until a rebuild has printed its new generation; it may have to load a model
SWAP_WAIT = 60.0  # seconds to wait for a promotion, which may take longer
STOP_WAIT = 10.0  # seconds to note the offsets and end
SAID = 4_096  # bytes at the end of the log among which an error is looked for


class RebuildRefused(Permanent):
    """The command ended with an error; has its message."""

    code = "rebuild-refused"


class RebuildRuns:
    """One per gateway; close it last."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._folder = clients.settings.home / "rebuilds"
        self._runs: dict[str, _Run] = {}

    async def list(self, site: str) -> RebuildList:
        """Raises: Retryable."""
        elastic = self._clients.elastic
        # A client that reads that no rebuild is running may start one. A command of ours is running before it has the
        # lease, and for a moment after it has returned it.
        running = await elastic.rebuilds.holder(site) or self._running(site)
        return RebuildList(generations=tuple(await generations(elastic, site)), running=running)

    async def get(self, site: str, generation: int) -> Generation:
        """Raises: NothingThere, Retryable."""
        for one in await generations(self._clients.elastic, site):
            if one.generation == generation:
                return one
        raise NothingThere(f"site {site} has no generation {generation}")

    async def start(self, site: str, order: RebuildOrder) -> Generation:
        """Returns once the new generation is known.

        Raises:
            RebuildRunning, RebuildRefused, Retryable.
        """
        run = await self._start(site, "rebuild", *_options(order))
        said = await run.first_line(START_WAIT)
        if said is None:
            raise RebuildRefused(run.error())
        return await self.get(site, int(said))

    async def promote(self, site: str, generation: int) -> Generation | None:
        """The live generation; None while it is still catching up.

        Raises:
            NothingThere, NotVerified, StillLive, RebuildRunning, RebuildRefused, Retryable.
        """
        wanted = await self.get(site, generation)
        if wanted.state == "live":
            raise StillLive(f"generation {generation} of site {site} is live already")
        if wanted.state == "building":
            raise NotVerified(f"generation {generation} of site {site} was not verified")
        return await self._swap(site, "promote", "--generation", str(generation))

    async def rollback(self, site: str) -> Generation | None:
        """The live generation; None while it is still catching up.

        Raises:
            NothingThere, RebuildRunning, RebuildRefused, Retryable.
        """
        known = await generations(self._clients.elastic, site)
        if not any(one.state == "previous" for one in known):
            raise NothingThere(f"site {site} has no previous index to roll back to")
        return await self._swap(site, "rollback")

    async def discard(self, site: str, generation: int) -> None:
        """Raises: NothingThere, StillLive, RebuildRunning, Retryable."""
        async with self._clients.elastic.rebuilds.lease(site):
            await (await self._clients.rebuilder(site)).discard(generation)

    async def stop(self, site: str, by: str) -> None:
        """Stop the site's running rebuild, at any gateway or machine: it stops within ten seconds, and can be
        continued.

        Raises:
            NothingThere: none is running. Retryable.
        """
        ours = self._runs.get(site)
        if ours is not None and ours.alive:
            await ours.stop()
        elif await self._clients.elastic.rebuilds.stop(site, by) is None:
            raise NothingThere(f"nobody is at work on the indexes of site {site}")

    async def aclose(self) -> None:
        """Stop running commands; they can be resumed."""
        await asyncio.gather(*(run.stop() for run in self._runs.values()))

    async def _swap(self, site: str, command: str, *options: str) -> Generation | None:
        run = await self._start(site, command, *options)
        code = await run.ended(SWAP_WAIT)
        if code:
            raise RebuildRefused(run.error())
        if code is None:
            return None
        known = await generations(self._clients.elastic, site)
        return next((one for one in known if one.state == "live"), None)

    async def _start(self, site: str, command: str, *options: str) -> _Run:
        if (holder := await self._clients.elastic.rebuilds.holder(site)) is not None:
            raise RebuildRunning(f"a rebuild of site {site} is under way ({holder})")
        # From here on nothing is awaited until it is known that there is another one.
        if (ours := self._running(site)) is not None:
            raise RebuildRunning(f"{ours} is at work on site {site}")
        settings = self._clients.settings
        assert settings.kafka
        assert settings.elasticsearch
        where = {"PAGEWIRE_KAFKA": settings.kafka, "PAGEWIRE_ELASTICSEARCH": settings.elasticsearch}
        run = self._runs[site] = _Run((command, site, *options), self._folder / f"{site}.log")
        try:
            await run.start(where)
        except BaseException:
            del self._runs[site]
            raise
        return run

    def _running(self, site: str) -> str | None:
        """The command that this gateway has started and that has not ended."""
        run = self._runs.get(site)
        return f"`pagewire index {run.command}`" if run is not None and run.alive else None


class _Run:
    """One command in a process of its own."""

    def __init__(self, arguments: Sequence[str], file: Path) -> None:
        self.command = " ".join(arguments)
        self._arguments = arguments
        self._file = file
        self._began = 0  # where this run's part of the log begins
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._said: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    @property
    def alive(self) -> bool:
        return self._process is None or self._process.returncode is None

    async def start(self, environment: Mapping[str, str]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as log_file:
            self._began = log_file.tell()
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "cli.main", *self._arguments, "--follow-parent"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self._reading = asyncio.create_task(self._read(), name=f"rebuild {self.command}")

    async def _read(self) -> None:
        """Its output, to the end."""
        assert self._process
        assert self._process.stdout
        async for line in self._process.stdout:
            text = line.decode(errors="replace").strip()
            if text.startswith("ready ") and not self._said.done():
                self._said.set_result(text.removeprefix("ready "))
        code = await self._process.wait()
        if not self._said.done():
            self._said.set_result(None)
        log.info("rebuild command ended", command=self.command, code=code)

    async def first_line(self, timeout: float) -> str | None:
        """What follows `ready`; None when it ended without. Raises: Retryable: nothing yet."""
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(self._said)
        except TimeoutError:
            raise Retryable(f"`pagewire index {self.command}` has not begun yet; see {self._file.name}") from None

    async def ended(self, timeout: float) -> int | None:
        """Its exit code; None when it has not ended."""
        assert self._process
        try:
            async with asyncio.timeout(timeout):
                return await self._process.wait()
        except TimeoutError:
            return None

    def error(self) -> str:
        """The last error in its log."""
        with self._file.open("rb") as log_file:
            log_file.seek(max(self._began, self._file.stat().st_size - SAID))
            lines = log_file.read().decode(errors="replace").splitlines()
        told = [line.removeprefix("error ") for line in lines if line.startswith("error ")]
        return told[-1] if told else f"`pagewire index {self.command}` failed; see {self._file.name}"

    async def stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_WAIT):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._reading is not None:
            await self._reading


def _options(order: RebuildOrder) -> list[str]:
    options = ["--from", order.source]
    for name, value in (
        ("--embedder", order.embedder),
        ("--chunk-size", order.chunk_size),
        ("--chunk-mode", order.chunk_mode),
    ):
        options += [f"{name}={value}"] if value is not None else []
    options += ["--by", order.by] if order.by != "self" else []
    return options + ["--promote"] * order.promote + ["--fresh"] * order.fresh
