"""Tiny ONNX models with a real tokenizer, made here: what they answer can be worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.unigram import PIECES, SPECIAL, save_tokenizer

DIMS = 16
MAX_TOKENS = 128


def embedder(folder: Path, rows: int = len(PIECES)) -> NDArray[np.float32]:
    """A row of this table for each piece; a text's vectors are those of its pieces."""
    table = _random(rows, DIMS)
    _save(folder, table, ["input_ids", "attention_mask"], [("Gather", ["table", "input_ids"], "last_hidden_state")], 3)
    return table


def cross_encoder(folder: Path) -> NDArray[np.float32]:
    """A weight for each piece; the score of a pair is the sum of the weights of its pieces, padding left out."""
    weights = _random(len(PIECES), 1) / 10
    weights[1] = 0  # <pad>
    steps = [("Gather", ["table", "input_ids"], "each"), ("ReduceSum", ["each", "axis"], "logits")]
    _save(folder, weights, ["input_ids", "attention_mask"], steps, 2)
    return weights


def pieces(text: str) -> list[int]:
    """The tokens of a text between its marks, as the tokenizer makes them."""
    spelled = "▁" + " ".join(text.lower().split()).replace(" ", "▁")
    return [PIECES.index(letter) if letter in PIECES else 3 for letter in spelled]


def _random(rows: int, columns: int) -> NDArray[np.float32]:
    return np.random.default_rng(7).normal(size=(rows, columns)).astype(np.float32)


def _save(
    folder: Path, table: NDArray[np.float32], inputs: list[str], steps: list[tuple[str, list[str], str]], rank: int
) -> None:
    from onnx import TensorProto, checker, helper, numpy_helper, save

    tokens = ["batch", "tokens"]
    shape = [*tokens, DIMS] if rank == 3 else ["batch", 1]
    graph = helper.make_graph(
        [
            helper.make_node(kind, given, [made], **({"keepdims": 0} if kind == "ReduceSum" else {}))
            for kind, given, made in steps
        ],
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, tokens) for name in inputs],
        [helper.make_tensor_value_info(steps[-1][2], TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1], np.int64), "axis")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model)
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    save(model, str(folder / "onnx/model.onnx"))
    save_tokenizer(folder, MAX_TOKENS)
    (folder / "special_tokens_map.json").write_text(json.dumps(SPECIAL))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 1, "hidden_size": DIMS}))
