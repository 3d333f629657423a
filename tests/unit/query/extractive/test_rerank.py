"""Reranking: what the reranker says is the order, and no more is left than wanted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from adapters.reranker import make_reranker
from pipelines.query.extractive.assessment import rerank
from pipelines.query.retrieve.retrieve import KEPT
from pipelines.query.search.ports import Hit
from pipelines.runtime.errors import SettingsError


class Longest:
    """Thinks that the longest passage answers best."""

    def __init__(self) -> None:
        self.read: list[str] = []

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        self.read += passages
        return [len(passage) / 100 for passage in passages]


def hit(ord: int, text: str) -> Hit:
    return Hit(
        page_key="town:en:p",
        page_id="p",
        lang="en",
        title="Title",
        url="/p",
        field="content",
        ord=ord,
        text=text,
        revision=1,
        cosine=0.9,
        score=0.5,
    )


async def test_the_reranker_decides_the_order_and_the_score() -> None:
    reader = Longest()
    best, worst = await rerank("When?", [hit(0, "short"), hit(1, "much longer")], reader, 2)
    assert reader.read == ["Title\nshort", "Title\nmuch longer"]
    assert (best.ord, best.score, best.cosine) == (1, 0.17, 0.9)
    assert worst.ord == 0


async def test_five_are_left() -> None:
    hits = await rerank("When?", [hit(n, "x" * n) for n in range(20)], Longest(), KEPT)
    assert [each.ord for each in hits] == [19, 18, 17, 16, 15]
    assert len(hits) == KEPT
    assert len(await rerank("When?", [hit(n, "x") for n in range(20)], Longest(), 8)) == 8


def test_there_is_none_unless_one_is_named() -> None:
    assert make_reranker("none") is None
    assert make_reranker("bge:/weights") is not None
    assert make_reranker("onnx:/weights") is not None
    for wrong in ("bge", "bge:", "onnx:", "best"):
        with pytest.raises(SettingsError, match="PAGEWIRE_RERANKER"):
            make_reranker(wrong)
