"""An ONNX embedder through the real tokenizers and onnxruntime, on a tiny model made here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from adapters.embedders.base import Embedder
from adapters.embedders.registry import make_embedder
from pipelines.runtime.errors import Permanent
from tests.onnx import tiny
from wiring.settings import Settings

pytestmark = pytest.mark.onnx

POOL = "The pool opens at nine."
TAX = "Dog tax is due in February."
ODD = ["", " \n ", "a\0b \ud800", "👩‍👩‍👧‍👦", "مسبح المدينة", POOL * 200, "x" * 100_000]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny.embedder(tmp_path)
    return tmp_path


@pytest_asyncio.fixture
async def embedder(folder: Path) -> AsyncIterator[Embedder]:
    async for made in started(folder):
        yield made


async def started(folder: Path) -> AsyncIterator[Embedder]:
    made = make_embedder(f"onnx:{folder}", Settings(embedder=f"onnx:{folder}"))
    await made.start()
    try:
        yield made
    finally:
        await made.aclose()


def expected(folder: Path, text: str, how: str = "mean") -> np.ndarray:
    rows = tiny.embedder(folder)[[0, *tiny.pieces(text), 2]]
    vector = rows.mean(axis=0) if how == "mean" else rows[0]
    return vector / np.linalg.norm(vector)


async def test_vectors_are_those_of_the_model(embedder: Embedder, folder: Path) -> None:
    vectors = await embedder.passages([TAX, POOL, TAX])
    assert vectors.shape == (3, embedder.dims) == (3, tiny.DIMS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [expected(folder, text) for text in (TAX, POOL, TAX)], atol=1e-5)
    np.testing.assert_allclose(await embedder.query(POOL), vectors[1], atol=1e-5)


async def test_any_text_is_taken_and_has_the_same_vector_among_others(embedder: Embedder) -> None:
    together = await embedder.passages([*ODD, POOL])
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip([*ODD, POOL], together, strict=True):
        np.testing.assert_allclose((await embedder.passages([text], urgent=False))[0], vector, atol=1e-5)
    assert (await embedder.passages([])).shape == (0, tiny.DIMS)


async def test_many_may_ask_at_once(embedder: Embedder) -> None:
    alone = await embedder.query(POOL)
    together = await asyncio.gather(*[embedder.query(POOL) for _ in range(8)], embedder.passages([TAX] * 20))
    assert all(np.allclose(vector, alone, atol=1e-5) for vector in together[:8])


async def test_what_sentence_transformers_writes_beside_a_model_is_followed(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(
        json.dumps({"pooling_mode_cls_token": True, "word_embedding_dimension": 16})
    )
    async for embedder in started(folder):
        np.testing.assert_allclose(await embedder.query(POOL), expected(folder, POOL, "cls"), atol=1e-5)
        cls = embedder.fingerprint
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    prompts = {"prompts": {"query": "query: ", "document": "passage: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    async for embedder in started(folder):
        np.testing.assert_allclose(await embedder.query(POOL), expected(folder, f"query: {POOL}"), atol=1e-5)
        np.testing.assert_allclose(
            (await embedder.passages([POOL]))[0], expected(folder, f"passage: {POOL}"), atol=1e-5
        )
        assert embedder.fingerprint != cls


async def test_the_fingerprint_is_of_the_model_and_not_of_its_place(
    embedder: Embedder, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    tiny.embedder(elsewhere)
    async for other in started(elsewhere):
        assert other.fingerprint == embedder.fingerprint
        assert other.spec != embedder.spec


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("onnx/model.onnx", None, "no ONNX model is there"),
        ("onnx/model.onnx", "no model", "cannot be loaded"),
        ("tokenizer.json", None, "cannot be loaded"),
        ("1_Pooling/config.json", '{"pooling_mode_weightedmean_tokens": true}', "pooling is not known here"),
        ("config_sentence_transformers.json", "{not json", "no JSON"),
    ],
)
async def test_what_cannot_be_loaded_is_said(folder: Path, file: str, content: str | None, complaint: str) -> None:
    path = folder / file
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_text(content)
    with pytest.raises(Permanent, match=complaint):
        async for _ in started(folder):
            pass


async def test_a_model_that_cannot_be_run_is_said(folder: Path) -> None:
    tiny.embedder(folder, rows=2)  # knows two pieces only
    with pytest.raises(Permanent, match="cannot be run"):
        async for _ in started(folder):
            pass
