"""Child processes for code that may crash: their environment, and the blocks that parent and child exchange.

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
PACKAGE_ROOT = Path(__file__).parents[1]
# Variables that a child inherits: paths, no secrets.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV")


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """The variables of a child process: the inherited ones and `more`."""
    path = os.pathsep.join(filter(None, (str(PACKAGE_ROOT), os.environ.get("PYTHONPATH"))))
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | {"PYTHONPATH": path} | dict(more)


def exit_reason(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def read_block(source: BinaryIO) -> bytes | None:
    """The next block from the parent; None at the end."""
    head = source.read(SIZE.size)
    return source.read(SIZE.unpack(head)[0]) if len(head) == SIZE.size else None


def take_stdout() -> BinaryIO:
    """The stream for the child's blocks. From now on, prints of libraries go to standard error instead."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def write_block(out: BinaryIO, data: bytes) -> None:
    out.write(SIZE.pack(len(data)) + data)
    out.flush()
