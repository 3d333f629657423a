"""Child processes for code that may crash: what they know of us, and the blocks that go to and fro.

parent ─▶ [size][bytes] ─▶ child ─▶ [size][bytes] ─▶ parent
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

SIZE = struct.Struct(">Q")
OURS = Path(__file__).parents[1]  # where this package is found
# What a child may know of us: where things are, no secrets.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV")


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """A child's, with what else it is to know."""
    path = os.pathsep.join(filter(None, (str(OURS), os.environ.get("PYTHONPATH"))))
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | {"PYTHONPATH": path} | dict(more)


def how_it_ended(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def block(source: BinaryIO) -> bytes | None:
    """The next block for the child; None when there will be none."""
    head = source.read(SIZE.size)
    return source.read(SIZE.unpack(head)[0]) if len(head) == SIZE.size else None


def answers() -> BinaryIO:
    """Where the child's blocks go. What libraries print goes to standard error from now on: it is no answer."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def put(out: BinaryIO, data: bytes) -> None:
    out.write(SIZE.pack(len(data)) + data)
    out.flush()
