"""What is rehearsed is not loaded again, and a rehearsal that fails harms no start."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from pipelines.query.extractive import courtesy, day_words, days
from pipelines.runtime.errors import Retryable
from schemas.http import SearchKind
from wiring import query as rehearsal
from wiring.query import rehearse_searches, rehearse_words


class FakeSearch:
    def __init__(self, *, broken: str = "", endless: str = "") -> None:
        self.searched: list[str] = []
        self._broken = broken
        self._endless = endless

    async def hits(self, site: str, text: str, *, kind: SearchKind, size: int) -> object:
        self.searched.append(site)
        if site == self._broken:
            raise Retryable("no index is live")
        if site == self._endless:
            await asyncio.Event().wait()
        return []


def test_words_that_were_rehearsed_are_there_with_the_first_question() -> None:
    lists = (courtesy._phrases, day_words.day_words)
    for loaded in lists:
        loaded.cache_clear()
    rehearse_words(["en", "de"])
    before = [loaded.cache_info().misses for loaded in lists]
    courtesy.recognized("hello there", "de")
    days.asked_day("heute offen?", datetime.now(UTC), "de")
    assert [loaded.cache_info().misses for loaded in lists] == before == [1, 2]


async def test_each_site_is_searched_once_also_behind_one_that_fails() -> None:
    search = FakeSearch(broken="first")
    await rehearse_searches(search, ["first", "second"])
    assert search.searched == ["first", "second"]


async def test_searches_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "REHEARSAL", 0.01)
    search = FakeSearch(endless="first")
    await rehearse_searches(search, ["first", "second"])
    assert search.searched == ["first"]
