"""A command whose main thread is watched by cProfile between two signals, for benchmarks of a process of ours.

python -m bench.profiled FILE gateway --port 0      SIGUSR1 begins, SIGUSR2 ends and writes the file
"""

from __future__ import annotations

import cProfile
import os
import pstats
import signal
import sys
from pathlib import Path

from cli.main import main

ROOT = Path(__file__).parents[1]


def table(file: Path, events: int, most: int) -> list[tuple[str, float, float]]:
    """Where most time was spent: the place, calls and microseconds of its own an event, the profiler's own among them.

    A file of ours is a place, a library, and a built-in function.
    """
    spent: dict[str, tuple[float, float]] = {}
    for (path, _, name), (_, calls, own, _, _) in pstats.Stats(str(file)).stats.items():  # type: ignore[attr-defined]
        known, seconds = spent.get(place := _place(path, name), (0.0, 0.0))
        spent[place] = known + calls, seconds + own
    rows = [(place, calls / events, own / events * 1e6) for place, (calls, own) in spent.items()]
    return sorted(rows, key=lambda row: -row[2])[:most]


def _place(path: str, name: str) -> str:
    parts = Path(path).parts
    if path == "~":  # <method 'send' of '_socket.socket' objects>, <built-in method builtins.isinstance>
        return name.strip("<>").removeprefix("built-in method ").removesuffix(" objects")
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1].removesuffix(".py")
    if Path(path).is_relative_to(ROOT):
        return os.path.relpath(path, ROOT)
    return "asyncio" if "asyncio" in parts else Path(path).stem


if __name__ == "__main__":
    file, *command = sys.argv[1:]
    profile = cProfile.Profile()
    signal.signal(signal.SIGUSR1, lambda *_: profile.enable())
    signal.signal(signal.SIGUSR2, lambda *_: profile.dump_stats(file))  # which ends it
    sys.argv = ["pagewire", *command]
    main()
