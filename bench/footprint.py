"""Memory of an idle system, and how long it takes to be ready."""

from __future__ import annotations

import asyncio
from time import perf_counter

import psutil

from bench.report import report
from bench.system import resident, system
from infra import engine

SITE = "footprint"


def main() -> None:
    """Memory of the running system."""
    asyncio.run(_run())


async def _run() -> None:
    began = perf_counter()
    async with system([SITE]) as (started, client):
        ready = perf_counter() - began
        for i in range(5):
            page = {"id": f"p{i}", "title": f"Page {i}", "content": f"<p>Text of page {i}.</p>"}
            await client.put(f"/sites/{SITE}/pages/p{i}?wait=searchable&timeout=60", json=page)
        await client.post(f"/sites/{SITE}/chat", json={"question": "What is the text of page 3?"})
        lines: list[tuple[object, ...]] = [
            (child.name, round(resident(child.pid or 0) / 2**20)) for child in started.children
        ]
        lines.append(("pagewire up", round(psutil.Process().memory_full_info().pss / 2**20)))
        ours = sum(int(str(line[1])) for line in lines)
        lines.append(("workers, gateway and up together", ours))
        if started.engine is not None:
            status = await engine.status(started.engine.settings)
            servers = [(s.name, round((s.rss_bytes or 0) / 2**20)) for s in (status.kafka, status.elasticsearch)]
            lines += [*servers, ("engine together", sum(size for _, size in servers))]
    about = f"memory after a little use; ready {started.seconds:.1f} s after the servers answered"
    report("footprint", about, ("part", "MiB"), lines, ready_s=round(ready, 1), parts_s=round(started.seconds, 1))
