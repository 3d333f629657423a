"""Rerankers: read question and passage together, dear and precise.

| `reranker` | |
| --- | --- |
| `bge:FOLDER` | a bge reranker (Chen et al., 2024) through FlagEmbedding and torch, the extra `bge` |
| `onnx:FOLDER` | any cross-encoder as ONNX through fastembed, on a CPU, the extra `onnx` |

The weights are in a local folder. Nothing is downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from adapters.embedders.base import readable
from adapters.embedders.model_threads import QUESTION, ModelThreads
from adapters.onnx_model import loaded
from pipelines.runtime.errors import Permanent, SettingsError

NOT_INSTALLED = "the bge reranker needs FlagEmbedding and torch ({}); `make setup-bge` installs them"
MAX_TOKENS = 512  # of question and passage together, as the model was trained
LONGEST = 20_000  # characters of a passage that is read: more than any such model's tokens
BATCH = 8  # pairs; on a CPU a pair takes a tenth of a second


class BgeReranker:
    """How well passages answer a question. Loads its model when first asked; close it last."""

    def __init__(self, folder: str, nice: int = 0) -> None:
        """`nice`: gives way to other processes by so much."""
        self._folder = Path(folder)
        self._thread = ModelThreads("reranker-bge", nice)
        self._model: Any = None

    async def start(self) -> None:
        """Raises: Permanent: it is not installed or its weights are not there; says what to do."""
        if self._model is None:
            self._model = await self._thread.run(_load, self._folder, priority=QUESTION)

    async def aclose(self) -> None:
        await self._thread.aclose()

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """Chance that each passage answers the question, 0..1; one by one, as many as there are passages.

        Raises:
            Permanent: as `start`, or the model answers with something that is no number.
        """
        await self.start()
        if not passages:
            return []
        pairs = [(readable(question), readable(passage)) for passage in passages]
        scored = await self._thread.run(self._model.compute_score, pairs, priority=QUESTION)
        return _chances(scored, len(pairs), self._folder)


class OnnxReranker:
    """As `BgeReranker`, of any cross-encoder with one score a pair."""

    def __init__(self, folder: str, nice: int = 0) -> None:
        """`nice`: gives way to other processes by so much."""
        self._folder = Path(folder)
        self._thread = ModelThreads("reranker-onnx", nice)
        self._model: Any = None

    async def start(self) -> None:
        """Raises: Permanent: it is not installed or its weights are not there; says what to do."""
        if self._model is None:
            what = f"reranker onnx:{self._folder} (PAGEWIRE_RERANKER)"
            self._model = await self._thread.run(loaded, "TextCrossEncoder", self._folder, what, priority=QUESTION)

    async def aclose(self) -> None:
        await self._thread.aclose()

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """As `BgeReranker.scores`. Each batch is a call: a passage that is more urgent waits for one at most."""
        await self.start()
        read = [readable(passage[:LONGEST]) for passage in passages]
        # Passages of like length together: each costs as much as the longest of its batch.
        order = sorted(range(len(read)), key=lambda place: len(read[place]))
        batches = [[read[place] for place in order[at : at + BATCH]] for at in range(0, len(order), BATCH)]
        asked = readable(question)
        made = await self._thread.each(lambda batch: self._score(asked, batch), batches, priority=QUESTION)
        by_place = dict(
            zip(order, _chances([value for some in made for value in some], len(read), self._folder), strict=True)
        )
        return [by_place[place] for place in range(len(read))]

    def _score(self, question: str, passages: list[str]) -> list[float]:
        return list(self._model.rerank(question, passages, batch_size=len(passages)))


def _chances(scored: Iterable[float], count: int, folder: Path) -> list[float]:
    """A model's scores as chances, 0..1. Raises: Permanent: there are not as many, or what is there is no number."""
    values = [1 / (1 + math.exp(-min(max(float(value), -30.0), 30.0))) for value in scored]
    if len(values) != count or any(math.isnan(value) for value in values):
        raise Permanent(f"the reranker in {folder} answered with {len(values)} scores for {count} pairs")
    return values


def make_reranker(spec: str, nice: int = 0) -> BgeReranker | OnnxReranker | None:
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


_KINDS: dict[str, type[BgeReranker | OnnxReranker]] = {"bge": BgeReranker, "onnx": OnnxReranker}


def _load(folder: Path) -> Any:
    if not folder.is_dir():
        raise Permanent(f"the reranker's weights are not there: {folder} (PAGEWIRE_RERANKER) is no folder")
    try:
        import torch
        from FlagEmbedding import FlagReranker
    except ImportError as err:
        raise Permanent(NOT_INSTALLED.format(err)) from err
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    return FlagReranker(
        str(folder), use_fp16=device != "cpu", devices=device, batch_size=BATCH, max_length=MAX_TOKENS, normalize=False
    )
