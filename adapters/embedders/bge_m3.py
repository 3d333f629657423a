"""bge-m3 (Chen et al., 2024, arXiv 2402.03216) through FlagEmbedding: 1024 dimensions, cosine.

Needs the extra `bge` and the weights: a local folder, or the user's own hub cache. Nothing is downloaded.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from more_itertools import constrained_batches

from adapters.embedders.base import Vectors, readable, unit_vectors
from adapters.embedders.model_threads import BULK, QUESTION, SAVE, ModelThreads
from pipelines.query.search.ports import EmbedderProfile, GateProfile, Thresholds
from pipelines.runtime.errors import Permanent, Retryable

DIMS = 1024
# Tokens a call, padding included. An urgent call waits for one running call at most. For a GPU some sixteen chunks of
# the default size, a guess until it is measured on one; for a CPU, where a chunk takes a second, one chunk.
SLICE_TOKENS_GPU = 3_000
SLICE_TOKENS_CPU = 200
READ_CHARS = 12_000  # tokenized at once, in some 10 ms
NOT_INSTALLED = "embedder bge-m3 needs FlagEmbedding and torch ({}); `make setup-bge` installs them"
MAX_TOKENS = 8192  # what the model reads; the largest chunk with its overlap stays below


class BgeM3Embedder:
    """`bge-m3`. Implements `Embedder`."""

    spec = "bge-m3"
    dims = DIMS
    # The defaults of the systems that Pagewire replaces. No score is fitted to this model, so the figures decide.
    profile = EmbedderProfile(short_floor=0.5, content_floor=0.2, gate=GateProfile(thresholds=Thresholds()))

    def __init__(self, model: str, nice: int = 0, slice_tokens: int | None = None) -> None:
        """Args:
        model: a folder with the weights, or a name in the hub cache.
        nice: the niceness of the model's threads.
        slice_tokens: most tokens of a call; default: by the device.
        """
        self._name = model
        self._slice_tokens = slice_tokens
        self._thread = ModelThreads("embedder-bge-m3", nice)
        self._loading = asyncio.Lock()
        self._model: Any = None

    @property
    def fingerprint(self) -> str:
        if not Path(self._name).is_dir():
            return f"bge-m3-{DIMS}"
        # Another folder may hold other weights, for example fine-tuned ones.
        return f"bge-m3-{DIMS}-{_weights_mark(Path(self._name))}"

    async def start(self) -> None:
        async with self._loading:
            if self._model is None:
                # Not in a thread of low priority: others wait for the model.
                self._model = await asyncio.to_thread(_Model, self._name)

    async def recheck(self) -> None:
        pass

    async def aclose(self) -> None:
        await self._thread.aclose()

    async def passages(self, texts: Sequence[str], *, urgent: bool = True) -> Vectors:
        await self.start()
        priority = SAVE if urgent else BULK
        pieces = constrained_batches([readable(text) for text in texts], READ_CHARS, strict=False)
        read = list(chain(*await self._thread.each(self._model.read, pieces, priority=priority)))
        calls = batches([len(tokens) for tokens in read], self._slice_tokens or self._model.slice_tokens)
        together = ([read[place] for place in places] for places in calls)
        made = await self._thread.each(self._model.encode, together, priority=priority)
        whole = np.concatenate([np.empty((0, DIMS), np.float32), *made])[np.argsort([*chain(*calls)])]
        return unit_vectors(whole, len(texts), DIMS, self.spec)

    async def query(self, text: str) -> Vectors:
        await self.start()
        made = await self._thread.run(self._model.read_and_encode, [readable(text)], priority=QUESTION)
        vector: Vectors = unit_vectors(made, 1, DIMS, self.spec)[0]
        return vector


def batches(lengths: Sequence[int], limit: int) -> list[list[int]]:
    """Groups texts of similar length into calls, as indexes of `lengths`.

    Every text of a call costs as much as its longest. Of XQuAD's 578 chunks, a third is padding in their own order, and
    a twentieth in this one (3,000 tokens a call). A single page fits into one call, and a third of it is padding.

    Args:
        lengths: Tokens of each text.
        limit: Most tokens of a call, padding included; a longer text has a call of its own.
    """
    calls: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if calls and lengths[place] * (len(calls[-1]) + 1) <= limit:
            calls[-1].append(place)
        else:
            calls.append([place])
    return calls


class _Model:
    """FlagEmbedding's model and tokenizer, without its `encode`, which runs the first batch twice to test the memory:
    that would double the time of a question and of our small calls.
    """

    def __init__(self, name: str) -> None:
        folder = _weights(name)
        try:
            import torch
            from FlagEmbedding import BGEM3FlagModel
        except ImportError as err:
            raise Permanent(NOT_INSTALLED.format(err)) from err
        self._torch = torch
        self._device = "cuda:0" if torch.cuda.is_available() else "cpu"
        half = self._device != "cpu"  # half precision is slower on a CPU
        self.slice_tokens = SLICE_TOKENS_GPU if half else SLICE_TOKENS_CPU
        loaded = BGEM3FlagModel(str(folder), use_fp16=half, devices=self._device, normalize_embeddings=True)
        self._tokenizer = loaded.tokenizer
        # FlagEmbedding 1.3 sets the precision in its `encode` only, 1.4 when loading.
        self._model = loaded.model.to(self._device, torch.float16 if half else torch.float32).eval()

    def read(self, texts: list[str]) -> list[list[int]]:
        """Tokens of each text."""
        tokens: list[list[int]] = self._tokenizer(texts, truncation=True, max_length=MAX_TOKENS)["input_ids"]
        return tokens

    def encode(self, read: list[list[int]]) -> Any:
        """Dense vectors: shape (len(read), DIMS).

        Raises:
            Retryable: the GPU has no memory left.
        """
        torch = self._torch
        ids = [torch.tensor(tokens) for tokens in read]
        try:
            batch = {
                "input_ids": self._padded(ids, self._tokenizer.pad_token_id),
                "attention_mask": self._padded([torch.ones_like(one) for one in ids], 0),
            }
            with torch.inference_mode():
                return self._model(batch, return_dense=True)["dense_vecs"].float().cpu().numpy()
        except torch.cuda.OutOfMemoryError as err:
            what = f"{len(read)} texts of up to {max(map(len, read))} tokens"
            raise Retryable(f"the GPU has no memory left for bge-m3 to read {what}; who else holds it?") from err

    def read_and_encode(self, texts: list[str]) -> Any:
        """As `encode`."""
        return self.encode(self.read(texts))

    def _padded(self, rows: list[Any], value: int) -> Any:
        padded = self._torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
        return padded.to(self._device)


def _weights(name: str) -> Path:
    """The folder of the weights: `name` itself, or the model's folder in the hub cache.

    Raises:
        Permanent: it is missing.
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
    """A fingerprint without reading gigabytes: names and sizes of the weights, and the configuration."""
    digest = blake2b(digest_size=4)
    for path in sorted(folder.glob("*")):
        if path.suffix in (".safetensors", ".bin", ".pt"):
            digest.update(f"{path.name}:{os.stat(path).st_size};".encode())
        elif path.name == "config.json":
            digest.update(path.read_bytes())
    return digest.hexdigest()
