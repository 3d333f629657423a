"""A vocabulary is compiled once for all processes, and whatever becomes of its file, it has its words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from text.vocabulary import kept

WORDS = ("strasse", "garten", "äpfel", "bahn", "garten", "\ud800")


class Compiling:
    """How often words were read."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Iterator[str]:
        self.times += 1
        return iter(WORDS)


@pytest.fixture
def compiling() -> Compiling:
    return Compiling()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pagewire" / "words"


def has_its_words(compiling: Compiling) -> bool:
    vocabulary = kept("some", compiling)
    return all(word in vocabulary for word in WORDS) and not any(word in vocabulary for word in ("", "gart", "zoo"))


def test_it_is_compiled_once(folder: Path, compiling: Compiling) -> None:
    assert has_its_words(compiling)
    assert has_its_words(compiling)
    assert compiling.times == 1
    assert [path.name for path in folder.iterdir()] == ["some"]


def test_another_process_finds_the_same_words(folder: Path, compiling: Compiling) -> None:
    kept("some", compiling)
    code = "from text.vocabulary import kept; v = kept('some', lambda: 1 / 0); print('garten' in v, 'zoo' in v)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


@pytest.mark.parametrize("left", [b"", b"x", b"x" * 100])
def test_a_file_that_is_not_whole_is_made_anew(folder: Path, compiling: Compiling, left: bytes) -> None:
    kept("some", compiling)
    (folder / "some").write_bytes(left)
    assert has_its_words(compiling)
    assert has_its_words(compiling)
    assert compiling.times == 2


def test_one_that_lacks_its_end_is_made_anew(folder: Path, compiling: Compiling) -> None:
    kept("some", compiling)
    path = folder / "some"
    path.write_bytes(path.read_bytes()[:-8])
    assert has_its_words(compiling)
    assert compiling.times == 2


def test_where_nothing_can_be_kept_it_is_compiled_each_time(folder: Path, compiling: Compiling) -> None:
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    assert has_its_words(compiling)
    assert has_its_words(compiling)
    assert compiling.times == 2


def test_who_has_no_home_has_no_cache(compiling: Compiling, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("text.vocabulary.user_cache", homeless)
    assert has_its_words(compiling)
    assert compiling.times == 1


def test_a_word_without_letters_of_its_own_spoils_nothing(folder: Path) -> None:
    assert len(kept("none", lambda: ())) == 0
    assert "garten" not in kept("none", lambda: ())
