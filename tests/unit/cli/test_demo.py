"""`pagewire demo` when it does not go as planned; as planned it goes in tests/acceptance and tests/package."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli import demo
from cli.main import app
from cli.up import System
from infra.supervise import ChildFailed
from pipelines.runtime import logs
from wiring.settings import Settings


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logs, "configure", lambda settings: None)


def test_a_part_that_does_not_start_has_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def running(settings: Settings) -> AsyncIterator[System]:
        raise ChildFailed("gateway", 3)
        yield

    monkeypatch.setattr(demo, "running", running)
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 3
    assert "gateway ended with exit code 3 before it was ready" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_it_is_stopped_while_it_imports(monkeypatch: pytest.MonkeyPatch, signum: signal.Signals) -> None:
    ended = []

    @asynccontextmanager
    async def running(settings: Settings) -> AsyncIterator[System]:
        yield System(settings, "http://127.0.0.1:1", None, (), 0.0)
        ended.append("servers")

    async def imports(*_: Any) -> None:
        os.kill(os.getpid(), signum)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("import")

    monkeypatch.setattr(demo, "running", running)
    monkeypatch.setattr(demo, "import_documents", imports)
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 1
    assert ended == ["import", "servers"]
