"""An ONNX cross-encoder through the real tokenizers and onnxruntime, on a tiny model made here."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from adapters.reranker import FolderReranker, make_reranker
from pipelines.query.answer.judging import Claim, RerankerJudge
from pipelines.runtime.errors import Permanent
from tests.asking import question, source
from tests.onnx import tiny

pytestmark = pytest.mark.onnx

QUESTION = "when does the pool open"
PASSAGES = ["The pool opens at nine.", "Dog tax is due in February.", "", "a\0b \ud800", "word " * 2_000]


@pytest_asyncio.fixture
async def reranker(tmp_path: Path) -> AsyncIterator[FolderReranker]:
    tiny.cross_encoder(tmp_path)
    made = make_reranker(f"onnx:{tmp_path}")
    assert isinstance(made, FolderReranker)
    try:
        yield made
    finally:
        await made.aclose()


async def test_chances_are_those_of_the_model(reranker: FolderReranker, tmp_path: Path) -> None:
    weights = tiny.cross_encoder(tmp_path)[:, 0]
    for passage, chance in zip(PASSAGES[:2], await reranker.scores(QUESTION, PASSAGES[:2]), strict=True):
        logit = weights[[0, *tiny.pieces(QUESTION), 2, 2, *tiny.pieces(passage), 2]].sum()
        assert chance == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-5)


async def test_every_passage_gets_its_own_chance_however_many_there_are(reranker: FolderReranker) -> None:
    many = [*PASSAGES, *[f"Passage number {n}." for n in range(20)]]
    together = await reranker.scores(QUESTION, many)
    alone = [(await reranker.scores(QUESTION, [passage]))[0] for passage in many]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert all(0 < chance < 1 for chance in together)
    assert await reranker.scores(QUESTION, []) == []


async def test_it_can_judge(reranker: FolderReranker) -> None:
    claims = [Claim("The pool opens at nine.", (source(1, "The pool opens at nine. Dog tax is due."),))]
    [chance] = (await RerankerJudge(reranker).entailed(claims, question())).chances
    assert chance is not None
    assert 0 < chance < 1


async def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    made = make_reranker(f"onnx:{tmp_path / 'none'}")
    assert made
    with pytest.raises(Permanent, match="no ONNX model is there"):
        await made.start()
    await made.aclose()
