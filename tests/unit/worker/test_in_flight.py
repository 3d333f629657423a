"""The in-flight window: order per key, at most `window` from the head, nothing acknowledged that was cut off."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.runtime.record import Record
from pipelines.runtime.stage import by_record_key
from tests import skipping_time
from worker import in_flight as module
from worker.in_flight import InFlight, RecordInFlight
from worker.offsets import OffsetBook


class Workshop:
    """Records in flight that end when the test says so."""

    def __init__(self, window: int = 4, at_once: int | None = None) -> None:
        self.gates: defaultdict[tuple[int, int], asyncio.Event] = defaultdict(asyncio.Event)
        self.running: dict[tuple[int, int], Record] = {}
        self.finished: list[Record] = []
        self.failures: list[BaseException] = []
        self.deaf = False
        self.in_flight = InFlight(
            window=window,
            order_key=by_record_key,
            work=self.work,
            finished=self.finished.append,
            failed=self.failures.append,
            at_once=at_once,
        )

    async def work(self, work: RecordInFlight) -> None:
        record = work.record
        place = (record.partition, record.offset)
        assert all(other.key != record.key or other.partition != record.partition for other in self.running.values()), (
            "two of one key at once"
        )
        self.running[place] = record
        try:
            await self.gates[place].wait()
        except asyncio.CancelledError:
            if not self.deaf:
                raise
        finally:
            del self.running[place]

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    def offsets(self) -> list[int]:
        return [record.offset for record in self.finished]


def record(offset: int, key: bytes = b"k", partition: int = 0, size: int = 0) -> Record:
    return Record("t", partition, offset, key, b"x" * size)


keys = st.sampled_from([b"a", b"b", b"c"])


@given(
    st.lists(st.tuples(st.integers(0, 1), keys), max_size=30),
    st.integers(1, 5),
    st.none() | st.integers(1, 5),
    st.randoms(),
)
def test_every_order_of_events_keeps_the_promises(
    arrivals: list[tuple[int, bytes]], window: int, at_once: int | None, random: object
) -> None:
    async def scenario() -> None:
        shop = Workshop(window, at_once)
        book: OffsetBook[int] = OffsetBook()
        heads: dict[int, int] = {0: 0, 1: 0}
        arrived: list[Record] = []
        for partition, key in arrivals:
            offset = sum(r.partition == partition for r in arrived)
            arrived.append(record(offset, key, partition))
            book.fetched(partition, [offset])
            shop.in_flight.put(arrived[-1])
        seen = 0
        while len(shop.finished) < len(arrived):
            await shop.settle()
            assert shop.running, "work waits, none runs"
            for partition in (0, 1) if at_once is None else ():
                assert all(o < heads[partition] + window for p, o in shop.running if p == partition)
            assert at_once is None or len(shop.running) <= at_once
            place = random.choice(sorted(shop.running))  # type: ignore[attr-defined]
            shop.gates[place].set()
            await shop.settle()
            for done in shop.finished[seen:]:
                book.finished(done.partition, done.offset)
            seen = len(shop.finished)
            for partition in (0, 1):
                heads[partition] = book.committable(partition) or 0
        for partition in (0, 1):
            for key in (b"a", b"b", b"c"):
                order = [r.offset for r in shop.finished if (r.partition, r.key) == (partition, key)]
                assert order == sorted(order)
        assert shop.in_flight.running == 0
        assert not shop.failures

    asyncio.run(scenario())


async def test_behind_a_slow_record_others_go_on_where_it_is_counted_what_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "AHEAD", 8)
    shop = Workshop(at_once=2)
    for offset in range(8):
        assert not shop.in_flight.full(("t", 0))
        shop.in_flight.put(record(offset, key=str(offset).encode()))
    assert shop.in_flight.full(("t", 0))  # only so far may a crash throw us back
    for offset in range(1, 8):
        await shop.settle()
        assert set(shop.running) == {(0, 0), (0, offset)}
        shop.gates[0, offset].set()
    await shop.settle()
    assert shop.offsets() == list(range(1, 8))
    assert shop.in_flight.full(("t", 0))
    shop.gates[0, 0].set()
    await shop.settle()
    assert not shop.in_flight.full(("t", 0))


async def test_the_partition_with_the_fewest_running_goes_first() -> None:
    shop = Workshop(at_once=3)
    for offset in range(5):
        shop.in_flight.put(record(offset, key=str(offset).encode()))
    for partition in (1, 2):
        shop.in_flight.put(record(0, partition=partition))
        assert not shop.in_flight.busy(("t", partition))
    await shop.settle()
    assert set(shop.running) == {(0, 0), (0, 1), (0, 2)}
    for work in next(iter(shop.in_flight._queues.values())).works:
        work.busy_until = float("inf")
    assert shop.in_flight.busy(("t", 1))  # it waits for those
    for offset in (1, 2):
        shop.gates[0, offset].set()
    await shop.settle()
    assert set(shop.running) == {(0, 0), (1, 0), (2, 0)}
    await shop.in_flight.drain(0.0)
    shop.in_flight.open()
    for offset in range(3):  # what was given up runs no more
        shop.in_flight.put(record(offset, key=str(offset).encode(), partition=3))
    await shop.settle()
    assert set(shop.running) == {(3, 0), (3, 1), (3, 2)}
    await shop.in_flight.drain(0.0)


async def test_a_full_queue_says_so_and_has_room_again() -> None:
    shop = Workshop(window=2)
    for offset in range(4):
        assert not shop.in_flight.full(("t", 0))
        shop.in_flight.put(record(offset, key=str(offset).encode()))
    assert shop.in_flight.full(("t", 0))
    assert not shop.in_flight.full(("t", 1))
    shop.in_flight.room.clear()
    await shop.settle()
    shop.gates[0, 0].set()
    await asyncio.wait_for(shop.in_flight.room.wait(), 5)
    assert not shop.in_flight.full(("t", 0))
    await shop.in_flight.drain(0)


async def test_large_messages_fill_a_queue_sooner() -> None:
    shop = Workshop(window=16)
    for offset in range(4):
        shop.in_flight.put(record(offset, size=module.BYTES_AHEAD // 4))
    assert shop.in_flight.full(("t", 0))
    await shop.in_flight.drain(0)


async def test_drain_finishes_what_runs_and_forgets_what_waits() -> None:
    shop = Workshop(window=2)
    for offset in range(4):
        shop.in_flight.put(record(offset, key=str(offset).encode()))
    await shop.settle()
    draining = asyncio.create_task(shop.in_flight.drain(30))
    await shop.settle()
    shop.in_flight.put(record(9))  # too late: it will be fetched again
    shop.gates[0, 0].set()
    shop.gates[0, 1].set()
    await draining
    assert sorted(shop.offsets()) == [0, 1]
    assert not shop.running


async def test_drain_cuts_off_and_nothing_cut_off_counts() -> None:
    shop = Workshop()
    shop.in_flight.put(record(0))
    await shop.settle()
    await shop.in_flight.drain(0.01)
    assert shop.finished == []
    assert not shop.running


async def test_a_swallowed_cancellation_does_not_count_either() -> None:
    shop = Workshop()
    shop.deaf = True
    shop.in_flight.put(record(0))
    await shop.settle()
    await shop.in_flight.drain(0.01)
    assert not shop.running  # it returned, as if all were well
    assert shop.finished == []


def test_work_that_does_not_end_at_all_holds_up_no_rebalance_and_never_counts() -> None:
    ends = asyncio.Event()

    async def obstinate(work: RecordInFlight) -> None:
        while not ends.is_set():
            with suppress(asyncio.CancelledError):
                await ends.wait()

    finished: list[Record] = []
    in_flight = InFlight(
        window=4, order_key=by_record_key, work=obstinate, finished=finished.append, failed=lambda err: None
    )

    async def drained() -> float:
        in_flight.put(record(0))
        await asyncio.sleep(0)
        begun = asyncio.get_running_loop().time()
        await in_flight.drain(10.0)
        seconds = asyncio.get_running_loop().time() - begun
        assert in_flight.running == 0
        in_flight.open()
        ends.set()
        for _ in range(5):
            await asyncio.sleep(0)
        return seconds

    assert 10.0 <= skipping_time.run(drained()) <= 10.0 + 5.0  # a broker waits for a minute: see REBALANCE
    assert finished == []


async def test_it_opens_again_for_a_new_assignment() -> None:
    shop = Workshop()
    shop.in_flight.put(record(0))
    await shop.settle()
    await shop.in_flight.drain(0.01)
    shop.in_flight.open()
    shop.gates[0, 0].set()
    shop.in_flight.put(record(0))
    await shop.settle()
    assert shop.offsets() == [0]


async def test_drained_for_good_stays_closed() -> None:
    shop = Workshop()
    await shop.in_flight.drain(0, for_good=True)
    shop.in_flight.open()
    shop.in_flight.put(record(0))
    await shop.settle()
    assert not shop.running


async def test_a_defect_is_handed_to_the_owner() -> None:
    failures: list[BaseException] = []
    finished: list[Record] = []

    async def broken(work: RecordInFlight) -> None:
        raise ZeroDivisionError

    in_flight = InFlight(
        window=1, order_key=by_record_key, work=broken, finished=finished.append, failed=failures.append
    )
    in_flight.put(record(0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [type(failure) for failure in failures] == [ZeroDivisionError]
    assert finished == []


async def test_a_key_that_cannot_be_read_is_the_records_own() -> None:
    shop = Workshop()

    def broken(record: Record) -> bytes:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no")

    shop.in_flight._order_key = broken
    shop.gates[0, 0].set()
    shop.in_flight.put(record(0))
    await shop.settle()
    assert shop.offsets() == [0]


async def test_busy_means_at_work_within_the_time() -> None:
    shop = Workshop()
    assert not shop.in_flight.busy(("t", 0))
    shop.in_flight.put(record(0))
    (queue,) = shop.in_flight._queues.values()
    queue.works[0].busy_until = float("inf")
    assert shop.in_flight.busy(("t", 0))
    assert not shop.in_flight.busy(("t", 1))  # what it waits for is not this
    shop.in_flight._limits = 1, 10**9
    assert shop.in_flight.busy(("t", 1))  # now it is: there is no room
    queue.works[0].busy_until = 0.0
    assert not shop.in_flight.busy(("t", 0))
    await shop.in_flight.drain(0)


async def test_all_partitions_together_hold_no_more_than_the_limits() -> None:
    shop = Workshop()
    for number, (records, bytes_) in enumerate(((20, 10**9), (10**9, 20_000))):
        flight = InFlight(
            window=4,
            order_key=by_record_key,
            work=shop.work,
            finished=shop.finished.append,
            failed=shop.failures.append,
            records=records,
            bytes=bytes_,
        )
        for partition in range(100):  # as many as there are, one record each
            if not flight.full(("t", partition)):
                flight.put(record(number, b"%d" % partition, partition, size=1_000))
        await shop.settle()
        assert len(shop.running) == 20
        assert flight.full(("t", 99))
        shop.gates[0, number].set()
        await shop.settle()
        assert not flight.full(("t", 99))  # one is done, and its bytes are given back
        await flight.drain(0.0)
        assert not flight.full(("t", 0))


async def test_early_records_have_a_window_of_their_own_and_few_others_are_begun_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LINGER", 0.0)
    shop = Workshop(window=8)
    for offset in range(12):
        shop.in_flight.put(record(offset, key=str(offset).encode()))
    await shop.settle()
    assert len(shop.running) == 8
    assert shop.in_flight.room_early(("t", 0)) == 8
    for offset in range(100, 110):
        shop.in_flight.put(record(offset, key=str(offset).encode()), early=True)
    await shop.settle()
    assert [offset for _, offset in sorted(shop.running) if offset >= 100] == list(range(100, 108))
    assert shop.in_flight.room_early(("t", 0)) < 1
    assert {r.offset for r in shop.in_flight.at_work(("t", 0))} == set(range(8))
    for offset in range(7):
        shop.gates[0, offset].set()
    await shop.settle()
    assert {offset for _, offset in shop.running if offset < 100} == {7, 8}  # of eight, a quarter
    for offset in range(100, 110):
        shop.gates[0, offset].set()
        await shop.settle()
    assert {offset for _, offset in shop.running} == {7, 8, 9, 10, 11}  # nobody is beside them any more
    assert not shop.failures
    await shop.in_flight.drain(0)


async def test_an_early_record_that_waits_for_its_next_try_holds_back_nobody() -> None:
    shop = Workshop(window=8)
    shop.in_flight.put(record(100), early=True)
    await shop.settle()
    (queue,) = shop.in_flight._queues.values()
    queue.works[0].idle = True
    for offset in range(8):
        shop.in_flight.put(record(offset, key=str(offset).encode()))
    await shop.settle()
    assert len(shop.running) == 9
    await shop.in_flight.drain(0)


async def test_early_records_are_bounded_and_leave_room_for_what_is_fetched() -> None:
    shop = Workshop(window=64)
    shop.in_flight._limits = 40, 10**9
    for offset in range(100, 110):
        assert shop.in_flight.room_early(("t", 1)) > 0
        shop.in_flight.put(record(offset, partition=1), early=True)
    assert shop.in_flight.room_early(("t", 0)) == 0
    assert not shop.in_flight.full(("t", 1))
    await shop.settle()
    for work in next(iter(shop.in_flight._queues.values())).works:
        work.busy_until = float("inf")
    assert shop.in_flight.busy(("t", 1))  # the commit of its partition may wait for them
    await shop.in_flight.drain(0)
    assert shop.in_flight.room_early(("t", 0)) == 0  # closed
    shop.in_flight.open()
    assert shop.in_flight.room_early(("t", 0)) == 64


async def test_few_are_begun_beside_early_records_of_another_stage_of_the_process() -> None:
    shop, early = Workshop(window=8), True
    shop.in_flight._early_anywhere = lambda: early
    for offset in range(8):
        shop.in_flight.put(record(offset, key=str(offset).encode()))
    await shop.settle()
    assert set(shop.running) == {(0, 0), (0, 1)}
    early = False
    shop.gates[0, 0].set()
    await shop.settle()
    assert len(shop.running) == 7
    await shop.in_flight.drain(0)


async def test_for_a_while_after_early_records_few_are_begun() -> None:
    shop = Workshop(window=8)
    shop.in_flight.put(record(100), early=True)
    shop.gates[0, 100].set()
    await shop.settle()
    for offset in range(8):
        shop.in_flight.put(record(offset, key=str(offset).encode()))
    await shop.settle()
    assert set(shop.running) == {(0, 0), (0, 1)}
    shop.in_flight._early_until = 0.0
    shop.gates[0, 0].set()
    await shop.settle()
    assert len(shop.running) == 7
    await shop.in_flight.drain(0)
