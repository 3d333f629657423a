"""bge-m3 (Chen et al., 2024, arXiv 2402.03216) through FlagEmbedding: 1024 dimensions, cosine.

Needs the extra `bge` and the weights: a local folder, or the user's own hub cache. Nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adapters.embedders.local import LocalEmbedder, Model, weights_mark
from adapters.embedders.model_threads import ModelThreads
from pipelines.query.search.ports import EmbedderProfile, GateProfile, Thresholds
from pipelines.runtime.errors import Permanent, Retryable

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
MAX_TOKENS = 8192  # what the model reads; the largest chunk with its overlap stays below


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
        return _Model(self._name)


class _Model:
    """FlagEmbedding's model and tokenizer, without its `encode`, which runs the first batch twice to test the memory:
    that would double the time of a question and of our small calls.
    """

    def __init__(self, name: str) -> None:
        import torch
        from FlagEmbedding import BGEM3FlagModel

        folder = weights_folder(name)
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
        torch = self._torch
        ids = [torch.tensor(tokens) for tokens in windows]
        try:
            batch = {
                "input_ids": self._padded(ids, self._tokenizer.pad_token_id),
                "attention_mask": self._padded([torch.ones_like(one) for one in ids], 0),
            }
            with torch.inference_mode():
                return self._model(batch, return_dense=True)["dense_vecs"].float().cpu().numpy()
        except torch.cuda.OutOfMemoryError as err:
            what = f"{len(windows)} texts of up to {max(map(len, windows))} tokens"
            raise Retryable(f"the GPU has no memory left for bge-m3 to read {what}; who else holds it?") from err

    def _padded(self, rows: list[Any], value: int) -> Any:
        padded = self._torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
        return padded.to(self.device)


def weights_folder(name: str) -> Path:
    """The folder of the weights: `name` itself, or the model's folder in the hub cache.

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
    missing = [kinds for kinds in PARTS if not any((folder / each).is_file() for each in kinds)]
    if missing:
        lacks = ", ".join(" or ".join(kinds) for kinds in missing)
        raise Permanent(f"the weights of bge-m3 in {folder} (PAGEWIRE_BGE_MODEL) are not complete: no {lacks}: {FETCH}")
    return folder
