"""What a message says of itself in its headers, by the names under which the topics keep them for ever."""

from __future__ import annotations

import pytest

from pipelines.runtime.record import Headers, Lane, Record, in_lane


def record(headers: Headers, offset: int = 9) -> Record:
    return Record("p.cms.changes", 1, offset, b"k", b"v", headers)


def test_the_trace_of_the_sender_goes_on() -> None:
    assert record((("pagewire-trace", b"first"), ("own", b"1"), ("pagewire-trace", b"last"))).trace_id == "last"
    assert record((("pagewire-trace", b"\xff1"),)).trace_id == "\ufffd1"


@pytest.mark.parametrize("headers", [(), (("pagewire-trace", b""),), (("pagewire-trace", None),)])
def test_a_message_without_a_trace_has_the_same_one_at_every_replay_and_no_other_has_it(headers: Headers) -> None:
    assert record(headers).trace_id == record(headers).trace_id
    assert record(headers).trace_id != record(headers, offset=10).trace_id


@pytest.mark.parametrize(("lane", "headers"), [("bulk", (("pagewire-lane", b"bulk"),)), ("save", ())])
def test_bulk_work_says_so_and_a_save_says_nothing(lane: Lane, headers: Headers) -> None:
    assert in_lane((), lane) == headers
    assert record(headers).lane == lane
