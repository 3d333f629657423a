"""Pagewire's own processes: started as a user starts them, killed, frozen, and started again when they end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.rig import until
from tests.faults.storm.history import History

ROOT = Path(__file__).parents[3]
COMMAND = "cli.main"  # `pagewire`, as a module: from this checkout whatever is installed
READY_LIMIT = 900.0  # seconds; the broker may be killed again and again while a worker starts
END_LIMIT = 60.0  # seconds for an orderly end
LOOK = 0.5  # seconds


@dataclass
class Member:
    """A place in the crew; the process in it changes."""

    name: str
    arguments: tuple[str, ...]
    program: str
    extra: Mapping[str, str] = field(default_factory=dict)  # environment of its own
    process: subprocess.Popen[bytes] | None = None
    output: Path = Path()
    wanted: bool = False  # to be started again when it ends by itself
    starts: int = 0

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def ready(self) -> bool:
        return self.output.exists() and any(line.startswith("ready") for line in self.said.splitlines())

    @property
    def said(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def log(self) -> str:
        return self.output.with_suffix(".log").read_text(errors="replace")


class Crew:
    """All members by name. They end with this process in any case: each follows its standard input."""

    def __init__(self, folder: Path, environment: Mapping[str, str], history: History) -> None:
        self._folder = folder
        self.environment = environment
        self._history = history
        self._keeper: asyncio.Task[None] | None = None
        self.members: dict[str, Member] = {}
        self.ended_by_themselves: list[str] = []

    def add(self, name: str, *arguments: str, program: str = COMMAND, extra: Mapping[str, str] | None = None) -> Member:
        self.members[name] = Member(name, arguments, program, extra or {})
        return self.members[name]

    def start(self, name: str, program: str | None = None, extra: Mapping[str, str] | None = None) -> None:
        """Start a member's process; `program` and `extra` count for this start only."""
        member = self.members[name]
        assert not member.alive, f"{name} runs"
        member.starts += 1
        member.output = self._folder / f"{name}-{member.starts}.out"
        with member.output.open("wb") as out, member.output.with_suffix(".log").open("wb") as log:
            member.process = subprocess.Popen(
                [sys.executable, "-m", program or member.program, *member.arguments, "--follow-parent"],
                cwd=ROOT,
                env={**self.environment, **member.extra, **(extra or {})},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=log,
                start_new_session=True,
            )
        member.wanted = program is None

    async def ready(self, *names: str) -> None:
        """Wait until these serve. A process that ended meanwhile was started again by the keeper."""
        for name in names:
            await until(f"{name} is ready", lambda member=self.members[name]: member.ready, READY_LIMIT)  # type: ignore[misc]

    def signal(self, name: str, signum: signal.Signals) -> None:
        process = self.members[name].process
        assert process is not None
        process.send_signal(signum)

    async def kill(self, name: str) -> None:
        """SIGKILL; it stays away until it is started again."""
        self.members[name].wanted = False
        self.signal(name, signal.SIGKILL)
        await self.ended(name)

    async def stop(self, name: str) -> None:
        """SIGTERM, and wait for the end."""
        self.members[name].wanted = False
        self.signal(name, signal.SIGTERM)
        await self.ended(name)

    async def ended(self, name: str, limit: float = END_LIMIT) -> None:
        member = self.members[name]
        await until(f"{name} ended", lambda: not member.alive, limit)
        _close(member)

    def keep(self) -> None:
        """From now on start again what ends by itself, as a supervisor does; it is written down."""
        self._keeper = asyncio.create_task(self._keep(), name="crew-keeper")

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            for member in self.members.values():
                if member.wanted and not member.alive:
                    assert member.process is not None
                    last = member.log.strip().splitlines()[-3:]
                    what = f"{member.name} ended by itself, code {member.process.returncode}: {' | '.join(last)}"
                    self.ended_by_themselves.append(what)
                    self._history.note(what)
                    _close(member)
                    self.start(member.name)

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        running = [member for member in self.members.values() if member.alive]
        for member in running:
            member.wanted = False
            self.signal(member.name, signal.SIGCONT)
            self.signal(member.name, signal.SIGTERM)
        for member in running:
            try:
                await self.ended(member.name, limit=20.0)
            except AssertionError:
                await self.kill(member.name)


def _close(member: Member) -> None:
    if member.process is not None and member.process.stdin is not None:
        member.process.stdin.close()


def environment(**settings: str) -> dict[str, str]:
    """This process's environment with these settings of Pagewire and no others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PAGEWIRE_", "OPENAI_"))}
    # The client of the embeddings endpoint would ask a configured proxy for loopback addresses, too.
    return kept | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"} | settings
