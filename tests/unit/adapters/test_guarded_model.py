"""A model behind a queue, a breaker and a fallback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from adapters.llm.guarded import GuardedChat
from pipelines.query.ports import (
    ContentFiltered,
    Delta,
    ModelCut,
    ModelDenied,
    ModelDown,
    NoToolCalls,
    RateLimited,
    ToolSpec,
)
from prompts.loader import ChatMessage
from schemas.answer import Usage
from tests.fakes.chat_model import FakeChat

ASKED = (ChatMessage("user", "When?"),)


def guarded(model: Any, fallback: Any = None, *, at_once: int = 8, rest: float = 60) -> GuardedChat:
    return GuardedChat(model, "model", at_once=at_once, failures=2, rest=rest, fallback=fallback)


class Breaks(FakeChat):
    """Breaks off after its first word."""

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
    ) -> AsyncGenerator[Delta, None]:
        yield Delta("Open ")
        raise ModelCut("broke off")


@pytest.mark.parametrize("error", [ModelDown("away"), RateLimited("busy"), ModelDenied("no such key")])
async def test_where_a_model_fails_the_fallback_answers(error: Exception) -> None:
    assert (await guarded(FakeChat(error), FakeChat("Daily.")).complete(ASKED)).text == "Daily."


async def test_what_the_filter_refuses_goes_to_no_other_model() -> None:
    other = FakeChat("Daily.")
    with pytest.raises(ContentFiltered):
        await guarded(FakeChat(ContentFiltered("no")), other).complete(ASKED)
    assert other.asked == []


async def test_a_model_without_tools_is_not_replaced_but_asked_without_them() -> None:
    other = FakeChat("Daily.")
    model = guarded(FakeChat(NoToolCalls("no tools"), "Open daily."), other)
    with pytest.raises(NoToolCalls):
        await model.complete(ASKED, tools=[ToolSpec("search", "Searches.", {})])
    assert (await model.complete(ASKED)).text == "Open daily."
    assert other.asked == []


async def test_after_the_first_word_there_is_no_fallback() -> None:
    other = FakeChat("Daily.")
    with pytest.raises(ModelCut):
        await guarded(Breaks(), other).complete(ASKED)
    assert other.asked == []


async def test_a_model_that_fails_again_and_again_is_left_alone_for_a_while() -> None:
    model = FakeChat(ModelDown("away"), ModelDown("away"), "Daily.")
    chat = guarded(model, rest=0.05)
    for _ in range(4):
        with pytest.raises(ModelDown):
            await chat.complete(ASKED)
    assert len(model.asked) == 2
    async with asyncio.timeout(5):
        while True:
            try:
                assert (await chat.complete(ASKED)).text == "Daily."
                return
            except ModelDown:
                await asyncio.sleep(0.01)


async def test_only_a_server_that_is_away_counts() -> None:
    model = FakeChat(*[RateLimited("busy")] * 5, "Daily.")
    chat = guarded(model)
    for _ in range(5):
        with pytest.raises(RateLimited):
            await chat.complete(ASKED)
    assert (await chat.complete(ASKED)).text == "Daily."


async def test_so_many_calls_at_once_and_no_more() -> None:
    class Waits(FakeChat):
        open = most = 0

        async def stream(
            self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
        ) -> AsyncGenerator[Delta, None]:
            self.open += 1
            self.most = max(self.most, self.open)
            await asyncio.sleep(0)
            yield Delta("ok", usage=Usage())
            self.open -= 1

    model = Waits()
    chat = guarded(model, at_once=2)
    await asyncio.gather(*(chat.complete(ASKED) for _ in range(6)))
    assert model.most == 2


async def test_leaving_hangs_up_and_is_no_failure() -> None:
    model = FakeChat(["One. ", "Two. "])
    chat = guarded(model)
    for _ in range(3):
        async with aclosing(chat.stream(ASKED)) as deltas:
            assert (await anext(deltas)).text == "One. "
    assert model.stopped == 3
