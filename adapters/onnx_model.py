"""ONNX models on a CPU, without torch: one text a call, on one thread.

A text alone needs no padding, and its vector hangs on no other text. What is computed at once are several calls, in
which ONNX Runtime lets go of Python's lock; several texts in one call are slower, since they leave the CPU's cache.

A folder is what a model's repository on a hub holds: `tokenizer.json`, `tokenizer_config.json`, and the model as
`model.onnx` or `onnx/model.onnx` (or `model_quantized.onnx`). Nothing is downloaded. Needs the extra `onnx`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.runtime.errors import Permanent

NOT_INSTALLED = "{what} needs onnxruntime and tokenizers ({err}); `make setup-onnx` installs them"
# As hubs lay them out; a quantized one is taken where it is the only one.
FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
MARKED = ("*.onnx", "*.onnx_data", "onnx/*.onnx", "onnx/*.onnx_data")  # by name and size
READ = ("tokenizer_config.json", "config_sentence_transformers.json", "1_Pooling/config.json")  # by content
TOKENS = 512  # a model reads at once, unless it says so
NO_LIMIT = 1_000_000  # tokens; what is not below says that nobody knows


class Session:
    """A model, ready for calls. They may run side by side."""

    def __init__(self, model: Path | bytes, *, fused: bool = True) -> None:
        """
        Args:
            model: a file, or what would be in it.
            fused: let ONNX Runtime make one operator of several.

        Raises:
            ImportError, and what onnxruntime raises, which has no base of its own.
        """
        # Before it is imported: its builds otherwise make a number for this machine, write down that and how they are
        # used, and send it to Microsoft.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # for texts of one length; it keeps memory for each that it has seen
        options.log_severity_level = 3  # errors; they are raised anyway
        if not fused:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        given = model if isinstance(model, bytes) else str(model)
        self._session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
        self._session._model_bytes = b""  # it keeps what it was given, 20 MB of the bundled model, to load that again
        self.inputs = {each.name for each in self._session.get_inputs()}

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """The first output for one text, of which these are the inputs. Raises: what onnxruntime raises."""
        made: NDArray[np.float32] = self._session.run(None, {name: value[None] for name, value in inputs.items()})[0][0]
        return made


class FolderModel:
    """The model in a folder, and its tokenizer."""

    def __init__(self, folder: Path, what: str) -> None:
        """
        Args:
            what: its setting, for errors.

        Raises:
            Permanent: something is not installed, or nothing in the folder can be loaded.
        """
        self._what = what
        file = folder / model_file(folder, what)
        try:
            from tokenizers import Tokenizer

            self._session = Session(file)
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except ImportError as err:
            raise Permanent(NOT_INSTALLED.format(what=what, err=err)) from err
        except Exception as err:  # onnxruntime's and tokenizers' have no base of their own
            raise Permanent(f"{what}: {folder} cannot be loaded: {err}") from err
        told = read_json(folder / "tokenizer_config.json")
        limits = [told.get(name) for name in ("model_max_length", "max_length")]
        self._tokenizer.enable_truncation(
            min((limit for limit in limits if isinstance(limit, int) and 0 < limit < NO_LIMIT), default=TOKENS)
        )
        self._tokenizer.no_padding()

    def read(self, text: str, pair: str | None = None) -> list[Any]:
        """Tokens of a text, or of a pair: one window after the other, each as long as the model can read."""
        read = self._tokenizer.encode(text, pair)
        return [read, *read.overflowing]

    def run(self, window: Any) -> NDArray[np.float32]:
        """The model's first output. Raises: Permanent."""
        told = {"input_ids": window.ids, "attention_mask": window.attention_mask, "token_type_ids": window.type_ids}
        inputs = {name: np.array(value, np.int64) for name, value in told.items() if name in self._session.inputs}
        try:
            return self._session.run(inputs)
        except Exception as err:  # onnxruntime's have no base of their own
            raise Permanent(f"{self._what} cannot be run: {err}") from err


def model_file(folder: Path, what: str) -> str:
    """The model in the folder. Raises: Permanent: there is none; says where one is looked for."""
    found = next((name for name in FILES if (folder / name).is_file()), None)
    if found is None:
        raise Permanent(f"{what}: no ONNX model is there: {folder} has none of {', '.join(FILES)}")
    return found


def weights_mark(folder: Path) -> str:
    """Tells models apart without reading gigabytes: names and sizes of the weights, and what says how to use them."""
    digest = blake2b(digest_size=4)
    for path in sorted(path for pattern in MARKED for path in folder.glob(pattern)):
        digest.update(f"{path.relative_to(folder)}:{os.stat(path).st_size};".encode())
    for name in READ:
        if (folder / name).is_file():
            digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; an empty one where there is no file. Raises: Permanent: it holds anything else."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as err:
        raise Permanent(f"{path} is no JSON: {err}") from err
    if not isinstance(found, dict):
        raise Permanent(f"{path} holds no object")
    return found
