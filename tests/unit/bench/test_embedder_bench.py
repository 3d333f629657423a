"""The embedder benchmark: questions come at their pace, waits count from when they were due, texts until the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import embedder as bench
from bench.embedder import ask, beside
from cli.main import app

INTERVAL = 0.02  # seconds


class Model:
    """An embedder that takes its time: the given seconds for a call."""

    def __init__(self, passages: float = 0.0, query: float = 0.0) -> None:
        self.seconds = {"passages": passages, "query": query}
        self.asked: list[str] = []
        self.calls = 0

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Any:
        assert not urgent  # bulk work, as an import's
        self.calls += 1
        await asyncio.sleep(self.seconds["passages"])
        return np.ones((len(texts), 2))

    async def query(self, text: str) -> Any:
        self.asked.append(text)
        if text == "broken":
            raise ZeroDivisionError
        await asyncio.sleep(self.seconds["query"])


async def test_questions_come_at_their_pace() -> None:
    waits: list[float] = []
    began = perf_counter()
    await ask(Model().query, "abcde", INTERVAL, waits)
    assert perf_counter() - began >= 4 * INTERVAL * 0.95
    assert len(waits) == 5
    assert min(waits) < INTERVAL / 2  # none waits for another


async def test_slow_answers_hold_up_the_next_question_but_are_not_counted_twice() -> None:
    waits: list[float] = []
    await ask(Model(query=3 * INTERVAL).query, "abcdefgh", INTERVAL, waits)
    assert min(waits) >= 3 * INTERVAL * 0.95
    assert sorted(waits)[3] < 6 * INTERVAL  # by the clock alone each would wait two intervals more: the fourth nine


async def test_a_late_loop_is_part_of_the_wait() -> None:
    waits: list[float] = []
    first = asyncio.Event()

    async def answer(question: str) -> None:
        first.set()

    asking = asyncio.create_task(ask(answer, "ab", INTERVAL, waits))
    await first.wait()
    until = perf_counter() + 4 * INTERVAL
    while perf_counter() < until:  # somebody keeps the loop for himself
        pass
    await asking
    assert waits[1] >= 2 * INTERVAL


async def test_texts_are_embedded_until_the_questions_are_answered() -> None:
    model = Model(passages=INTERVAL / 4)
    rate, waits = await beside(model, ["text"] * 10, ["a", "b", "c"], INTERVAL)
    assert len(waits) >= 3
    assert set(model.asked) == {"a", "b", "c"}
    assert model.calls >= 3
    assert rate <= 10 / (INTERVAL / 4)
    asked = len(model.asked)
    await asyncio.sleep(2 * INTERVAL)
    assert len(model.asked) == asked  # nobody asks any more


async def test_a_question_that_fails_ends_the_run() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await beside(Model(passages=INTERVAL), ["text"], ["broken"], INTERVAL)
    assert caught.group_contains(ZeroDivisionError)


def test_generated_texts_are_the_chunks_of_pages() -> None:
    texts, questions = bench._generated(60)
    assert 60 <= len(texts) <= 75
    assert texts == bench._generated(60)[0]
    assert sum(400 <= len(text) <= 800 for text in texts) == 72  # with their overlap; the others are titles
    assert all(question.endswith("?") for question in questions)


@pytest.mark.parametrize("given", [[], ["--random", "--model", "somewhere"]])
def test_the_checkpoint_is_either_given_or_made(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "main", lambda *_: None)
    told = CliRunner().invoke(app, ["bench", "embedder", *given])
    assert told.exit_code == 2
    assert "--random" in told.output
