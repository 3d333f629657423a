"""Any ONNX embedder in a local folder, on a CPU, without torch.

Pooling and prefixes come from the files that sentence-transformers writes into a model's folder: the pooling from
`1_Pooling/config.json` (default: mean), the prefixes of questions and pages from the `prompts` of
`config_sentence_transformers.json` (`query`; `passage` or `document`; default: none).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapters.embedders.local import LocalEmbedder, weights_mark
from adapters.embedders.model_threads import ModelThreads, at_once
from adapters.onnx_model import NEEDS, FolderModel, fingerprint_files, read_json
from pipelines.query.search.ports import EmbedderProfile
from pipelines.runtime.errors import Permanent

POOLING: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {  # (tokens, dims) -> (dims,)
    "pooling_mode_mean_tokens": lambda tokens: np.mean(tokens, axis=0),
    "pooling_mode_cls_token": lambda tokens: tokens[0],
    "pooling_mode_lasttoken": lambda tokens: tokens[-1],
}


class OnnxEmbedder(LocalEmbedder):
    """`onnx:FOLDER`. Implements `Embedder`."""

    needs = NEEDS
    # The model is unknown, so the floors refuse little. Calibrate with `python -m bench floors`.
    profile = EmbedderProfile(short_floor=0.3, content_floor=0.15)

    def __init__(self, folder: str, nice: int = 0) -> None:
        """`nice`: the niceness of the model's threads."""
        super().__init__(ModelThreads("embedder-onnx", nice, at_once()))
        self.spec = f"onnx:{folder}"
        self._folder = Path(folder)
        self._mark = ""

    @property
    def fingerprint(self) -> str:
        # Without the folder's name: the same files in another folder make the same vectors.
        return f"onnx-{self.dims}-{self._mark}"

    def _load(self) -> _Model:
        model = _Model(self._folder, f"embedder {self.spec}")
        prompts = read_json(self._folder / "config_sentence_transformers.json").get("prompts") or {}
        self.before_query = str(prompts.get("query", ""))
        self.before_passage = str(prompts.get("passage", prompts.get("document", "")))
        self._mark = weights_mark(self._folder, fingerprint_files(self._folder))
        return model


class _Model(FolderModel):
    """Implements `Model`."""

    call_tokens = 0

    def __init__(self, folder: Path, what: str) -> None:
        """Raises: Permanent: as `FolderModel`, or we do not support the pooling that is configured."""
        super().__init__(folder, what)
        how = read_json(folder / "1_Pooling/config.json")
        chosen = [name for name, value in how.items() if name.startswith("pooling_mode_") and value is True]
        if len(chosen) > 1 or not POOLING.keys() >= set(chosen):
            raise Permanent(f"{what}: its pooling is not known here: {', '.join(sorted(chosen))}")
        self._pooled = POOLING[chosen[0] if chosen else "pooling_mode_mean_tokens"]

    def embed(self, windows: list[Any]) -> NDArray[np.float32]:
        return np.stack([self._pooled(self.run(window)) for window in windows])
