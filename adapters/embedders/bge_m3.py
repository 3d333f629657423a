"""bge-m3 (Chen et al., 2024, arXiv 2402.03216) through FlagEmbedding: 1024 dimensions, cosine.

Needs the extra `bge` and the weights: a local folder, or the user's own hub cache. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import nlargest
from pathlib import Path
from typing import Any

from adapters.embedders.base import Vectors, unit_vectors
from adapters.embedders.local import LocalEmbedder, Model, weights_mark
from adapters.embedders.model_threads import BULK, QUESTION, SAVE, ModelThreads
from pipelines.query.search.ports import EmbedderProfile, GateProfile, Thresholds
from pipelines.runtime import tracing
from pipelines.runtime.embedder import SPARSE
from pipelines.runtime.errors import Permanent, Retryable
from schemas.ingest import SparseVector

DIMS = 1024
# Tokens a call, padding included. An urgent call waits for one running call at most. For a GPU some sixteen chunks of
# the default size, a guess until it is measured on one; for a CPU, where a chunk takes a second, one chunk.
CALL_TOKENS_GPU = 3_000
CALL_TOKENS_CPU = 200
NEEDS = "FlagEmbedding and torch: `make setup-bge`"
FETCH = "`hf download BAAI/bge-m3 --local-dir FOLDER` where there is internet, then PAGEWIRE_BGE_MODEL=FOLDER"
WEIGHTS = (".safetensors", ".bin", ".pt")
# What the folder must have: one of each
PARTS = (
    ("config.json",),
    ("tokenizer.json", "sentencepiece.bpe.model"),
    ("model.safetensors", "pytorch_model.bin", "model.safetensors.index.json", "pytorch_model.bin.index.json"),
)
SPARSE_PARTS = (("sparse_linear.pt",),)  # without it FlagEmbedding makes random ones
MAX_TOKENS = 8192  # what the model reads; the largest chunk with its overlap stays below
# Of a sparse vector, the heaviest: a chunk of the default size has some hundred, and Elasticsearch allows 1,024 clauses
# in a query.
MOST_WEIGHTS = 256
HEAVIEST = 64.0  # as much as Elasticsearch takes; those of the real model are below 1
DIGITS = 4  # of a weight; Elasticsearch keeps fewer


class BgeM3Embedder(LocalEmbedder):
    """`bge-m3`. Implements `Embedder`. One call at a time: torch takes all processors for each."""

    spec = "bge-m3"
    needs = NEEDS
    # The floors are those of the original flow, which has this model. No score is fitted to it, so the figures decide,
    # by thresholds that were tuned for another embedder.
    profile = EmbedderProfile(short_floor=0.5, content_floor=0.2, gate=GateProfile(thresholds=Thresholds()))
    _dims = DIMS

    def __init__(self, model: str, nice: int = 0) -> None:
        """Args:
        model: a folder with the weights, or a name in the hub cache.
        nice: the niceness of the model's threads.
        """
        super().__init__(ModelThreads("embedder-bge-m3", nice))
        self._name = model

    @property
    def fingerprint(self) -> str:
        if not (folder := Path(self._name)).is_dir():
            return f"bge-m3-{DIMS}"
        # Another folder may hold other weights, for example fine-tuned ones.
        files = [each for each in folder.glob("*") if each.suffix in WEIGHTS or each.name == "config.json"]
        return f"bge-m3-{DIMS}-{weights_mark(folder, sorted(files))}"

    def _load(self) -> Model:
        return _Model(self._name, sparse=False)


class BgeM3SparseEmbedder(BgeM3Embedder):
    """`bge-m3-sparse`: the same vectors, and sparse ones beside them. Implements `SparseEmbedder`, too."""

    spec = "bge-m3-sparse"

    @property
    def fingerprint(self) -> str:
        return super().fingerprint + SPARSE

    async def passages_and_weights(
        self, texts: Sequence[str], *, urgent: bool = True
    ) -> tuple[Vectors, list[SparseVector]]:
        if not texts:
            return await self.passages(texts), []
        return await self._both(texts, SAVE if urgent else BULK)

    async def query_and_weights(self, text: str) -> tuple[Vectors, SparseVector]:
        vectors, weights = await self._both([text], QUESTION)
        return vectors[0], weights[0]

    async def _both(self, texts: Sequence[str], priority: int) -> tuple[Vectors, list[SparseVector]]:
        await self.start()
        with tracing.inference("embeddings", self.spec, ""):
            _, made = await self._called(self._model.embed_both, texts, priority, windows=1)
        return unit_vectors([vector for vector, _ in made], len(texts), DIMS, self.spec), [own for _, own in made]

    def _load(self) -> Model:
        return _Model(self._name, sparse=True)


class _Model:
    """FlagEmbedding's model and tokenizer, without its `encode`, which runs the first batch twice to test the memory:
    that would double the time of a question and of our small calls.
    """

    def __init__(self, name: str, *, sparse: bool) -> None:
        import torch
        from FlagEmbedding import BGEM3FlagModel

        folder = weights_folder(name, sparse=sparse)
        self._torch = torch
        self.device = "cuda:0" if torch.cuda.is_available() else "cpu"
        half = self.device != "cpu"  # half precision is slower on a CPU
        self.call_tokens = CALL_TOKENS_GPU if half else CALL_TOKENS_CPU
        try:
            loaded = BGEM3FlagModel(str(folder), use_fp16=half, devices=self.device, normalize_embeddings=True)
        except (ImportError, MemoryError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as err:  # each format has its own errors for a broken file
            raise Permanent(
                f"the weights of bge-m3 in {folder} cannot be loaded: {type(err).__name__}: {err}; {FETCH}"
            ) from err
        self._tokenizer = loaded.tokenizer
        # Tokens without a meaning, which FlagEmbedding's `encode` leaves out of sparse vectors as well.
        kinds = ("cls_token_id", "eos_token_id", "pad_token_id", "unk_token_id")
        self._empty = frozenset(getattr(self._tokenizer, kind) for kind in kinds)
        # FlagEmbedding 1.3 sets the precision in its `encode` only, 1.4 when loading.
        self._model = loaded.model.to(self.device, torch.float16 if half else torch.float32).eval()

    def read(self, text: str) -> list[list[int]]:
        """One window, as long as the model can read."""
        return [self._tokenizer(text, truncation=True, max_length=MAX_TOKENS)["input_ids"]]

    def embed(self, windows: list[list[int]]) -> Any:
        """Dense vectors: shape (len(windows), DIMS).

        Raises:
            Retryable: the GPU has no memory left.
        """
        return self._run(windows)["dense_vecs"].float().cpu().numpy()

    def embed_both(self, windows: list[list[int]]) -> list[tuple[Any, SparseVector]]:
        """A dense and a sparse vector of each window. Raises as `embed`."""
        made = self._run(windows, return_sparse=True)
        dense, rows = (made[name].float().cpu().numpy() for name in ("dense_vecs", "sparse_vecs"))
        sparse = (sparse_vector(own, row.ravel().tolist(), self._empty) for own, row in zip(windows, rows, strict=True))
        return [*zip(dense, sparse, strict=True)]

    def _run(self, windows: list[list[int]], **wanted: bool) -> Any:
        torch = self._torch
        ids = [torch.tensor(tokens) for tokens in windows]
        try:
            batch = {
                "input_ids": self._padded(ids, self._tokenizer.pad_token_id),
                "attention_mask": self._padded([torch.ones_like(one) for one in ids], 0),
            }
            with torch.inference_mode():
                return self._model(batch, return_dense=True, **wanted)
        except torch.cuda.OutOfMemoryError as err:
            what = f"{len(windows)} texts of up to {max(map(len, windows))} tokens"
            raise Retryable(f"the GPU has no memory left for bge-m3 to read {what}; who else holds it?") from err

    def _padded(self, rows: list[Any], value: int) -> Any:
        padded = self._torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
        return padded.to(self.device)


def sparse_vector(tokens: Iterable[int], weights: Iterable[float], empty: Collection[int]) -> SparseVector:
    """Of each token its greatest weight; at most `MOST_WEIGHTS`, the heaviest first.

    Args:
        weights: one for each token; those behind the last token are padding.
        empty: tokens that count for nothing.
    """
    best: dict[int, float] = {}
    for token, weight in zip(tokens, weights, strict=False):
        if token not in empty and weight > best.get(token, 0.0):
            best[token] = weight
    heaviest = nlargest(MOST_WEIGHTS, best, key=best.__getitem__)
    rounded = {str(token): round(min(best[token], HEAVIEST), DIGITS) for token in heaviest}
    return {token: weight for token, weight in rounded.items() if weight}


def weights_folder(name: str, *, sparse: bool = False) -> Path:
    """The folder of the weights: `name` itself, or the model's folder in the hub cache.

    Args:
        sparse: those of sparse vectors must be there, too.

    Raises:
        Permanent: it is missing, or not complete.
        ImportError: the extra `bge` is not installed.
    """
    folder = Path(name)
    if not folder.is_dir():
        from huggingface_hub import constants, snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except (LocalEntryNotFoundError, HFValidationError) as err:
            raise Permanent(
                f"the weights of bge-m3 are not there: {name!r} (PAGEWIRE_BGE_MODEL) is neither a folder nor in the "
                f"hub cache {constants.HF_HUB_CACHE}: {FETCH}"
            ) from err
    # Without its tokenizer's file, transformers makes an empty one, and all vectors are wrong.
    parts = PARTS + SPARSE_PARTS if sparse else PARTS
    missing = [kinds for kinds in parts if not any((folder / each).is_file() for each in kinds)]
    if missing:
        lacks = ", ".join(" or ".join(kinds) for kinds in missing)
        raise Permanent(f"the weights of bge-m3 in {folder} (PAGEWIRE_BGE_MODEL) are not complete: no {lacks}: {FETCH}")
    return folder
