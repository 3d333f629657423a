"""The supervisor with real processes: a child that dies comes back, and one that cannot start says so."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from infra import supervise
from infra.supervise import Child, ChildFailed

PREAMBLE = """
import os, signal, sys, time
runs = sys.argv[1]
with open(runs, "a") as file:
    print(os.getpid(), file=file)
count = len(open(runs).readlines())
def wait_for_parent():
    while os.read(0, 1024):
        pass
"""


PROGRAM = "program_of_a_child"


class Bench:
    """Children that run a script instead of `pagewire`."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def write(self, script: str) -> None:
        (self._folder / f"{PROGRAM}.py").write_text(f"{PREAMBLE}\nmain = int\n{script}")

    def start(self, script: str) -> tuple[Child, asyncio.Task[None]]:
        self.write(script)
        child = Child("worker", (str(self.runs_file),), {"GIVEN": "here"}, PROGRAM)
        running = asyncio.create_task(child.run())
        self._stack.push_async_callback(self._end, child, running)
        return child, running

    async def _end(self, child: Child, running: asyncio.Task[None]) -> None:
        await child.stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    @property
    def runs_file(self) -> Path:
        return self._folder / "runs"

    def pids(self) -> list[int]:
        return [int(line) for line in self.runs_file.read_text().split()] if self.runs_file.exists() else []


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(supervise, "FIRST_PAUSE", 0.01)
    monkeypatch.syspath_prepend(tmp_path)  # children have it as well
    async with AsyncExitStack() as stack:
        yield Bench(tmp_path, stack)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - another process brings it about
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_child_says_what_it_has_to_say_when_it_is_ready(bench: Bench) -> None:
    child, running = bench.start(
        "print('starting', flush=True)\n"
        "print('ready', os.environ['GIVEN'], sys.argv[-1], flush=True)\n"
        "print('ready again', flush=True)\n"
        "wait_for_parent()"
    )
    assert await asyncio.wait_for(child.ready, 30) == "here --follow-parent"
    assert bench.pids() == [child.pid]
    assert not running.done()


async def test_a_stopped_child_ends_in_order_and_is_not_started_again(bench: Bench) -> None:
    child, running = bench.start(
        "def end(*_):\n"
        "    open(runs + '.ended', 'w').close()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', flush=True)\n"
        "wait_for_parent()"
    )
    await asyncio.wait_for(child.ready, 30)
    await child.stop()
    await asyncio.wait_for(running, 30)
    assert bench.runs_file.with_suffix(".ended").exists()
    assert len(bench.pids()) == 1
    await child.stop()  # once more does nothing


async def test_a_child_that_does_not_end_is_killed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "STOP_TIMEOUT", 0.1)
    child, running = bench.start(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\nwhile True: time.sleep(60)"
    )
    await asyncio.wait_for(child.ready, 30)
    await child.stop()
    await asyncio.wait_for(running, 30)
    assert not alive(bench.pids()[0])


async def test_a_child_that_crashes_is_started_again_and_again(bench: Bench) -> None:
    child, running = bench.start("print('ready', count, flush=True)\nif count < 3: os._exit(9)\nwait_for_parent()")
    await until(lambda: len(bench.pids()) == 3)
    assert child.ready.result() == "1"
    assert not running.done()


async def test_a_child_that_ends_by_itself_is_started_again(bench: Bench) -> None:
    bench.start("print('ready', flush=True)\nif count == 1: sys.exit(0)\nwait_for_parent()")
    await until(lambda: len(bench.pids()) == 2)


async def test_a_child_that_never_gets_ready_is_not_tried_twice(bench: Bench) -> None:
    child, running = bench.start("sys.exit(3)")
    with pytest.raises(ChildFailed, match="worker ended with exit code 3 before it was ready") as caught:
        await asyncio.wait_for(running, 30)
    assert caught.value.code == 3
    assert len(bench.pids()) == 1
    assert not child.ready.done()


async def test_the_pauses_between_crashes_grow_to_their_limit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervise, "LONGEST_PAUSE", 0.04)
    bench.start("print('ready', flush=True)\nif count < 6: os._exit(1)\nwait_for_parent()")
    await until(lambda: len(bench.pids()) == 6)
    pauses = [record.args[2] for record in caplog.records if isinstance(record.args, tuple) and len(record.args) == 3]
    assert pauses == [0.01, 0.02, 0.04, 0.04, 0.04]


SUPERVISOR = """
import asyncio, sys
from infra.supervise import Child, preload

async def main():
    await Child("worker", (sys.argv[1],), {}, sys.argv[2]).run()

if __name__ == "__main__":
    preload("json")
    asyncio.run(main())
"""


def test_a_child_whose_supervisor_is_killed_sees_its_pipe_end(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    bench = Bench(tmp_path, AsyncExitStack())
    bench.write("wait_for_parent()\nopen(runs + '.orphan', 'w').close()")
    (tmp_path / "supervisor.py").write_text(SUPERVISOR)
    paths = {"PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path))}
    with subprocess.Popen((sys.executable, "-m", "supervisor", str(runs), PROGRAM), env=os.environ | paths) as parent:
        try:
            asyncio.run(until(lambda: bool(bench.pids())))
        finally:
            parent.kill()
    asyncio.run(until(runs.with_suffix(".orphan").exists))
    asyncio.run(until(lambda: not alive(bench.pids()[0])))
