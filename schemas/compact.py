"""Vectors of length 1 as one signed byte per component: a quarter of float32, and hardly less exact.

Each vector is scaled so that its largest component is 127. The factor is not stored, because the length is 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGEST = 127


def compact(vectors: ArrayLike) -> list[bytes]:
    """Encode an array (n, dims) of finite numbers: `dims` bytes per row."""
    rows = np.asarray(vectors, dtype=np.float32)
    if not rows.size:
        return []
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1) * LARGEST
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


def expand(data: bytes, rows: int) -> NDArray[np.float32]:
    """Decode the joined bytes of `compact`: (rows, dims), each of length 1. Raises: ValueError: wrong size."""
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
