"""The gateway over its fakes, in this process, without sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from gateway.fakes import FakePages, FakePorts
from pipelines.runtime.settings import KeySettings, Settings, SiteSettings

ADMIN = "admin-key-of-the-test"
INGEST_TOWN = "ingest-key-of-town"
CHAT_ANYWHERE = "chat-key-of-a-program"
PAGE_ORIGIN = "https://www.town.example"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _key(name: str, key: str, scope: str, site: str | None) -> KeySettings:
    return KeySettings.model_validate(
        {"name": name, "sha256": sha256(key.encode()).hexdigest(), "scopes": [scope], "site": site}
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate(
        {
            "home": tmp_path,
            "admin_key": ADMIN,
            "sites": {
                "town": SiteSettings(languages=("en", "de"), title="Town & Sons", origins=(PAGE_ORIGIN,)),
                "other": SiteSettings(languages=("fr",)),
            },
            "keys": [_key("cms", INGEST_TOWN, "ingest", "town"), _key("bot", CHAT_ANYWHERE, "chat", None)],
            "content_limit": 10_000,
        }
    )


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(pages=FakePages({"town": "en", "other": "fr"}))


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


def assert_problem(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    """The response is an RFC 9457 document with this status and code; returns it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, object] = response.json()
    assert body["code"] == code, body
    assert body["status"] == status
    assert body["type"] == f"urn:pagewire:problem:{code}"
    assert body["instance"] == response.headers["x-trace-id"]
    assert body["detail"]
    return body
