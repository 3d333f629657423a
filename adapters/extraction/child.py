"""The child process that reads documents one by one, within limits of memory and time.

    parent ─▶ [size][{"said", "suffix", "limit", "seconds"}] [size][bytes] ─▶ child
           ◀─ [size][{"sections", "cut", "left_out", "seen"}, or one of {"unread"}, {"not_read"}, {"missing"}] ◀┘

The child also detects a document's kind, since that needs to open archives. It has no secrets in its environment, and
`fence` blocks the network, programs and other files. `python -m adapters.extraction.child MIB` ends with its standard
input.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from adapters.extraction.fence import read_block, restrict_process, take_stdout, write_block
from pipelines.ingest.documents.kinds import NEEDS, Kind, Mislabelled, NotADocument, charset_of, kind_of

NICENESS = 10  # nice(1)
# Unused packages of gigabytes that spaCy (a dependency of unstructured) would import where they are installed.
BLOCKED_IMPORTS = ("torch", "transformers", "tensorflow", "cupy")


def main() -> None:
    memory = int(sys.argv[1]) * 2**20
    out = take_stdout()
    for name in BLOCKED_IMPORTS:
        sys.modules[name] = None  # type: ignore[assignment]  # makes its import fail
    os.nice(NICENESS)
    with suppress(OSError):  # makes Linux kill this process before the worker when memory runs out
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    address_space = _address_space()
    restrict_process()
    while (order := read_block(sys.stdin.buffer)) is not None:
        data = read_block(sys.stdin.buffer)
        if data is None:
            return
        answer = _answer(json.loads(order), data, memory, address_space)
        write_block(out, json.dumps(answer).encode())


def installed(kind: Kind) -> bool:
    """Whether the packages for this kind are installed."""
    return all(find_spec(module) is not None for module in NEEDS[kind])


def _answer(order: dict[str, Any], data: bytes, memory: int, address_space: Callable[[], int]) -> dict[str, Any]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + order["seconds"]) + 1
    # A second limit in case the parent has died; the parent's own limit is shorter.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    try:
        answer = _read(order, data)
    except MemoryError:
        return {"unread": f"needs more than {memory // 2**20} MiB of memory to read", "spent": True}
    except RecursionError:
        return {"unread": "damaged: nested too deep", "spent": True}
    except Exception as err:  # noqa: BLE001 - the libraries may raise anything on a malicious document
        return {"unread": f"damaged: {type(err).__name__}: {str(err)[:200]}", "spent": True}
    # A child that has used much memory is replaced, so that the next document has enough. Measured by address space,
    # which is limited. The peak of resident memory would start at the parent's, which may have torch loaded.
    return answer | {"spent": address_space() > memory / 2}


def _read(order: dict[str, Any], data: bytes) -> dict[str, Any]:
    try:
        kind = kind_of(data, order["said"], f".{order['suffix']}")
    except Mislabelled as err:
        return {"unread": str(err)}
    except NotADocument as err:
        return {"not_read": str(err)}
    if not installed(kind):
        return {"missing": kind}
    from adapters.extraction.documents import Unreadable, read

    try:
        document = read(kind, data, order["limit"], charset_of(order["said"]))
    except Unreadable as err:
        return {"unread": str(err)}
    return asdict(document)


def _address_space() -> Callable[[], int]:
    """A function that returns this process's address space in bytes. On Linux it keeps a file of /proc open, which
    the fence blocks later.
    """
    if sys.platform != "linux":
        process = psutil.Process()
        return lambda: process.memory_info().vms
    file = Path("/proc/self/statm").open("rb", buffering=0)  # noqa: SIM115 - open until the process ends

    def pages() -> int:
        file.seek(0)
        return int(file.read().split()[0]) * resource.getpagesize()

    return pages


if __name__ == "__main__":
    main()
