"""bge-m3 (Chen et al., 2024, arXiv 2402.03216) through FlagEmbedding: 1024 dimensions, cosine.

Needs the extra `bge` and the weights: a local folder, or the user's own hub cache. Nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from adapters.embedders.base import EmbedderProfile, Vectors, readable, slices, unit_vectors
from adapters.embedders.model_threads import BULK, QUESTION, SAVE, ModelThreads
from pipelines.query.gate import GateProfile, Thresholds
from pipelines.runtime.errors import Permanent

DIMS = 1024
# Characters a call, with what pads the shorter texts; whoever is more urgent waits for one call at most. On a GPU
# sixteen chunks of the default size, or one very long one; on a CPU, where a chunk takes a second, just the one.
SLICE_CHARS_GPU = 12_000
SLICE_CHARS_CPU = 800
NOT_INSTALLED = "embedder bge-m3 needs FlagEmbedding and torch ({}); `make setup-bge` installs them"
MAX_TOKENS = 8192  # what the model reads; the largest chunk with its overlap stays below


class BgeM3Embedder:
    """`bge-m3`. Implements `Embedder`."""

    spec = "bge-m3"
    dims = DIMS
    # SPEC B4 and B7, the original's; nobody has fitted a score yet, so the figures decide.
    profile = EmbedderProfile(short_floor=0.5, content_floor=0.2, gate=GateProfile(thresholds=Thresholds()))

    def __init__(self, model: str, nice: int = 0) -> None:
        """Args:
        model: a folder with the weights, or a name in the hub cache.
        nice: gives way to other processes by so much.
        """
        self._name = model
        self._thread = ModelThreads("embedder-bge-m3", nice)
        self._model: Any = None

    @property
    def fingerprint(self) -> str:
        if not Path(self._name).is_dir():
            return f"bge-m3-{DIMS}"
        # Another folder may hold other weights, for example fine-tuned ones.
        return f"bge-m3-{DIMS}-{_weights_mark(Path(self._name))}"

    async def start(self) -> None:
        if self._model is None:
            self._model = await self._thread.run(_Model, self._name, priority=QUESTION)

    async def look_again(self) -> None:
        pass

    async def aclose(self) -> None:
        await self._thread.aclose()

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        await self.start()
        pieces = slices([readable(text) for text in texts], self._model.slice_chars)
        made = await self._thread.each(self._model.encode, pieces, priority=SAVE if urgent else BULK)
        whole = np.concatenate([np.empty((0, DIMS), np.float32), *made])
        return unit_vectors(whole, len(texts), DIMS, self.spec)

    async def query(self, text: str) -> Vectors:
        await self.start()
        made = await self._thread.run(self._model.encode, [readable(text)], priority=QUESTION)
        vector: Vectors = unit_vectors(made, 1, DIMS, self.spec)[0]
        return vector


class _Model:
    """FlagEmbedding's model and tokenizer. Its own `encode` runs the first batch twice, to see whether memory is
    enough, which doubles the time of a question and of our small slices.
    """

    def __init__(self, name: str) -> None:
        folder = _weights(name)
        try:
            import torch
            from FlagEmbedding import BGEM3FlagModel
        except ImportError as err:
            raise Permanent(NOT_INSTALLED.format(err)) from err
        self._device = "cuda:0" if torch.cuda.is_available() else "cpu"
        half = self._device != "cpu"  # on a CPU half precision is slower
        self.slice_chars = SLICE_CHARS_GPU if half else SLICE_CHARS_CPU
        loaded = BGEM3FlagModel(str(folder), use_fp16=half, devices=self._device, normalize_embeddings=True)
        self._tokenizer = loaded.tokenizer
        self._model = loaded.model.to(self._device).eval()
        self._no_grad = torch.inference_mode

    def encode(self, texts: list[str]) -> Any:
        """Dense vectors: shape (len(texts), DIMS)."""
        read = self._tokenizer(texts, truncation=True, max_length=MAX_TOKENS, padding=True, return_tensors="pt")
        with self._no_grad():
            return self._model(read.to(self._device), return_dense=True)["dense_vecs"].float().cpu().numpy()


def _weights(name: str) -> Path:
    """The folder of the weights: `name` itself, or where the hub client keeps that model.

    Raises:
        Permanent: not there.
    """
    if Path(name).is_dir():
        return Path(name)
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ImportError as err:
        raise Permanent(NOT_INSTALLED.format(err)) from err
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as err:
        raise Permanent(
            f"the weights of bge-m3 are not there: {name!r} (PAGEWIRE_BGE_MODEL) is neither a folder nor in the hub "
            "cache; put them there with `hf download BAAI/bge-m3`"
        ) from err


def _weights_mark(folder: Path) -> str:
    """Tells weights apart without reading gigabytes: names and sizes, and the configuration."""
    digest = blake2b(digest_size=4)
    for path in sorted(folder.glob("*")):
        if path.suffix in (".safetensors", ".bin", ".pt"):
            digest.update(f"{path.name}:{os.stat(path).st_size};".encode())
        elif path.name == "config.json":
            digest.update(path.read_bytes())
    return digest.hexdigest()
