"""When a standstill is one."""

from __future__ import annotations

import pytest
from aiokafka import TopicPartition

from pipelines.worker.watchdog import Ends, Stall

TP = TopicPartition("t", 0)


class Look:
    """A stall with a limit of 10 s, looked at every 4 s."""

    def __init__(self) -> None:
        self.stall = Stall(10.0)
        self.now = 0.0

    def __call__(self, *, at: int = 5, behind: int = 3, busy: bool = False) -> float | None:
        self.now += 4.0
        return self.stall.looked(self.now, {TP: at}, {TP: behind}, busy)


def test_messages_wait_and_nothing_moves() -> None:
    look = Look()
    assert [look() for _ in range(5)] == [None, None, None, None, 12.0]


@pytest.mark.parametrize("alive", [{"at": 6}, {"behind": 0}, {"busy": True}])
def test_any_sign_of_life_starts_the_clock_again(alive: dict[str, int]) -> None:
    look = Look()
    for _ in range(3):
        look()
    look(**alive)  # type: ignore[arg-type]
    # Back at the old offset: that is a movement too, and the clock starts at the look after.
    assert [look() for _ in range(3)] == [None, None, None]


def test_not_being_able_to_look_is_no_standstill() -> None:
    look = Look()
    for _ in range(4):
        look()
    look.stall.could_not_look()
    assert [look() for _ in range(3)] == [None, None, None]
    assert look() == 12.0


def test_a_log_that_became_shorter_is_another_one() -> None:
    ends = Ends()
    other = TopicPartition("u", 0)
    assert [ends.looked({TP: at, other: 7}) for at in (0, 5, 5, 8)] == [None] * 4
    assert ends.looked({TP: 2, other: 9}) == "t"
