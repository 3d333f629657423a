"""The bge reranker through the real FlagEmbedding and torch, on a tiny checkpoint of random weights made here.

What it answers means nothing, how it is asked is the real thing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from adapters.reranker import FolderReranker, make_reranker
from pipelines.runtime.errors import Permanent
from tests.bge.test_bge_m3 import make_tokenizer

pytestmark = [
    pytest.mark.bge,
    # Of the libraries, about themselves.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

QUESTION = "when does the pool open"
PASSAGES = ["The pool opens at nine.", "Dog tax is due in February.", "", "a\0b \ud800", "word " * 2_000]


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

    folder = tmp_path_factory.mktemp("bge-reranker")
    torch.manual_seed(1)
    config = XLMRobertaConfig(
        vocab_size=make_tokenizer(folder),
        hidden_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=8194,
        type_vocab_size=1,
        num_labels=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest_asyncio.fixture
async def reranker(weights: Path) -> AsyncIterator[FolderReranker]:
    made = make_reranker(f"bge:{weights}")
    assert made
    try:
        yield made
    finally:
        await made.aclose()


async def test_every_passage_gets_its_chance(reranker: FolderReranker) -> None:
    scores = await reranker.scores(QUESTION, PASSAGES)
    assert len(scores) == len(PASSAGES)
    assert all(0 < score < 1 for score in scores)
    assert len(set(scores)) > 1
    assert await reranker.scores(QUESTION, []) == []


async def test_what_it_answers_is_what_the_library_answers(reranker: FolderReranker, weights: Path) -> None:
    from FlagEmbedding import FlagReranker

    model = FlagReranker(str(weights), use_fp16=False, devices="cpu", normalize=True)
    expected = model.compute_score([(QUESTION, passage) for passage in PASSAGES[:2]])
    np.testing.assert_allclose(await reranker.scores(QUESTION, PASSAGES[:2]), expected, atol=5e-3)


async def test_one_passage_is_scored_as_among_others(reranker: FolderReranker) -> None:
    [alone] = await reranker.scores(QUESTION, PASSAGES[:1])
    assert alone == pytest.approx((await reranker.scores(QUESTION, PASSAGES))[0], abs=5e-3)


async def test_weights_that_are_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="PAGEWIRE_RERANKER"):
        await FolderReranker("bge", str(tmp_path / "nothing"), 0).start()
