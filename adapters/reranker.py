"""Rerankers: models that read question and passage together. They are precise and slow.

| `reranker` | |
| --- | --- |
| `bge:FOLDER` | a bge reranker (Chen et al., 2024) through FlagEmbedding and torch, the extra `bge` |
| `onnx:FOLDER` | any cross-encoder as ONNX, on a CPU, the extra `onnx` |

The weights are in a local folder. Nothing is downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from more_itertools import chunked

from adapters.embedders import bge_m3
from adapters.embedders.base import readable
from adapters.embedders.local import LocalModel
from adapters.embedders.model_threads import QUESTION, ModelThreads, at_once
from adapters.embedders.onnx import NEEDS, FolderModel
from pipelines.runtime.errors import Permanent, SettingsError

MAX_TOKENS = 512  # of question and passage together, as the model was trained
LONGEST = 20_000  # characters of a passage: more than such a model's tokens hold

Scores = Callable[[list[tuple[str, str]]], Sequence[float]]  # logits of pairs of question and passage


def _bge(folder: Path) -> Scores:
    if not folder.is_dir():
        raise Permanent(f"the reranker's weights are not there: {folder} (PAGEWIRE_RERANKER) is no folder")
    import torch
    from FlagEmbedding import FlagReranker

    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    how = {"use_fp16": device != "cpu", "devices": device, "max_length": MAX_TOKENS, "normalize": False}
    scores: Scores = FlagReranker(str(folder), batch_size=_KINDS["bge"].batch, **how).compute_score
    return scores


def _onnx(folder: Path) -> Scores:
    """A cross-encoder with one score a pair."""
    model = FolderModel(folder, f"reranker onnx:{folder} (PAGEWIRE_RERANKER)")
    return lambda pairs: [float(np.ravel(model.run(model.read(*pair)[0]))[0]) for pair in pairs]


class _Kind(NamedTuple):
    load: Callable[[Path], Scores]
    needs: str
    at_once: int  # parallel calls
    batch: int  # pairs of a call, for which a cancelled caller waits


# On a CPU a pair takes a tenth of a second.
_KINDS = {"bge": _Kind(_bge, bge_m3.NEEDS, 1, 8), "onnx": _Kind(_onnx, NEEDS, at_once(), 1)}


class FolderReranker(LocalModel):
    """Scores passages with the model in a folder. Loads it at the first call; call `aclose` at the end."""

    def __init__(self, kind: str, folder: str, nice: int) -> None:
        self._kind, self._folder = _KINDS[kind], Path(folder)
        self.needs = self._kind.needs
        super().__init__(ModelThreads(f"reranker-{kind}", nice, self._kind.at_once))

    def _load(self) -> Scores:
        return self._kind.load(self._folder)

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """The probability of each passage, 0..1, that it answers the question, in the order of the passages.

        Raises:
            Permanent: as `start`, or the model's output is no list of numbers.
        """
        await self.start()
        asked = readable(question)
        calls = chunked([(asked, readable(passage[:LONGEST])) for passage in passages], self._kind.batch)
        scored = chain(*await self._threads.each(self._model, calls, priority=QUESTION))
        values = [1 / (1 + math.exp(-min(max(float(value), -30.0), 30.0))) for value in scored]
        if len(values) != len(passages) or any(math.isnan(value) for value in values):
            said = f"{len(values)} scores for {len(passages)} pairs"
            raise Permanent(f"the reranker in {self._folder} answered with {said}")
        return values


def make_reranker(spec: str, nice: int = 0) -> FolderReranker | None:
    """The reranker that `spec` names, not yet started; None for `none`.

    Args:
        nice: the niceness of the model's threads.

    Raises:
        SettingsError: no reranker of this name.
    """
    kind, _, folder = spec.partition(":")
    if spec == "none":
        return None
    if kind not in _KINDS or not folder:
        raise SettingsError(f"reranker (PAGEWIRE_RERANKER): must be none, bge:FOLDER or onnx:FOLDER, not {spec!r}")
    return FolderReranker(kind, folder, nice)
