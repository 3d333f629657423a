"""What is measured of an answer's stream: from `accepted` to the first event of a kind."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bench import latency
from bench.latency import shown


async def stream(*events: str) -> AsyncIterator[str]:
    for event in events:
        for line in (f"event: {event}", "data: {}", ""):
            yield line


async def test_the_first_token_and_the_whole_answer_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(100))
    monkeypatch.setattr(latency, "perf_counter", lambda: next(seconds))
    events = ("accepted", "rephrased", "token", "token", "citation", "answer", "done")
    assert await shown(stream(*events)) == [2_000, 5_000]


async def test_a_stream_without_an_answer_is_no_measurement() -> None:
    with pytest.raises(KeyError, match="answer"):
        await shown(stream("accepted", "token", "error", "done"))
