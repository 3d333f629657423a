"""`pagewire up` when it does not come up; how it runs is looked at in tests/acceptance."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from cli import up
from cli.main import app
from infra.supervise import Child, ChildFailed
from pipelines.runtime import logs
from wiring.settings import Settings


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logs, "configure", lambda settings: None)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_start_is_not_waited_for_by_who_stops_it(monkeypatch: pytest.MonkeyPatch, signum: signal.Signals) -> None:
    ended = []

    @asynccontextmanager
    async def running(settings: Settings) -> AsyncIterator[Any]:
        os.kill(os.getpid(), signum)
        try:
            await asyncio.Event().wait()
            yield
        finally:
            ended.append("servers")

    monkeypatch.setattr(up, "running", running)
    assert CliRunner().invoke(app, ["up"], catch_exceptions=False).exit_code == 0
    assert ended == ["servers"]


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        (2, 2, "gateway ended with exit code 2 before it was ready; its last lines, above, say why"),
        (3, 3, "start again when it has less to do"),
        (-signal.SIGKILL, 1, "gateway was ended by SIGKILL before it was ready"),
        (0, 1, "gateway ended with exit code 0 before it was ready"),
    ],
)
def test_a_part_that_does_not_start_is_named(code: int, exit_code: int, said: str) -> None:
    failed = ChildFailed("gateway", code)
    assert said in str(failed)
    assert failed.code == exit_code


async def test_of_a_part_that_does_not_start_nothing_else_is_said() -> None:
    """asyncio tells of futures that have failed and that nobody has asked."""
    loop = asyncio.get_running_loop()
    complaints: list[Any] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    children = [cast(Child, SimpleNamespace(ready=loop.create_future())) for _ in range(3)]
    children[1].ready.set_result("worker")

    async def fails() -> None:
        raise ChildFailed("gateway", 2)

    async def runs() -> None:
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(runs()), asyncio.create_task(runs()), asyncio.create_task(fails())]
    with pytest.raises(ChildFailed):
        await up._all_ready(children, tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    del children
    gc.collect()
    assert complaints == []


async def test_the_url_is_that_of_the_gateway() -> None:
    loop = asyncio.get_running_loop()
    children = [cast(Child, SimpleNamespace(ready=loop.create_future())) for _ in range(2)]
    tasks = [asyncio.create_task(asyncio.Event().wait()) for _ in children]
    loop.call_soon(children[1].ready.set_result, "http://127.0.0.1:8000")
    loop.call_later(0.01, children[0].ready.set_result, "worker")
    assert await up._all_ready(children, cast(Any, tasks)) == "http://127.0.0.1:8000"
    for task in tasks:
        task.cancel()
