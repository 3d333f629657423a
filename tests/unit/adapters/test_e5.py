"""The bundled model, made of a file: one with weights by chance, worked out by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adapters.embedders.e5 import WAYS, E5File, E5Model
from tests.e5_file import PIECES, PLACES, TinyE5

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TinyE5().save(tmp_path_factory.mktemp("e5") / "tiny.bin")


def ids(*pieces: str) -> list[int]:
    return [PIECES.index(piece) for piece in pieces]


def test_vectors_are_those_of_the_weights(path: Path) -> None:
    tiny, alike = TinyE5(), {"row8": 0.997, "q4": 0.9995}
    models = {way: E5Model(path, way) for way in WAYS}
    assert set(models) == set(alike)
    for tokens in ([0, 2], [0, 9, 2], [0, *range(5, 5 + PLACES - 2), 2]):
        expected = tiny.embed(tokens)
        for way, model in models.items():
            [made] = model.embed([tokens])
            cosine = made @ expected / (np.linalg.norm(made) * np.linalg.norm(expected))
            assert cosine > alike[way], (way, tokens)
            np.testing.assert_allclose(np.linalg.norm(made), np.linalg.norm(expected), rtol=0.05, err_msg=way)


def test_a_text_is_read_by_the_vocabulary(path: Path) -> None:
    model = E5Model(path, "q4")
    for text, expected in {
        "passage: ab": ids("▁passage:", "▁", "a", "b"),  # the longest pieces are the likeliest
        "pass Ä  \t  b": ids("▁pass", "▁", "a", "e", "▁", "b"),  # characters first, then runs of spaces
        "\ufdfa": ids("▁", "a", "▁", "b", "▁", "c"),
        "a 漢字": ids("▁", "a", "▁", "<unk>"),  # one of a run
        "</s>": ids("▁", "<unk>", "s", "<unk>"),  # what marks the end is text where a page says it
        "": [],
    }.items():
        assert model.read(text) == [[0, *expected, 2]], text


@pytest.mark.parametrize(("letters", "windows"), [(13, [16]), (14, [16, 3]), (27, [16, 16]), (28, [16, 16, 3])])
def test_a_long_text_is_read_in_windows(path: Path, letters: int, windows: list[int]) -> None:
    read = E5Model(path, "q4").read("a" * letters)  # and a space before them
    assert [len(window) for window in read] == windows
    assert all((window[0], window[-1]) == (0, 2) for window in read)


def test_all_of_the_file_is_understood(path: Path) -> None:
    file, tiny = E5File(path), TinyE5()
    assert (file.bos, file.eos) == (0, 2)
    for name, values in tiny.floats.items():
        np.testing.assert_array_equal(file.floats(name), values)


QUIET = """
import os, sys
from pathlib import Path
from adapters.embedders.e5 import E5Model
E5Model(Path(sys.argv[1]), "row8").embed([[0, 9, 2]])
print(sorted(os.listdir("/proc/self/task")) == [str(os.getpid())])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_what_runs_it_tells_nobody(path: Path, tmp_path: Path) -> None:
    """ONNX Runtime's builds, as they come, have a thread that sends what they wrote down below the user's home."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", QUIET, path], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    assert not list(tmp_path.iterdir())
