"""What can happen to worker processes: stopped, killed, frozen, joined by others. Nothing is lost."""

from __future__ import annotations

import asyncio
import signal

import httpx
import pytest

from infra.engine.state import any_free
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.stage import Stage
from schemas.topics import CHANGES
from tests.faults.rig import Rig, key_in, until
from worker import runner


async def test_sigterm_lets_work_finish(rig: Rig) -> None:
    await rig.order((1, "gate"), (2, "ok"))
    worker = rig.worker()
    await rig.began(1)
    worker.send_signal(signal.SIGTERM)
    await until("the worker is stopping", lambda: "stopping" in rig.log(worker))
    rig.open_gate()
    assert await rig.ended(worker) == 0
    assert rig.done() == {1: 1, 2: 1}
    await rig.settled()


async def _two(rig: Rig) -> bool:
    return await rig.members() == 2


@pytest.mark.parametrize("do", ["gate", "swallow"])
async def test_sigterm_cuts_off_what_takes_too_long_and_it_is_repeated(rig: Rig, do: str) -> None:
    await rig.order((1, do, "a"), (2, "ok", "b"), (3, "ok", "a"))
    worker = rig.worker(drain_timeout=0.5)
    await rig.began(1)
    worker.send_signal(signal.SIGTERM)
    assert await rig.ended(worker) == 0
    assert rig.lines("cancelled" if do == "gate" else "swallowed")
    (first,) = [line for line in rig.lines("begin") if line["id"] == 1]
    assert (await rig.committed()).get(first["partition"], 0) <= first["offset"]
    rig.open_gate()
    rig.worker(drain_timeout=0.5, try_timeout=0.5)
    if do == "swallow":  # it fails for good, which only others can tell that go through meanwhile
        await until("it was cut off there, too", lambda: len(rig.lines("swallowed")) > 1)
        await rig.order((4, "ok", "d"))
    await rig.settled()
    assert rig.lost(but=() if do == "gate" else (1,)) == set()
    assert len([line for line in rig.lines("begin") if line["id"] == 1]) > 1


async def test_sigkill_replays_what_was_not_finished(rig: Rig) -> None:
    await rig.order((0, "gate", key_in(0, 0)), *((n, "ok", key_in(0, n)) for n in range(1, 10)))
    first = rig.worker()
    await until("others have overtaken", lambda: len(rig.done()) == 9)
    # Once this one, of the other partition, is committed, a commit has come after all of those.
    await rig.order((10, "ok", key_in(1, 0)))
    await until("the other partition is committed", lambda: _committed(rig, 1, 1))
    assert 0 not in await rig.committed()
    first.kill()
    await rig.ended(first)
    rig.open_gate()
    rig.worker()
    await rig.settled()
    assert rig.lost() == set()
    assert rig.done()[0] == 1


async def _committed(rig: Rig, partition: int, offset: int) -> bool:
    return (await rig.committed()).get(partition) == offset


async def test_this_rig_sees_the_loss_of_an_ack_first_worker(rig: Rig) -> None:
    """The same hazard as above, against a worker that acknowledges too early: the loss must show."""
    await rig.order((1, "gate"), (2, "ok"))
    first = rig.worker("ack_first")
    await rig.began(1)
    await rig.settled()
    first.kill()
    await rig.ended(first)
    rig.open_gate()
    second = rig.worker("ack_first")
    await rig.ready(second)
    await rig.order((3, "ok"))
    await until("the second works", lambda: 3 in rig.done())
    assert rig.lost() == {1}


async def test_workers_come_and_go_under_load(rig: Rig) -> None:
    first = rig.worker()
    await rig.ready(first)
    numbers = iter(range(100_000))
    stop = asyncio.Event()

    async def feed() -> None:
        while not stop.is_set():
            await rig.order(*((n, "ok") for _, n in zip(range(10), numbers, strict=False)))

    feeding = asyncio.create_task(feed())
    second = rig.worker()
    await rig.ready(second)
    await until("both work", lambda: len({e["pid"] for e in rig.lines("effect")}) == 2)
    first.send_signal(signal.SIGTERM)
    assert await rig.ended(first) == 0
    third = rig.worker()
    await rig.ready(third)
    await until("the third works", lambda: third.pid in {e["pid"] for e in rig.lines("effect")})
    stop.set()
    await feeding
    await rig.settled()
    assert rig.lost() == set()
    # Leaving and joining in order repeats nothing: what is finished is committed before partitions go.
    assert set(rig.done().values()) == {1}


async def test_a_rebalance_waits_for_work_and_commits_it(rig: Rig) -> None:
    first = rig.worker()
    await rig.ready(first)
    await rig.order((1, "gate"), (2, "ok"))
    await rig.began(1)
    second = rig.worker()
    await until("the second asks to join", lambda: _two(rig))
    assert not any(line["pid"] == second.pid for line in rig.lines("ready"))  # it has to wait for the first
    rig.open_gate()
    await rig.ready(second)
    await rig.settled()
    assert rig.done() == {1: 1, 2: 1}


async def test_a_rebalance_cuts_off_what_takes_too_long(rig: Rig) -> None:
    first = rig.worker(drain_timeout=0.5)
    await rig.ready(first)
    await rig.order((1, "gate"))
    await rig.began(1)
    second = rig.worker(drain_timeout=0.5)
    await rig.ready(second)
    await rig.began(1, times=2)
    assert len(rig.lines("cancelled")) == 1
    rig.open_gate()
    await rig.settled()
    assert rig.done() == {1: 1}


async def test_a_frozen_worker_loses_its_partitions_and_nothing_else(rig: Rig) -> None:
    first = rig.worker()
    await rig.ready(first)
    await rig.order((1, "gate"), (2, "gate"), (3, "gate"))
    await rig.began(3)
    second = rig.worker()
    first.send_signal(signal.SIGSTOP)
    await rig.ready(second)  # once the session of the first is over
    rig.open_gate()
    await rig.settled()
    first.send_signal(signal.SIGCONT)
    await until("the first is back in the group", lambda: _two(rig))
    await rig.order(*((n, "ok") for n in range(4, 24)))
    await rig.settled()
    assert rig.lost() == set()
    assert first.poll() is None


async def test_only_what_nobody_can_have_begun_is_fresh(rig: Rig) -> None:
    await rig.order((1, "ok"))
    worker = rig.worker()
    await rig.ready(worker)
    await rig.settled()
    await rig.order((2, "ok"), (3, "crash 1"))
    await rig.settled()
    fresh = [(line["id"], line["attempt"], line["fresh"]) for line in rig.lines("begin")]
    assert sorted(fresh) == [(1, 1, False), (2, 1, True), (3, 1, True), (3, 2, False)]


async def test_a_silent_stall_ends_the_process(rig: Rig) -> None:
    worker = rig.worker("stalled", stall_timeout=2)
    await rig.order((1, "ok"))
    assert await rig.ended(worker) == 1
    assert "1 messages wait" in rig.log(worker)
    rig.worker()
    await rig.settled()
    assert rig.lost() == set()


async def test_a_topic_that_is_deleted_ends_the_process_and_the_next_one_reads_the_new_topic(rig: Rig) -> None:
    await rig.order((1, "ok"))
    worker = rig.worker(stall_timeout=6)
    await rig.settled()
    await rig.delete_topic()
    assert await rig.ended(worker) == 1
    assert f"{rig.settings.topic_prefix}cms.changes was deleted" in rig.log(worker)
    rig.worker()
    await rig.topic_is_there()
    await rig.order((2, "ok"))
    await until("the new topic is read", lambda: 2 in rig.done())


@pytest.mark.parametrize("program", ["defect", "crashed"])
async def test_a_defect_of_the_runtime_ends_the_process(rig: Rig, program: str) -> None:
    worker = rig.worker(program)
    await rig.order((1, "ok"))
    assert await rig.ended(worker) == 1
    assert "this must never happen" in rig.log(worker)
    rig.worker()
    await rig.settled()
    assert rig.lost() == set()


async def test_metrics_are_served(rig: Rig) -> None:
    port = any_free(set())
    worker = rig.worker(metrics_port=port)
    await rig.order((1, "ok"), (2, "permanent"))
    await rig.settled()
    async with httpx.AsyncClient(trust_env=False) as client:
        text = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    assert 'pagewire_events_total{lane="",outcome="ok",stage="faulty"} 1.0' in text
    assert 'pagewire_dead_letters_total{code="refused",lane="",stage="faulty"} 1.0' in text
    worker.send_signal(signal.SIGTERM)
    assert await rig.ended(worker) == 0


async def test_no_broker_is_an_exit_code(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "START_TIMEOUT", 0.0)
    nowhere = rig.settings.model_copy(update={"kafka": "127.0.0.1:9"})
    stage = Stage("faulty", {CHANGES: _unused})
    assert await runner.run_stages([stage], nowhere) == runner.EXIT_NO_SERVICE


async def _unused(record: object, sender: object) -> None:
    raise AssertionError("no record can come")


@pytest.mark.parametrize(("error", "code"), [(Retryable("no index"), 3), (Permanent("bad model"), 1)])
async def test_a_setup_that_fails_is_an_exit_code(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    monkeypatch.setattr(runner, "START_TIMEOUT", 5.0)
    tries = 0

    async def setup() -> None:
        nonlocal tries
        tries += 1
        raise error

    assert await runner.run_stages([Stage("faulty", {CHANGES: _unused}, setup=setup)], rig.settings) == code
    assert (tries > 1) is (code == 3), "a service that is away is waited for, a bad model is not"
