"""bge-m3's adapter through the real FlagEmbedding and torch, on a tiny checkpoint of random weights made here.

The checkpoint has the real one's files and shapes (XLM-RoBERTa, 1024 wide, `sparse_linear.pt`, `colbert_linear.pt`)
with one layer and a small vocabulary: what it answers means nothing, how it is asked is the real thing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import pytest_asyncio

from adapters.embedders.base import Embedder
from adapters.embedders.bge_m3 import BgeM3Embedder
from adapters.embedders.registry import make_embedder
from pipelines.runtime.errors import Permanent, Retryable
from tests.unigram import PIECES, save_tokenizer
from wiring.settings import Settings

pytestmark = [
    pytest.mark.bge,
    # Of the libraries, about themselves.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

WIDTH = 1024
ODD_TEXTS = ["", " \n ", "x" * 10_000, "a\0b", "\ud800", "👩‍👩‍👧‍👦 🇩🇪", "مسبح المدينة", "\ufdfa" * 50]

MIXED = ["", "pool", "The pool opens at nine.", "Dog tax is due. " * 40, "👩 مسبح"]


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("bge-m3"), seed=1)


def make_weights(folder: Path, seed: int) -> Path:
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaModel

    torch.manual_seed(seed)
    vocabulary = make_tokenizer(folder)
    config = XLMRobertaConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=8194,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    XLMRobertaModel(config).save_pretrained(folder)
    torch.save(torch.nn.Linear(WIDTH, 1).state_dict(), folder / "sparse_linear.pt")
    torch.save(torch.nn.Linear(WIDTH, WIDTH).state_dict(), folder / "colbert_linear.pt")
    return folder


def make_tokenizer(folder: Path) -> int:
    """How many pieces it has."""
    save_tokenizer(folder, 8192)
    return len(PIECES)


@pytest_asyncio.fixture
async def embedder(weights: Path) -> AsyncIterator[BgeM3Embedder]:
    made = make_embedder("bge-m3", Settings(bge_model=str(weights)))
    assert isinstance(made, BgeM3Embedder)
    await made.start()
    try:
        yield made
    finally:
        await made.aclose()


async def test_vectors_have_length_one_and_1024_dimensions(embedder: Embedder) -> None:
    vectors = await embedder.passages(["The pool opens at nine.", "Dog tax is due in February."])
    assert vectors.shape == (2, embedder.dims) == (2, WIDTH)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)


async def test_questions_and_pages_are_embedded_alike(embedder: Embedder) -> None:
    # bge-m3 takes no instruction before a question.
    text = "When does the pool open?"
    np.testing.assert_allclose(await embedder.query(text), (await embedder.passages([text]))[0], atol=1e-3)


async def test_what_it_answers_is_what_the_library_answers(embedder: Embedder, weights: Path) -> None:
    from FlagEmbedding import BGEM3FlagModel

    texts = [f"Sentence {i} of the town. " * (1 + i % 5 * 8) for i in range(25)] + ["", "word " * 300]
    model = BGEM3FlagModel(str(weights), use_fp16=False, devices="cpu")
    expected = model.encode(texts, batch_size=1, max_length=8192)["dense_vecs"]
    several = BgeM3Embedder(str(weights))
    await several.start()
    several._model.call_tokens = 3_000  # texts a call, with padding, and other calls after it
    for ours in (embedder, several):
        cosines = (await ours.passages(texts) * expected).sum(axis=1)
        assert cosines.min() > 0.999  # half precision on a GPU
    await several.aclose()


async def test_half_precision_answers_alike(embedder: BgeM3Embedder) -> None:
    # What a GPU computes in, here on the CPU. Random weights show it as well as any.
    expected = await embedder.passages(MIXED)
    embedder._model._model.half()
    assert (await embedder.passages(MIXED) * expected).sum(axis=1).min() > 0.999


async def test_a_full_gpu_may_be_tried_again(embedder: BgeM3Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def full(*_: object, **__: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(embedder._model._model, "forward", full)
    with pytest.raises(Retryable, match="memory"):
        await embedder.passages(["The pool opens at nine."])


async def test_long_text_is_read_to_its_end(embedder: Embedder) -> None:
    # Longer than the library's own limit of 512 tokens, which would make these two equal.
    start = "a b c d e f " * 100
    one, other = await embedder.passages([start + "x y z " * 50, start + "1 2 3 " * 50])
    assert not np.allclose(one, other, atol=1e-4)


async def test_any_text_is_taken(embedder: Embedder) -> None:
    vectors = await embedder.passages(ODD_TEXTS)
    assert np.isfinite(vectors).all()
    assert (await embedder.passages([])).shape == (0, WIDTH)
    assert np.isfinite(await embedder.query("")).all()


async def test_a_question_overtakes_the_pages_that_wait(embedder: Embedder) -> None:
    pages = [asyncio.create_task(embedder.passages(["some words of a page " * 20])) for _ in range(12)]
    await asyncio.sleep(0)  # all are queued, one is at work
    await embedder.query("pool")
    assert sum(page.done() for page in pages) <= 3
    assert [len(page) for page in await asyncio.gather(*pages)] == [1] * 12


def test_its_floors_are_the_original_ones() -> None:
    profile = BgeM3Embedder("BAAI/bge-m3").profile
    assert (profile.short_floor, profile.content_floor) == (0.5, 0.2)


def test_other_weights_are_another_model(weights: Path, tmp_path: Path) -> None:
    hub = BgeM3Embedder("BAAI/bge-m3").fingerprint
    here = BgeM3Embedder(str(weights)).fingerprint
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((weights / name).read_bytes()[:-1])
    assert len({hub, here, BgeM3Embedder(str(tmp_path)).fingerprint}) == 3
    assert here == BgeM3Embedder(str(weights)).fingerprint


async def test_missing_weights_are_named_and_not_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    model = BgeM3Embedder("BAAI/bge-m3")
    with pytest.raises(Permanent, match="PAGEWIRE_BGE_MODEL"):
        await model.start()
    await model.aclose()


async def test_broken_weights_are_named(weights: Path, tmp_path: Path) -> None:
    copytree(weights, tmp_path, dirs_exist_ok=True)
    os.truncate(tmp_path / "model.safetensors", 500)
    model = BgeM3Embedder(str(tmp_path))
    with pytest.raises(Permanent, match=r"cannot be loaded: SafetensorError: .+ `hf download"):
        await model.start()
    await model.aclose()


async def test_weights_are_found_in_the_hub_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, weights: Path
) -> None:
    # As the hub client lays it out: refs/main names a snapshot.
    model_folder = tmp_path / "models--BAAI--bge-m3"
    (model_folder / "refs").mkdir(parents=True)
    (model_folder / "refs" / "main").write_text("0" * 40)
    (model_folder / "snapshots").mkdir()
    (model_folder / "snapshots" / ("0" * 40)).symlink_to(weights, target_is_directory=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    model = BgeM3Embedder("BAAI/bge-m3")
    await model.start()
    assert (await model.query("pool")).shape == (WIDTH,)
    await model.aclose()
