"""The pump: the first piece at once, then a batch now and then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from pipelines.query.answer import pump
from pipelines.query.answer.pump import pumped
from pipelines.query.answer.strategies.base import Piece
from schemas.answer import Token


async def test_the_first_token_comes_at_once_and_quick_ones_after_it_come_joined() -> None:
    first_taken = asyncio.Event()

    async def model() -> AsyncGenerator[Piece, None]:
        yield Token(text="A boat ")
        await first_taken.wait()
        for word in ("costs ", "7 ", "euros."):
            yield Token(text=word)
            await asyncio.sleep(0)

    texts = []
    async for pieces in pumped(model(), asyncio.Event(), seconds=60):
        texts.append([piece.text for piece in pieces if isinstance(piece, Token)])
        first_taken.set()
    assert texts == [["A boat "], ["costs 7 euros."]]


async def test_batches_of_all_answers_go_out_on_the_same_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    beats: list[float] = []
    sleep = asyncio.sleep

    async def until(seconds: float) -> None:
        beats.append((loop.time() + seconds) / pump.PACE)
        await sleep(0)

    async def model() -> AsyncGenerator[Piece, None]:
        for word in ("A ", "boat ", "costs ", "7 ", "euros."):
            yield Token(text=word)
            await sleep(0.01)

    monkeypatch.setattr(pump.asyncio, "sleep", until)
    async for _ in pumped(model(), asyncio.Event(), seconds=60):
        pass
    assert len(beats) == 5
    assert [round(beat, 2) % 1 for beat in beats[1:]] == [0] * 4
