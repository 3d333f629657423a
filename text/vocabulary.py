"""Sets of words that take seconds to read: compiled once for each user, read in milliseconds from then on.

<user cache>/words/NAME ─┬─ there ─▶ read
                         └─ not, or not whole ─▶ compiled ─▶ written beside it ─▶ renamed
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

_BYTES = 8  # of a word's hash; none of a million words has another's but once in 10^7 dictionaries
_CHECK = 16  # bytes before the hashes, which are of them: a file that is cut short or mixed up is compiled anew


class Vocabulary:
    """Words by their hashes, sorted: a tenth of the memory of the words themselves."""

    def __init__(self, hashes: bytes | memoryview) -> None:
        self._hashes = memoryview(hashes).cast("Q")

    def __contains__(self, word: str) -> bool:
        wanted = _hash(word)
        at = bisect_left(self._hashes, wanted)
        return at < len(self._hashes) and self._hashes[at] == wanted

    def __len__(self) -> int:
        return len(self._hashes)


def kept(name: str, words: Callable[[], Iterable[str]]) -> Vocabulary:
    """The vocabulary of this name, from the user's cache where it is there.

    Args:
        name: another one whenever `words` says anything else.
    """
    try:
        path = user_cache() / "words" / name
    except RuntimeError:
        return Vocabulary(_compiled(words()))
    with suppress(OSError, ValueError):
        return Vocabulary(_read(path))
    compiled = _compiled(words())
    with suppress(OSError):  # a read-only home, a full disk: every process compiles for itself
        _write(path, compiled)
    return Vocabulary(compiled)


def _read(path: Path) -> memoryview:
    """Raises: OSError, it is not there; ValueError, it is not whole."""
    # Not mapped: who cuts a mapped file short ends every process that has it.
    found = memoryview(path.read_bytes())
    if found[:_CHECK] != _check(found[_CHECK:]):
        raise ValueError(f"{path} is not whole")
    return found[_CHECK:]


def _write(path: Path, compiled: bytes) -> None:
    """Whole or not at all: several processes may start at once. Raises: OSError."""
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
    """The same in every process, as hash() is not."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest(), "little")
