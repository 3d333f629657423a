"""Whose conversations get titles: visitors', where their site wants that."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from pipelines.conversations.titles import Titles
from tests.edge import PAGE_ORIGIN, bearer
from tests.fakes.ports import FakeIntake, FakePorts

SITE = "/v1/sites/town"


class FirstWord:
    """Writes titles."""

    async def write(self, site: str, lang: str, question: str, answer: str) -> str | None:
        return f"{site} {lang}: {question.split()[0]}"


@pytest.fixture
def titles() -> Titles:
    return Titles(FirstWord().write)


@pytest.fixture
def fakes(titles: Titles) -> FakePorts:
    return FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}), titles=titles)


async def title(client: httpx.AsyncClient, titles: Titles) -> str:
    """Of a conversation that has just begun."""
    answer = await client.post(f"{SITE}/chat", json={"question": "When does it open?"})
    async with asyncio.timeout(5):
        await asyncio.gather(*titles._tasks)
    found = await client.get(f"{SITE}/conversations/{answer.json()['conversation_id']}")
    return str(found.json()["title"])


async def test_visitors_get_one(stranger: httpx.AsyncClient, titles: Titles) -> None:
    issued = await stranger.post(f"{SITE}/visitor-tokens", headers={"Origin": PAGE_ORIGIN})
    stranger.headers.update(bearer(issued.json()["token"]))
    assert await title(stranger, titles) == "town en: When"


async def test_programs_pay_for_none(client: httpx.AsyncClient, titles: Titles) -> None:
    assert await title(client, titles) == "When does it open?"
