"""A worker whose loop stands still ends, and says where it stood."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio, re, sys
from worker.watchdog import watch_loop

async def main():
    watch = asyncio.create_task(watch_loop(1.0))
    await asyncio.sleep(1.5)
    if sys.argv[1] == "hangs":
        re.match(r"(a+)+$", "a" * 60 + "b")  # holds the interpreter's lock for years
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    await asyncio.to_thread(__import__("time").sleep, 1.5)

asyncio.run(main())
"""


def ended(how: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], check=False, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def test_a_loop_that_stands_still_ends_the_process_and_tells_where() -> None:
    code, said = ended("hangs")
    assert code == 1
    assert "in main" in said


def test_a_loop_that_runs_is_left_alone_and_so_is_one_that_is_watched_no_more() -> None:
    assert ended("runs") == (0, "")
