"""What the command line costs: the processor time of a command, and how long `pagewire ask` takes beside a program that
asks the same gateway.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import httpx

from bench.report import percentile, report
from bench.system import system

SITE = "commands"
QUESTION = "What does a library card cost for adults?"
HELP = (["--help"], ["up", "--help"], ["ask", "--help"], ["status", "--help"], ["evaluate", "--help"])
PAGEWIRE = Path(sys.executable).with_name("pagewire")


def main(rounds: int) -> None:
    """Seconds."""
    asyncio.run(_run(rounds))


async def _run(rounds: int) -> None:
    lines: list[tuple[object, ...]] = [_measured(rounds, *command) for command in HELP]
    async with system([SITE]) as (_, client):
        page = {"id": "card", "title": "Library", "content": "<p>A library card costs 18 euros for adults.</p>"}
        answer = await client.put(f"/sites/{SITE}/pages/card?wait=searchable&timeout=60", json=page)
        assert answer.status_code == 200, answer.text
        await _asked(client)
        lines.append(await asyncio.to_thread(_measured, rounds, "ask", SITE, QUESTION))
        asked = [await _asked(client) for _ in range(rounds)]
        lines.append(("the same over HTTP", "", percentile(asked, 50)))
    report("commands", f"the command line, {rounds} rounds", ("command", "CPU p50 s", "wall p50 s"), lines)


def _measured(rounds: int, *command: str) -> tuple[object, ...]:
    """The command, and what its processes take: CPU and wall, seconds."""
    used, took = [], []
    for _ in range(rounds):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        subprocess.run([PAGEWIRE, *command], check=True, stdout=subprocess.DEVNULL)
        took.append(perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return f"pagewire {' '.join(command[:2])}", percentile(used, 50), percentile(took, 50)


async def _asked(client: httpx.AsyncClient) -> float:
    began = perf_counter()
    headers = {"Accept": "text/event-stream"}
    answer = await client.post(f"/sites/{SITE}/chat", json={"question": QUESTION, "lang": "en"}, headers=headers)
    assert "event: answer" in answer.text
    return perf_counter() - began
