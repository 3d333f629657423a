"""A bge reranker (Chen et al., 2024) through FlagEmbedding: reads question and passage together, dear and precise.

Needs the extra `bge` and the weights in a local folder. Nothing is downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adapters.embedders.base import readable
from adapters.embedders.model_threads import QUESTION, ModelThreads
from pipelines.runtime.errors import Permanent, SettingsError

NOT_INSTALLED = "the bge reranker needs FlagEmbedding and torch ({}); `make setup-bge` installs them"
MAX_TOKENS = 512  # of question and passage together, as the model was trained
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
        values = [1 / (1 + math.exp(-min(max(float(value), -30.0), 30.0))) for value in scored]
        if len(values) != len(pairs) or any(math.isnan(value) for value in values):
            raise Permanent(f"the reranker in {self._folder} answered with {len(values)} scores for {len(pairs)} pairs")
        return values


def make_reranker(spec: str, nice: int = 0) -> BgeReranker | None:
    """The reranker that `spec` names, not yet started; None for `none`.

    Raises:
        SettingsError: no reranker of this name.
    """
    kind, _, folder = spec.partition(":")
    if spec == "none":
        return None
    if kind != "bge" or not folder:
        raise SettingsError(f"reranker (PAGEWIRE_RERANKER): must be none or bge:FOLDER, not {spec!r}")
    return BgeReranker(folder, nice)


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
