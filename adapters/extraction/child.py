"""The child process that reads documents: one after the other, within limits of memory and time.

    parent ─▶ [size][{"said", "suffix", "limit", "seconds"}] [size][bytes] ─▶ child
           ◀─ [size][{"sections", "left_out", "hidden"}, or one of {"unread"}, {"not_read"}, {"missing"}] ◀─┘

What kind a document is, is found out here as well: that takes opening archives. The child has no secrets in its
environment, and `fence` keeps it from the network, from programs and from what else lies on the disk.
`python -m adapters.extraction.child MIB` ends when its standard input does.
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

from adapters.child_process import answers, block, put
from adapters.extraction.fence import shut_in
from pipelines.ingest.documents.kinds import NEEDS, Kind, Mislabelled, NotADocument, charset_of, kind_of

GIVING_WAY = 10  # nice(1)
# What spaCy, which unstructured loads, would load where it is installed, gigabytes of it, and nothing here uses.
NOT_FOR_US = ("torch", "transformers", "tensorflow", "cupy")


def main() -> None:
    memory = int(sys.argv[1]) * 2**20
    out = answers()
    for name in NOT_FOR_US:
        sys.modules[name] = None  # type: ignore[assignment]  # importing it fails, as if it were not there
    os.nice(GIVING_WAY)
    with suppress(OSError):  # where memory runs short, Linux ends this process and not the worker
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    address_space = _address_space()
    shut_in()
    while (order := block(sys.stdin.buffer)) is not None:
        data = block(sys.stdin.buffer)
        if data is None:
            return
        answer = _answer(json.loads(order), data, memory, address_space)
        put(out, json.dumps(answer).encode())


def installed(kind: Kind) -> bool:
    """Whether what reads it is there."""
    return all(find_spec(module) is not None for module in NEEDS[kind])


def _answer(order: dict[str, Any], data: bytes, memory: int, address_space: Callable[[], int]) -> dict[str, Any]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + order["seconds"]) + 1
    # For the case that nobody is there any more to end us: the parent's own limit comes first.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    try:
        answer = _read(order, data)
    except MemoryError:
        return {"unread": f"needs more than {memory // 2**20} MiB of memory to read", "spent": True}
    except RecursionError:
        return {"unread": "damaged: nested too deep", "spent": True}
    except Exception as err:  # noqa: BLE001 - whatever the libraries raise on what strangers wrote
        return {"unread": f"damaged: {type(err).__name__}: {str(err)[:200]}", "spent": True}
    # What one document took must not be missing for the next. Address space is what is limited; and the peak of
    # resident memory begins at the parent's, so that one with torch in it would look like a spent child.
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
    """What tells how many bytes of it this process has. On Linux from a file opened before /proc is fenced off."""
    if sys.platform != "linux":
        process = psutil.Process()
        return lambda: process.memory_info().vms
    file = Path("/proc/self/statm").open("rb", buffering=0)  # noqa: SIM115 - as long as the process lives

    def pages() -> int:
        file.seek(0)
        return int(file.read().split()[0]) * resource.getpagesize()

    return pages


if __name__ == "__main__":
    main()
