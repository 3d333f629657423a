"""The bundled model: its tokenizer, and the session that makes vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adapters.embedders.e5.file import E5File, weights
from adapters.embedders.e5.graph import INPUT, Way, onnx_model
from adapters.embedders.e5.tokenizer import E5Tokenizer
from adapters.onnx_model import Session

WAYS: tuple[Way, ...] = ("row8", "q4")  # the fastest first


class E5Model:
    """Implements `Model` of adapters.embedders.local. Several threads may call it."""

    call_tokens = 0

    def __init__(self, path: Path, way: Way) -> None:
        """Raises: OSError."""
        self.way = way
        file = E5File(path)
        self._ends = file.bos, file.eos
        self._words = file.blocks("emb.word", file.words)  # stays in the mapped file: 54 of its 72 MB
        self._places = file.floats("emb.pos").reshape(file.places, -1) + file.floats("emb.type")[: file.hidden]
        self._tokenizer = E5Tokenizer(file)
        # Not fused: ONNX Runtime would make SkipLayerNormalization of a sum and its normalization, 20 % slower.
        self._session = Session(onnx_model(file, way), fused=False)

    def read(self, text: str) -> list[list[int]]:
        """All tokens of the text, in windows without overlap."""
        tokens, size = self._tokenizer(text), len(self._places) - 2
        begin, end = self._ends
        return [[begin, *tokens[at : at + size], end] for at in range(0, len(tokens) or 1, size)]

    def embed(self, windows: list[list[int]]) -> NDArray[np.float32]:
        """The mean of each window's token vectors: shape (len(windows), hidden)."""
        words = [weights(self._words[window]) + self._places[: len(window)] for window in windows]
        return np.stack([self._session.run({INPUT: each}).mean(axis=0) for each in words])
