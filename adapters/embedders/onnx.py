"""ONNX models on a CPU, without torch: one text a call, on one thread.

A single text needs no padding, and its vector does not depend on other texts. Calls run in parallel, since ONNX
Runtime releases Python's lock. Several texts in one call are slower, because they do not fit the CPU's cache.

A folder is laid out as a model's repository on a hub: `tokenizer.json`, `tokenizer_config.json`, and the model as
`model.onnx` or `onnx/model.onnx` (or `model_quantized.onnx`). An embedder's pooling and prefixes come from the files
that sentence-transformers writes: the pooling from `1_Pooling/config.json` (default: mean), the prefixes of questions
and pages from the `prompts` of `config_sentence_transformers.json` (`query`; `passage` or `document`; default: none).
Nothing is downloaded. Needs the extra `onnx`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapters.embedders.local import LocalEmbedder, weights_mark
from adapters.embedders.model_threads import ModelThreads, at_once
from pipelines.query.search.ports import EmbedderProfile
from pipelines.runtime.errors import Permanent

NEEDS = "onnxruntime and tokenizers: `make setup-onnx`"
# The layouts of hubs, in order of preference: a quantized model is used where it is the only one.
FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
# Files of the fingerprint
WEIGHT_FILES = ("*.onnx", "*.onnx_data", "onnx/*.onnx", "onnx/*.onnx_data")
CONFIG_FILES = ("tokenizer_config.json", "config_sentence_transformers.json", "1_Pooling/config.json")
TOKENS = 512  # that a model reads at once, unless its configuration gives a number
NO_LIMIT = 1_000_000  # tokens; hubs write a larger number where the limit is unknown


class Session:
    """A loaded model. Calls may run in parallel."""

    def __init__(self, model: Path, weights: bytes = b"") -> None:
        """
        Args:
            weights: what the model has in a file of the name `weights`.

        Raises:
            ImportError. Errors of onnxruntime, which share no base class.
        """
        # Must be set before the import: otherwise onnxruntime makes an id of this machine, records its usage, and
        # sends both to Microsoft.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it would keep memory for each length of text
        options.enable_cpu_mem_arena = False  # it would keep the memory of the longest text, and is no faster
        options.log_severity_level = 3  # errors; they are raised anyway
        if weights:  # of the bundled model, where a sum fused with its normalization is 20 % slower
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
            options.add_external_initializers_from_files_in_memory(["weights"], [weights], [len(weights)])
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = [each.name for each in self._session.get_inputs()]

    def run(self, given: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """The first output for one text; the model takes what it knows. Raises: errors of onnxruntime."""
        made = self._session.run(None, {name: given[name][None] for name in self._inputs if name in given})
        first: NDArray[np.float32] = made[0][0]
        return first


class FolderModel:
    """The model in a folder, and its tokenizer."""

    def __init__(self, folder: Path, what: str) -> None:
        """
        Args:
            what: the model's setting, for errors.

        Raises:
            Permanent: the folder cannot be loaded.
            ImportError.
        """
        self._what = what
        file = folder / model_file(folder, what)
        from tokenizers import Tokenizer

        try:
            self._session = Session(file)
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except ImportError:
            raise
        except Exception as err:  # the errors of onnxruntime and tokenizers share no base class
            raise Permanent(f"{what}: {folder} cannot be loaded: {err}") from err
        config = read_json(folder / "tokenizer_config.json")
        limits = [config.get(name) for name in ("model_max_length", "max_length")]
        known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < NO_LIMIT]
        self._tokenizer.enable_truncation(min(known, default=TOKENS))
        self._tokenizer.no_padding()

    def read(self, text: str, pair: str | None = None) -> list[Any]:
        """The tokens of a text or a pair, in windows as long as the model can read."""
        read = self._tokenizer.encode(text, pair)
        return [read, *read.overflowing]

    def run(self, window: Any) -> NDArray[np.float32]:
        """The model's first output. Raises: Permanent."""
        fields = {"input_ids": window.ids, "attention_mask": window.attention_mask, "token_type_ids": window.type_ids}
        try:
            return self._session.run({name: np.array(value, np.int64) for name, value in fields.items()})
        except Exception as err:  # the errors of onnxruntime share no base class
            raise Permanent(f"{self._what} cannot be run: {err}") from err


def model_file(folder: Path, what: str) -> str:
    """The path of the folder's model. Raises: Permanent: there is none; lists the expected paths."""
    found = next((name for name in FILES if (folder / name).is_file()), None)
    if found is None:
        raise Permanent(f"{what}: no ONNX model is there: {folder} has none of {', '.join(FILES)}")
    return found


def read_json(path: Path) -> dict[str, Any]:
    """The file's JSON object; empty where there is no file. Raises: Permanent: it holds anything else."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as err:
        raise Permanent(f"{path} is no JSON: {err}") from err
    if not isinstance(found, dict):
        raise Permanent(f"{path} holds no object")
    return found


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
        weights = sorted(path for pattern in WEIGHT_FILES for path in self._folder.glob(pattern))
        configured = (path for name in CONFIG_FILES if (path := self._folder / name).is_file())
        self._mark = weights_mark(self._folder, [*weights, *configured])
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
