"""Operators' commands over the real gateway and its fakes, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from structlog.testing import capture_logs
from typer.main import get_command
from typer.testing import CliRunner, Result

from cli import admin_client
from cli.main import app as commands
from gateway.app import create_app
from tests.edge import ADMIN, edge_settings
from tests.fakes.ports import FakeIntake, FakePorts

URL = "http://gateway.test"
Run = Callable[..., Result]


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """The real command reads the signatures of its functions once, so the runner need not for every call."""
    with patch("typer.testing._get_command", cache(get_command)):
        yield


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}))


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fakes: FakePorts) -> Iterator[FakePorts]:
    """A gateway at PAGEWIRE_URL with the sites `town` and `other`, and its admin key in PAGEWIRE_ADMIN_KEY."""
    monkeypatch.chdir(tmp_path)
    Path("pagewire.yaml").write_text("sites: {town: {}, other: {}}\n", encoding="utf-8")
    for name, value in {
        "HOME": str(tmp_path / "home"),
        "URL": URL,
        "ADMIN_KEY": ADMIN,
        "CONFIG": "pagewire.yaml",
    }.items():
        monkeypatch.setenv(f"PAGEWIRE_{name}", value)
    served: FastAPI = create_app(edge_settings(tmp_path), fakes.ports)

    def client(url: str, key: SecretStr) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"}
        return httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url=url, headers=headers)

    monkeypatch.setattr(admin_client, "client", client)
    with capture_logs():  # of the gateway, which is another process elsewhere
        yield fakes


@pytest.fixture
def run(gateway: FakePorts) -> Run:
    """Runs a command, which must end with this exit code."""

    def run(*arguments: str, code: int = 0, **more: Any) -> Result:
        done = CliRunner().invoke(commands, list(arguments), catch_exceptions=False, **more)
        assert done.exit_code == code, done.output
        return done

    return run
