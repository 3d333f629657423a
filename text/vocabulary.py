"""Large sets of words, compiled once for each user (seconds), and then read from a cache (milliseconds).

<user cache>/words/NAME ─┬─ valid ─▶ read
                         └─ missing or damaged ─▶ compiled ─▶ written to a temporary file ─▶ renamed
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from text.user_cache import user_cache

_BYTES = 8  # of a word's hash; among a million words, a collision occurs once in 10^7 dictionaries
_CHECK = 16  # bytes of the checksum before the hashes, which detects damaged files


class Vocabulary:
    """A set of words as sorted hashes, with a tenth of the memory of the words."""

    def __init__(self, hashes: bytes | memoryview) -> None:
        self._hashes = memoryview(hashes).cast("Q")

    def __contains__(self, word: str) -> bool:
        wanted = _hash(word)
        at = bisect_left(self._hashes, wanted)
        return at < len(self._hashes) and self._hashes[at] == wanted

    def __len__(self) -> int:
        return len(self._hashes)


def kept(name: str, words: Callable[[], Iterable[str]]) -> Vocabulary:
    """The vocabulary of this name, from the user's cache if possible.

    Args:
        name: must change whenever the result of `words` changes.
    """
    try:
        path = user_cache() / "words" / name
    except RuntimeError:
        return Vocabulary(_compiled(words()))
    with suppress(OSError, ValueError):
        return Vocabulary(_read(path))
    compiled = _compiled(words())
    with suppress(OSError):  # a read-only home or a full disk: every process compiles its own
        _write(path, compiled)
    return Vocabulary(compiled)


def _read(path: Path) -> memoryview:
    """Raises: OSError: the file is missing. ValueError: it is damaged."""
    # Not memory-mapped: truncating a mapped file would kill every process that uses it.
    found = memoryview(path.read_bytes())
    if found[:_CHECK] != _check(found[_CHECK:]):
        raise ValueError(f"{path} is not whole")
    return found[_CHECK:]


def _write(path: Path, compiled: bytes) -> None:
    """Write atomically, since several processes may start at once. Raises: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        try:
            file.write(_check(compiled) + compiled)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _compiled(words: Iterable[str]) -> bytes:
    hashes = np.fromiter(map(_hash, words), dtype=np.uint64)
    hashes.sort()
    return hashes.tobytes()


def _check(hashes: bytes | memoryview) -> bytes:
    return blake2b(hashes, digest_size=_CHECK).digest()


def _hash(word: str) -> int:
    """A hash that is the same in every process, unlike hash()."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest(), "little")
