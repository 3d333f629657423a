"""`pagewire` commands that end by themselves, run against the storm's system."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

from tests.faults.storm.crew import COMMAND, ROOT
from tests.faults.storm.world import World

LIMIT = 120.0  # seconds


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    said: str


async def pagewire(world: World, *arguments: str, limit: float = LIMIT) -> Ended | None:
    """Run one; None when this version has no such command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        COMMAND,
        *arguments,
        cwd=ROOT,
        env=dict(world.crew.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), limit)
    assert process.returncode is not None
    if process.returncode == 2 and b"No such command" in said:
        return None
    return Ended(process.returncode, said.decode(errors="replace"))
