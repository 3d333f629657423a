"""A record that ends its process is known to the next process, and buried at its third death."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.runtime.record import Record
from pipelines.worker import attempts as module
from pipelines.worker.attempts import Attempts
from tests import skipping_time

RECORD, OTHER = Record("t", 0, 7, b"k", b""), Record("t", 0, 8, b"l", b"")


def kill(attempts: Attempts) -> None:
    """What SIGKILL leaves of a process: its file, without a lock."""
    assert attempts._file is not None
    os.close(attempts._file)
    attempts._file = None


async def die_in(folder: Path, *records: Record, ended: Record | None = None) -> None:
    attempts = Attempts(folder)
    if ended is not None:
        async with attempts.trying(ended):
            pass
    for record in records:
        await attempts.trying(record).__aenter__()
    kill(attempts)


async def test_what_was_at_work_when_a_process_died_is_counted(tmp_path: Path) -> None:
    for deaths in (1, 2):
        await die_in(tmp_path, RECORD, ended=OTHER)
        attempts = Attempts(tmp_path)
        assert [attempts.deaths(record) for record in (RECORD, OTHER)] == [deaths, 0]
        attempts.close()
    attempts = Attempts(tmp_path)
    attempts.settled(RECORD)
    attempts.close()
    assert Attempts(tmp_path).deaths(RECORD) == 0


async def test_a_process_that_lives_or_ended_in_order_counts_for_nothing(tmp_path: Path) -> None:
    lives, ends = Attempts(tmp_path), Attempts(tmp_path)
    for attempts in (lives, ends):
        await attempts.trying(RECORD).__aenter__()
    ends.close()
    looks = Attempts(tmp_path)
    assert looks.deaths(RECORD) == 0
    kill(lives)
    assert looks.deaths(RECORD) == 0
    looks.adopt()  # as when it is given the dead one's partitions
    assert looks.deaths(RECORD) == 1


async def test_a_long_life_leaves_a_short_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CUT_AT", 500)
    attempts = Attempts(tmp_path)
    await attempts.trying(RECORD).__aenter__()
    for _ in range(200):
        async with attempts.trying(OTHER):
            pass
    assert sum(own.stat().st_size for own in tmp_path.glob("*.begun")) < 600  # noqa: ASYNC240 - one small folder
    kill(attempts)
    after = Attempts(tmp_path)
    assert [after.deaths(record) for record in (RECORD, OTHER)] == [1, 0]


def test_suspects_are_tried_one_at_a_time_and_the_most_suspicious_last(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        await die_in(tmp_path, RECORD)
        await die_in(tmp_path, RECORD, OTHER)
        attempts = Attempts(tmp_path)
        order, at_once = [], 0

        async def work(record: Record) -> None:
            nonlocal at_once
            await attempts.wait(record)
            async with attempts.trying(record):
                at_once += 1
                assert at_once == 1
                order.append(record.offset)
                await asyncio.sleep(5)
                at_once -= 1

        await asyncio.gather(work(RECORD), work(OTHER))
        return order

    assert skipping_time.run(scenario()) == [8, 7]


async def test_a_home_that_cannot_be_written_to_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    attempts = Attempts(tmp_path / "file" / "attempts")
    async with attempts.trying(RECORD):
        assert attempts.deaths(RECORD) == 0
    attempts.close()


WORKER = """
import asyncio, os, signal, sys
from pathlib import Path
from pipelines.runtime.dead_letters import from_headers
from pipelines.runtime.record import Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Stage
from pipelines.worker import attempts
from pipelines.worker.guard import Guard
from pipelines.worker.in_flight import InFlight
from schemas.topics import CHANGES

attempts.GRACE = 0.2
done = Path(sys.argv[1]) / "done"

class Bus:
    async def send_bytes(self, topic, key, value, headers, *, partition=None):
        letter = from_headers(headers)
        done.open("a").write(f"dead {key.decode()} {letter.code} {letter.attempts}\\n")

async def handle(record, sender):
    if record.key == b"killer":
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(0.02)
    done.open("a").write(record.key.decode() + "\\n")

async def main():
    ended = []
    guard = Guard(Stage("chunk", {CHANGES: handle}), CHANGES, handle, Bus(), RetryPolicy(6, 900.0), 60.0,
                  attempts=attempts.Attempts(Path(sys.argv[1]) / "attempts"))
    flight = InFlight(window=16, order_key=lambda r: r.key, work=guard, finished=ended.append, failed=ended.append)
    known = done.read_text() if done.exists() else ""
    keys = [key for key in ("killer", *(f"page{n}" for n in range(30))) if f"{key}\\n" not in known]
    for offset, key in enumerate(("killer", *(f"page{n}" for n in range(30)))):
        if key in keys:  # what the group has not committed
            flight.put(Record("t", 0, offset, key.encode(), b""))
    while len(ended) < len(keys):
        await asyncio.sleep(0.01)

asyncio.run(main())
"""


def test_a_record_that_kills_its_process_is_buried_after_three_deaths_and_its_neighbours_are_done_meanwhile(
    tmp_path: Path,
) -> None:
    codes, done = [], []
    for _ in range(4):
        codes.append(subprocess.run([sys.executable, "-c", WORKER, str(tmp_path)], check=False).returncode)
        path = tmp_path / "done"
        done.append(path.read_text().splitlines() if path.exists() else [])
    assert codes == [-signal.SIGKILL] * 3 + [0]
    pages = {f"page{n}" for n in range(30)}
    assert set(done[2]) == pages  # before it is buried
    assert set(done[3]) - pages == {"dead killer ends-worker 3"}
    assert not list((tmp_path / "attempts" / "deaths").iterdir())
