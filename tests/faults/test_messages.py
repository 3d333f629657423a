"""What a message or a handler can do to a worker: no order is lost, no order blocks the others."""

from __future__ import annotations

import json
import os
import signal

from adapters.kafka import broker
from schemas.topics import CHANGES, CHUNKS, MAX_MESSAGE_BYTES, REQUESTS, dead_letter_topic
from tests.faults.rig import Rig, until
from tests.faults.worker import Echo


async def test_errors_are_retried_and_nothing_is_lost(rig: Rig) -> None:
    await rig.order((1, "ok"), (2, "crash 2"), (3, "retryable 4"), (4, "cancelled 1"), (5, "ok"))
    rig.worker()
    await rig.settled()
    assert rig.done() == dict.fromkeys(range(1, 6), 1)
    assert await rig.buried() == []
    attempts = {line["id"]: line["attempt"] for line in rig.lines("begin")}
    assert attempts == {1: 1, 2: 3, 3: 5, 4: 2, 5: 1}


async def test_hopeless_messages_become_dead_letters_untouched(rig: Rig) -> None:
    headers = (("pagewire-trace", b"t-1"), ("twice", b"a"), ("twice", b"b"), ("null", None))
    poison: dict[bytes, bytes | None] = {b"bytes": b"\xff\x00poison", b"empty": b"", b"null": None}
    for key, value in poison.items():
        await rig.sender.send_bytes(CHANGES, key, value, headers)
    await rig.order((1, "permanent"), (2, "crash 99"), (3, "ok"))
    rig.worker()
    # Only what others do after it has failed tells that it fails alone.
    await until("it was tried", lambda: any(line["id"] == 2 for line in rig.lines("begin")))
    await rig.order((4, "ok"))
    await rig.settled()
    assert rig.lost(but=(1, 2)) == set()
    buried = {letter.key: letter for letter in await rig.buried()}
    assert len(buried) == len(poison) + 2
    for key, value in poison.items():
        assert (buried[key].value, buried[key].headers) == (value, headers)
        assert buried[key].letter.code == "bad-message"
        assert buried[key].letter.attempts == 1
    refused, crashed = buried[b"key-1"], buried[b"key-2"]
    assert json.loads(refused.value or b"") == {"id": 1, "do": "permanent"}
    assert (refused.letter.code, refused.letter.message, refused.letter.attempts) == ("refused", "never", 1)
    assert refused.letter.topic.endswith(CHANGES.name)
    assert refused.letter.stage == "faulty"
    assert crashed.letter.code == "unexplained"
    assert crashed.letter.attempts > 3
    assert crashed.letter.error_class == "builtins.ZeroDivisionError"
    assert crashed.letter.first_failed_at < crashed.letter.last_failed_at


async def test_a_hanging_handler_is_cut_off_and_tried_again(rig: Rig) -> None:
    await rig.order((1, "hang 1"), (2, "swallow"), (3, "ok"))
    rig.worker(try_timeout=0.5, tries=2)
    await until("it was cut off", lambda: bool(rig.lines("swallowed")))
    await rig.order((4, "ok"))
    await rig.settled()
    assert rig.lost(but=(2,)) == set()
    # It ate its cut-off and returned as if all were well; that must not count as done.
    (letter,) = await rig.buried()
    assert letter.key == b"key-2"
    assert "0.5 s" in letter.letter.message


async def test_a_site_in_trouble_is_parked_and_comes_back_in_another_process(rig: Rig) -> None:
    await rig.order((1, "broken", "broken:en:1"), (2, "ok"), (3, "broken", "broken:en:3"), (4, "ok"))
    worker = rig.worker()
    await rig.settled()  # whatever is parked holds up nobody
    assert set(rig.done()) == {2, 4}
    worker.send_signal(signal.SIGTERM)
    assert await rig.ended(worker) == 0
    rig.effects_file.with_suffix(".gate").touch()
    rig.worker()
    await until("the parked ones are back", lambda: set(rig.done()) == {1, 2, 3, 4})

    async def returned() -> bool:
        marks = [m for m in await rig.messages(dead_letter_topic(CHANGES)) if b"returned" in dict(m.headers).values()]
        return len(marks) == 2

    await until("they are marked as returned", returned)
    assert set(rig.done().values()) == {1}


async def test_a_message_that_kills_its_worker_is_buried_after_three_deaths(rig: Rig) -> None:
    await rig.order((1, "ok"), (2, "kills"), *((number, "ok") for number in range(3, 20)))
    for _ in range(3):
        assert await rig.ended(rig.worker()) == -signal.SIGKILL
    assert rig.lost(but=(2,)) == set()  # its neighbours did not have to wait for its end
    rig.worker()
    await rig.settled()
    (letter,) = await rig.buried()
    assert (letter.key, letter.letter.code) == (b"key-2", "ends-worker")


async def test_a_message_that_spins_is_buried_and_its_worker_goes_on(rig: Rig) -> None:
    await rig.order((1, "ok"), (2, "spins"), *((number, "ok") for number in range(3, 20)))
    worker = rig.worker()
    await rig.settled()
    (letter,) = await rig.buried()
    assert (letter.key, letter.letter.code, letter.letter.attempts) == (b"key-2", "step-too-long", 1)
    assert rig.lost(but=(2,)) == set()
    assert worker.poll() is None  # the same process has done it all
    assert {effect["pid"] for effect in rig.lines("effect")} == {worker.pid}


async def test_two_stages_in_one_process_hand_on_with_the_trace(rig: Rig) -> None:
    order = json.dumps({"id": 1, "do": "ok"}).encode()
    await rig.sender.send_bytes(CHANGES, b"k", order, (("pagewire-trace", b"trace-7"),))
    await rig.sender.send(REQUESTS, "k", Echo(id=2), trace_id="trace-8")
    worker = rig.worker()
    await until("both have arrived", lambda: len(rig.lines("arrived")) == 2)
    arrived = sorted((line["id"], line["topic"].partition(".")[2], line["trace"]) for line in rig.lines("arrived"))
    assert arrived == [(1, CHUNKS.name, "trace-7"), (2, REQUESTS.name, "trace-8")]
    worker.send_signal(signal.SIGTERM)
    assert await rig.ended(worker) == 0
    assert [len(rig.lines(what)) for what in ("setup", "ready", "teardown")] == [1, 1, 1]


async def test_the_largest_message_goes_through(rig: Rig) -> None:
    # Random, so that compression does not help.
    filler = os.urandom(MAX_MESSAGE_BYTES // 2 - 100).hex()
    order = json.dumps({"id": 1, "do": "ok", "filler": filler}).encode()
    assert MAX_MESSAGE_BYTES - 300 < len(order) <= MAX_MESSAGE_BYTES
    poison = b"\xff" + os.urandom(MAX_MESSAGE_BYTES - 1)
    await rig.sender.send_bytes(CHANGES, b"big", order, ())
    await rig.sender.send_bytes(CHANGES, b"big", poison, ())
    rig.worker()
    await rig.settled()
    assert rig.done() == {1: 1}
    (letter,) = await rig.buried()
    assert letter.value == poison


async def test_keys_stay_in_order_while_others_overtake(rig: Rig) -> None:
    await rig.order((1, "retryable 3", "a"), *((n, "ok", "a") for n in range(2, 6)))
    await rig.order(*((n, "ok") for n in range(6, 30)))
    rig.worker()
    await rig.settled()
    finished = [line["id"] for line in rig.lines("effect")]
    assert [n for n in finished if n < 6] == [1, 2, 3, 4, 5]
    assert finished[0] != 1
    assert rig.lost() == set()


async def test_a_stuck_message_holds_back_its_own_partition_only(rig: Rig) -> None:
    await rig.order((0, "gate", "stuck"), *((n, "ok", "stuck") for n in range(1, 40)))
    await rig.order(*((n, "ok") for n in range(40, 140)))
    rig.worker(window=4, try_timeout=600)
    await rig.began(0)
    (stuck,) = {line["partition"] for line in rig.lines("begin") if line["id"] == 0}
    (other,) = {0, 1} - {stuck}
    async with broker(rig.settings) as client:
        ends = await client.ends(rig.partitions(CHANGES))

        async def other_is_done() -> bool:
            return (await rig.committed()).get(other) == ends[rig.partitions(CHANGES)[other]]

        await until("the other partition is done", other_is_done)
    behind = [line for line in rig.lines("begin") if line["partition"] == stuck]
    assert all(line["offset"] < 4 for line in behind)  # the window, counted from the stuck message
    assert stuck not in await rig.committed()
    rig.open_gate()
    await rig.settled()
    assert rig.done() == dict.fromkeys(range(140), 1)
