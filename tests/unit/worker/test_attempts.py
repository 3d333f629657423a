"""A record that ends its process is known to the next process, and buried at its third death."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipelines.runtime.dead_letters import describe, redrive_headers
from pipelines.runtime.record import Record
from tests import skipping_time
from worker import attempts as module
from worker.attempts import Attempts, EndsWorker

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


async def test_a_copy_that_the_stage_before_has_sent_again_is_the_same_message(tmp_path: Path) -> None:
    copies = [replace(RECORD, partition=partition, offset=70 + partition) for partition in range(6)]
    for copy in copies[:3]:
        await die_in(tmp_path, copy)
    attempts = Attempts(tmp_path)
    assert [attempts.deaths(copy) for copy in (RECORD, *copies)] == [3] * 7
    others = (replace(RECORD, value=b"newer"), replace(RECORD, key=b"x"), replace(RECORD, topic="u"))
    assert [attempts.deaths(other) for other in others] == [0, 0, 0]


async def test_what_was_buried_stays_guilty_for_its_copies_for_an_hour_but_not_for_who_puts_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(module.DEATHS_AT_MOST):
        await die_in(tmp_path, RECORD)
    attempts = Attempts(tmp_path)
    letter = describe(RECORD, "embed", EndsWorker("it ended"), 6, datetime.now(UTC))
    put_back = replace(RECORD, headers=redrive_headers((), letter))
    attempts.settled(RECORD)
    for looks in (attempts, Attempts(tmp_path)):
        assert [looks.must_bury(record) for record in (replace(RECORD, offset=70), put_back)] == [True, False]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + module.BURIED_FOR + 1)
    assert not Attempts(tmp_path).must_bury(RECORD)
    assert not list((tmp_path / "deaths").iterdir())


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


async def killed_at_work(
    folder: Path, *, seconds: float = 0.0, beside: Record | None = None, long: bool = False
) -> None:
    """A process with both in its hands is killed some seconds after it began with RECORD; `long`: beside never ends."""
    attempts = Attempts(folder)

    async def others() -> None:
        if beside is not None:
            async with attempts.trying(beside):
                await asyncio.sleep(1000.0 if long else 1.0)

    other = asyncio.create_task(others())
    await asyncio.sleep(0)
    trying = attempts.trying(RECORD)
    await trying.__aenter__()
    await asyncio.sleep(seconds)
    kill(attempts)
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    await trying.__aexit__(None, None, None)


def deaths_until_buried(folder: Path, **how: Any) -> int:
    async def scenario() -> int:
        for deaths in range(1, 10):
            await killed_at_work(folder, **how)
            attempts = Attempts(folder)
            must_bury = attempts.must_bury(RECORD)
            assert attempts.deaths(RECORD) == deaths
            attempts.close()
            if must_bury:
                return deaths
        return 0

    return skipping_time.run(scenario())


def test_a_record_is_guilty_once_its_process_died_with_nothing_else_at_work(tmp_path: Path) -> None:
    assert deaths_until_buried(tmp_path / "alone") == 3
    assert deaths_until_buried(tmp_path / "others", beside=OTHER) == 3


def test_a_record_that_is_long_at_work_when_somebody_kills_its_process_is_not_guilty_so_soon(tmp_path: Path) -> None:
    assert deaths_until_buried(tmp_path / "later", seconds=module.TRIAL_LIMIT + 1) == 6
    assert deaths_until_buried(tmp_path / "never alone", beside=OTHER, long=True) == 6


def test_others_wait_for_a_trial_only_for_its_first_seconds(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[float], list[int]]:
        for _ in range(2):
            await die_in(tmp_path, RECORD)
        attempts, began = Attempts(tmp_path), asyncio.get_running_loop().time
        order, waited = list[int](), list[float]()

        async def work(record: Record, seconds: float) -> None:
            asked = began()
            async with attempts.trying(record):
                waited.append(began() - asked)
                order.append(record.offset)
                await asyncio.sleep(seconds)

        await asyncio.gather(work(RECORD, 100.0), work(OTHER, 1.0))
        return waited, order

    waited, order = skipping_time.run(scenario())
    assert order == [7, 8]
    assert waited == pytest.approx([0.0, module.TRIAL_LIMIT], abs=0.1)


def test_deaths_that_an_earlier_version_has_counted_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        await die_in(tmp_path, RECORD)
        Attempts(tmp_path).close()
        [tomb] = (tmp_path / "deaths").iterdir()
        tomb.write_text("2")
        attempts = Attempts(tmp_path)
        assert (attempts.deaths(RECORD), attempts.must_bury(RECORD)) == (2, False)

    skipping_time.run(scenario())


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
from worker import attempts
from worker.guard import Guard
from worker.in_flight import InFlight
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
    [kept] = (tmp_path / "attempts" / "deaths").iterdir()  # for its copies; of the pages that died along nothing
    assert kept.read_text().split()[0] == "3"
