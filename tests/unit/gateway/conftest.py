"""The gateway over its fakes, in this process, without sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from tests.edge import ADMIN, bearer, edge_settings
from tests.fakes.ports import FakeIntake, FakePorts
from wiring.settings import Settings


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong key is answered at once."""
    monkeypatch.setattr("gateway.console.console.WRONG_KEY_PAUSE", 0.0)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return edge_settings(tmp_path)


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}))


@pytest.fixture
def app(settings: Settings, fakes: FakePorts) -> FastAPI:
    return create_app(settings, fakes.ports)


@pytest.fixture
async def stranger(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client without any key."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        yield client


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the admin key."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://gateway.test", headers=bearer(ADMIN)
    ) as client:
        yield client
