"""Any ONNX embedder of a local folder, through fastembed: a choice of models on a CPU, without torch.

How token vectors become one, and what is put before questions and pages, is read from the files that
sentence-transformers writes beside a model: `1_Pooling/config.json` (else: their mean) and the `prompts` of
`config_sentence_transformers.json` (`query`; `passage` or `document`; else: nothing).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from adapters.embedders.base import Vectors, readable, slices, unit_vectors
from adapters.embedders.model_threads import BULK, QUESTION, SAVE, ModelThreads
from adapters.onnx_model import loaded, model_file, weights_mark
from pipelines.query.retrieve.ports import EmbedderProfile
from pipelines.runtime.errors import Permanent

SLICE_CHARS = 4_000  # of a call, padding included; whoever is more urgent waits for one call at most
LONGEST = 20_000  # characters of a text that is read: more than any such model's tokens


class OnnxEmbedder:
    """`onnx:FOLDER`. Implements `Embedder`."""

    # Unknown models: floors that refuse little. Calibrate with `pagewire bench floors`.
    profile = EmbedderProfile(short_floor=0.3, content_floor=0.15)

    def __init__(self, folder: str, nice: int = 0) -> None:
        """`nice`: gives way to other processes by so much."""
        self.spec = f"onnx:{folder}"
        self._folder = Path(folder)
        self._thread = ModelThreads("embedder-onnx", nice)
        self._model: Any = None
        self._dims: int | None = None
        self._mark = ""
        self._before_query = self._before_passage = ""

    @property
    def dims(self) -> int:
        if self._dims is None:
            raise RuntimeError(f"{self.spec} is not started: its dimensions are not known yet")
        return self._dims

    @property
    def fingerprint(self) -> str:
        # Not of the folder's name: the same files elsewhere make the same vectors.
        return f"onnx-{self.dims}-{self._mark}"

    async def start(self) -> None:
        if self._dims is None:
            self._dims = await self._thread.run(self._load, priority=QUESTION)

    async def look_again(self) -> None:
        pass

    async def aclose(self) -> None:
        await self._thread.aclose()

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        await self.start()
        # Texts of like length together: each costs as much as the longest of its call.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        pieces = slices([self._read(self._before_passage, texts[place]) for place in order], SLICE_CHARS)
        made = await self._thread.each(self._embed, pieces, priority=SAVE if urgent else BULK)
        whole = np.empty((len(texts), self.dims), np.float32)
        if order:
            whole[order] = list(chain(*made))
        return whole

    async def query(self, text: str) -> Vectors:
        await self.start()
        vector: Vectors = (
            await self._thread.run(self._embed, [self._read(self._before_query, text)], priority=QUESTION)
        )[0]
        return vector

    def _read(self, before: str, text: str) -> str:
        return before + readable(text[:LONGEST])

    def _load(self) -> int:
        what = f"embedder {self.spec}"
        model_file(self._folder, what)
        prompts = _json(self._folder / "config_sentence_transformers.json").get("prompts") or {}
        self._before_query = str(prompts.get("query", ""))
        self._before_passage = str(prompts.get("passage", prompts.get("document", "")))
        self._mark = weights_mark(self._folder)
        self._model = loaded(
            "TextEmbedding", self._folder, what, pooling=_pooling(self._folder), normalization=True, dim=0
        )
        return int(self._embed(["Pagewire"]).shape[1])

    def _embed(self, texts: list[str]) -> Vectors:
        """Raises: Permanent."""
        try:
            raw = list(self._model.embed(texts, batch_size=len(texts)))
        except Exception as err:  # onnxruntime's have no base of their own
            raise Permanent(f"{self.spec} cannot be run: {err}") from err
        return unit_vectors(np.stack(raw), len(texts), self._dims, self.spec)


def _pooling(folder: Path) -> Any:
    """How sentence-transformers makes one vector of a text's. Raises: Permanent: in a way that we do not know."""
    how = _json(folder / "1_Pooling/config.json")
    chosen = {name for name, value in how.items() if name.startswith("pooling_mode_") and value is True}
    names = {
        "pooling_mode_mean_tokens": "MEAN",
        "pooling_mode_cls_token": "CLS",
        "pooling_mode_lasttoken": "LAST_TOKEN",
    }
    if len(chosen) > 1 or chosen - set(names):
        raise Permanent(f"embedder onnx:{folder}: its pooling is not known here: {', '.join(sorted(chosen))}")
    return names[chosen.pop()] if chosen else "MEAN"


def _json(path: Path) -> dict[str, Any]:
    """Raises: Permanent: it is there, and no JSON object."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as err:
        raise Permanent(f"{path} is no JSON: {err}") from err
    if not isinstance(found, dict):
        raise Permanent(f"{path} holds no object")
    return found
