"""Rerankers: models that read question and passage together. They are precise and slow.

| `reranker` | |
| --- | --- |
| `bge:FOLDER` | a bge reranker (Chen et al., 2024) through FlagEmbedding and torch, the extra `bge` |
| `onnx:FOLDER` | any cross-encoder as ONNX, on a CPU, the extra `onnx` |

The weights are in a local folder. Nothing is downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from adapters.embedders.base import readable
from adapters.embedders.bge_m3 import NEEDS
from adapters.embedders.local import LocalModel
from adapters.embedders.model_threads import QUESTION, ModelThreads, at_once
from adapters.onnx_model import NEEDS as ONNX_NEEDS
from adapters.onnx_model import FolderModel
from pipelines.runtime.errors import Permanent, SettingsError

MAX_TOKENS = 512  # of question and passage together, as the model was trained
LONGEST = 20_000  # characters of a passage: more than such a model's tokens hold
BATCH = 8  # pairs; on a CPU a pair takes a tenth of a second


class FolderReranker(LocalModel):
    """Scores passages with the model in a folder. Loads it at the first call; call `aclose` at the end."""

    kind: ClassVar[str]
    at_once: ClassVar[int] = 1  # parallel calls

    def __init__(self, folder: str, nice: int = 0) -> None:
        """`nice`: the niceness of the model's threads."""
        super().__init__(ModelThreads(f"reranker-{self.kind}", nice, self.at_once))
        self._folder = Path(folder)

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """The probability of each passage, 0..1, that it answers the question, in the order of the passages.

        Raises:
            Permanent: as `start`, or the model's output is no list of numbers.
        """
        await self.start()
        if not passages:
            return []
        scored = await self._score(readable(question), [readable(passage[:LONGEST]) for passage in passages])
        values = [1 / (1 + math.exp(-min(max(float(value), -30.0), 30.0))) for value in scored]
        if len(values) != len(passages) or any(math.isnan(value) for value in values):
            said = f"{len(values)} scores for {len(passages)} pairs"
            raise Permanent(f"the reranker in {self._folder} answered with {said}")
        return values

    async def _score(self, question: str, passages: list[str]) -> Sequence[float]:
        raise NotImplementedError


class BgeReranker(FolderReranker):
    """`bge:FOLDER`."""

    kind, needs = "bge", NEEDS

    def _load(self) -> Any:
        if not self._folder.is_dir():
            raise Permanent(f"the reranker's weights are not there: {self._folder} (PAGEWIRE_RERANKER) is no folder")
        import torch
        from FlagEmbedding import FlagReranker

        device = "cuda:0" if torch.cuda.is_available() else "cpu"
        how = {"use_fp16": device != "cpu", "devices": device, "max_length": MAX_TOKENS, "normalize": False}
        return FlagReranker(str(self._folder), batch_size=BATCH, **how)

    async def _score(self, question: str, passages: list[str]) -> Sequence[float]:
        pairs = [(question, passage) for passage in passages]
        scored: Sequence[float] = await self._threads.run(self._model.compute_score, pairs, priority=QUESTION)
        return scored


class OnnxReranker(FolderReranker):
    """`onnx:FOLDER`: a cross-encoder with one score a pair."""

    kind, needs = "onnx", ONNX_NEEDS
    at_once = at_once()

    def _load(self) -> FolderModel:
        return FolderModel(self._folder, f"reranker onnx:{self._folder} (PAGEWIRE_RERANKER)")

    async def _score(self, question: str, passages: list[str]) -> Sequence[float]:
        """One call a pair, so that a cancelled caller waits for one pair at most."""

        def score(passage: str) -> float:
            return float(np.ravel(self._model.run(self._model.read(question, passage)[0]))[0])

        return await self._threads.each(score, passages, priority=QUESTION)


def make_reranker(spec: str, nice: int = 0) -> FolderReranker | None:
    """The reranker that `spec` names, not yet started; None for `none`.

    Raises:
        SettingsError: no reranker of this name.
    """
    kind, _, folder = spec.partition(":")
    if spec == "none":
        return None
    if kind not in _KINDS or not folder:
        raise SettingsError(f"reranker (PAGEWIRE_RERANKER): must be none, bge:FOLDER or onnx:FOLDER, not {spec!r}")
    return _KINDS[kind](folder, nice)


_KINDS = {each.kind: each for each in (BgeReranker, OnnxReranker)}
