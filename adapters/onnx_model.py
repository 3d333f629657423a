"""ONNX models of a local folder, run by fastembed on a CPU, without torch: embedders and cross-encoders.

A folder is what a model's repository on a hub holds: `tokenizer.json`, `tokenizer_config.json`, and the model as
`model.onnx` or `onnx/model.onnx` (or `model_quantized.onnx`). Nothing is downloaded. Needs the extra `onnx`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pipelines.runtime.errors import Permanent

NOT_INSTALLED = "{what} needs fastembed ({err}); `make setup-onnx` installs it"
# As hubs lay them out; a quantized one is taken where it is the only one.
FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
MARKED = ("*.onnx", "*.onnx_data", "onnx/*.onnx", "onnx/*.onnx_data")  # by name and size
READ = ("tokenizer_config.json", "config_sentence_transformers.json", "1_Pooling/config.json")  # by content


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


def loaded(kind: str, folder: Path, what: str, **how: Any) -> Any:
    """fastembed's model of the folder.

    Args:
        kind: `TextEmbedding` or `TextCrossEncoder`.
        how: what the model is registered with.

    Raises:
        Permanent: it is not installed, or nothing in the folder can be loaded.
    """
    file = model_file(folder, what)
    try:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource
        from fastembed.rerank.cross_encoder import TextCrossEncoder
    except ImportError as err:
        raise Permanent(NOT_INSTALLED.format(what=what, err=err)) from err
    model = TextEmbedding if kind == "TextEmbedding" else TextCrossEncoder
    # Its registry knows models by name alone, for as long as the process lives: one folder, in one state, is one name.
    name = f"{folder.resolve()}-{weights_mark(folder)}"
    with suppress(ValueError):  # it is registered already
        model.add_custom_model(model=name, sources=ModelSource(url="file:///nowhere"), model_file=file, **how)
    try:
        return model(model_name=name, specific_model_path=str(folder), local_files_only=True, cuda=False)
    except Exception as err:  # onnxruntime's, tokenizers' and fastembed's have no base of their own
        raise Permanent(f"{what}: {folder} cannot be loaded: {err}") from err
