"""Which of the gateway's own commands are at work on a site. They are stand-ins, in processes of their own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from adapters.elastic.rebuilds import RebuildRunning
from gateway.rebuild_runs import RebuildRuns
from pipelines.runtime.indexes import IndexInfo
from schemas.rebuild import Generation, Rebuild, RebuildOrder
from tests.making import NOON
from wiring.clients import Clients
from wiring.settings import Settings

SITE = "town"
ORDER = RebuildOrder.model_validate({"from": "changes"})

# `pagewire index rebuild` that goes on until it is told to end, without a lease; all else ends at once.
COMMAND = """#!/bin/sh
[ "$3" = rebuild ] || exit 0
echo ready 2
read line < "$(dirname "$0")/end"
"""


class Known:
    """What Elasticsearch says of the site: one generation, and that nobody has the lease."""

    async def now(self, site: str) -> IndexInfo | None:
        return None

    async def generations(self, site: str) -> list[IndexInfo]:
        return []

    async def sizes(self, site: str) -> dict[str, tuple[int, int]]:
        return {}

    async def contents(self, site: str, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        return {}

    async def holder(self, site: str) -> str | None:
        await asyncio.sleep(0)
        return None

    async def of_site(self, site: str) -> list[Rebuild]:
        made = Rebuild(
            site=site, generation=2, index=f"pagewire-{site}-000002", source="changes", follows="changes",
            embedder="fake", model="fake-4", dims=4, chunker="content-1000-20", state="verified",
            created_at=NOON, updated_at=NOON,
        )  # fmt: skip
        return [made]


@dataclass
class Bench:
    runs: RebuildRuns
    folder: Path

    def end(self) -> None:
        """Let the rebuild end."""
        (self.folder / "end").write_text("\n")

    async def running(self) -> str | None:
        return (await self.runs.list(SITE)).running


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    command = tmp_path / "python"
    command.write_text(COMMAND)
    command.chmod(0o700)
    os.mkfifo(tmp_path / "end")
    monkeypatch.setattr(sys, "executable", str(command))
    settings = Settings(home=tmp_path, kafka="nowhere:1", elasticsearch="http://nowhere:1")
    clients = SimpleNamespace(settings=settings, elastic=SimpleNamespace(indexes=Known(), rebuilds=Known()))
    async with aclosing(RebuildRuns(cast(Clients, clients))) as runs:
        yield Bench(runs, tmp_path)


async def test_while_a_command_has_not_ended_it_is_at_work_with_or_without_the_lease(bench: Bench) -> None:
    assert await bench.running() is None
    assert (await bench.runs.start(SITE, ORDER)).generation == 2
    assert await bench.running() == "`pagewire index rebuild town --from changes`"
    with pytest.raises(RebuildRunning):
        await bench.runs.promote(SITE, 2)
    bench.end()
    async with asyncio.timeout(30):
        while await bench.running() is not None:  # noqa: ASYNC110  # a process that ends sets no event
            await asyncio.sleep(0.01)
    await bench.runs.promote(SITE, 2)


async def test_the_command_has_what_the_order_says(bench: Bench) -> None:
    said = {"from": "changes", "chunk_size": 800, "by": "workers", "promote": True}
    await bench.runs.start(SITE, RebuildOrder.model_validate(said))
    assert (
        await bench.running() == "`pagewire index rebuild town --from changes --chunk-size=800 --by workers --promote`"
    )


async def test_of_two_that_come_together_one_begins(bench: Bench) -> None:
    came = await asyncio.gather(*(bench.runs.start(SITE, ORDER) for _ in range(2)), return_exceptions=True)
    assert {type(one) for one in came} == {Generation, RebuildRunning}


async def test_what_could_not_be_started_is_not_at_work(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", str(bench.folder / "nothing"))
        with pytest.raises(FileNotFoundError):
            await bench.runs.start(SITE, ORDER)
    assert await bench.running() is None
    await bench.runs.start(SITE, ORDER)
