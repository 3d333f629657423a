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

from adapters.embedders.base import EmbedderProfile, Vectors, readable, unit_vectors
from adapters.embedders.model_thread import QUESTION, ModelThread
from pipelines.runtime.errors import Permanent

DIMS = 1024
SLICE = 8  # texts a call: a question waits for one at most
MAX_TOKENS = 8192  # what the model reads; the largest chunk with its overlap stays below


class BgeM3Embedder:
    """`bge-m3`. Implements `Embedder`."""

    spec = "bge-m3"
    dims = DIMS
    profile = EmbedderProfile(short_floor=0.5, content_floor=0.2)  # SPEC B4, the original's

    def __init__(self, model: str) -> None:
        """`model`: a folder with the weights, or a name in the hub cache."""
        self._name = model
        self._thread = ModelThread("embedder-bge-m3")
        self._model: Any = None

    @property
    def fingerprint(self) -> str:
        if not Path(self._name).is_dir():
            return f"bge-m3-{DIMS}"
        # Another folder may hold other weights, for example fine-tuned ones.
        return f"bge-m3-{DIMS}-{_weights_mark(Path(self._name))}"

    async def start(self) -> None:
        if self._model is None:
            self._model = await self._thread.run(_load, self._name)

    async def aclose(self) -> None:
        await self._thread.aclose()

    async def passages(self, texts: Sequence[str]) -> Vectors:
        await self.start()
        vectors: Vectors = np.empty((len(texts), DIMS), np.float32)
        for first in range(0, len(texts), SLICE):
            some = [readable(text) for text in texts[first : first + SLICE]]
            made = await self._thread.run(_encode, self._model, some)
            vectors[first : first + len(some)] = unit_vectors(made, len(some), DIMS, self.spec)
        return vectors

    async def query(self, text: str) -> Vectors:
        await self.start()
        made = await self._thread.run(_encode, self._model, [readable(text)], priority=QUESTION)
        vector: Vectors = unit_vectors(made, 1, DIMS, self.spec)[0]
        return vector


def _load(name: str) -> Any:
    folder = _weights(name)
    try:
        import torch
        from FlagEmbedding import BGEM3FlagModel
    except ImportError as err:
        raise Permanent(
            f"embedder bge-m3 needs FlagEmbedding and torch ({err}): `pip install 'pagewire[bge]'` or `make setup-bge`"
        ) from err
    gpu = torch.cuda.is_available()
    return BGEM3FlagModel(
        str(folder),
        use_fp16=gpu,  # on a CPU half precision is slower
        devices="cuda:0" if gpu else "cpu",
        normalize_embeddings=True,
        return_dense=True,
        return_sparse=False,
        return_colbert_vecs=False,
        batch_size=SLICE,
        passage_max_length=MAX_TOKENS,
        query_max_length=MAX_TOKENS,
    )


def _encode(model: Any, texts: list[str]) -> Any:
    return model.encode(texts, batch_size=SLICE, max_length=MAX_TOKENS)["dense_vecs"]


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
        raise Permanent(
            f"embedder bge-m3 needs FlagEmbedding and torch ({err}): `pip install 'pagewire[bge]'` or `make setup-bge`"
        ) from err
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
