"""Vectors of length 1 as one signed byte per component: a quarter of float32, and hardly less exact.

Each vector is stretched until its largest component is 127. How far is not kept: its length is known to be 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGEST = 127


def compact(vectors: ArrayLike) -> list[bytes]:
    """Of an array (n, dims) of finite numbers, each row as `dims` bytes."""
    rows = np.asarray(vectors, dtype=np.float32)
    if not rows.size:
        return []
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1) * LARGEST
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


def expand(data: bytes, rows: int) -> NDArray[np.float32]:
    """What `compact` made, joined: (rows, dims), each of length 1. Raises: ValueError: they are not so many."""
    if not rows:
        if data:
            raise ValueError("there are vectors of nothing")
        return np.empty((0, 0), dtype=np.float32)
    if not data or len(data) % rows:
        raise ValueError(f"{len(data)} bytes are not {rows} vectors of equal length")
    vectors = np.frombuffer(data, dtype=np.int8).reshape(rows, -1).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors
