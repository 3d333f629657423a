"""How long to wait before the next try."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.retry import RetryPolicy, backoff, doubled, patiently, retry_after


def test_waits_double_up_to_the_longest() -> None:
    assert [doubled(failures, 0.5, 3.0) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert doubled(3, 1.0) == 4.0
    assert doubled(10_000, 1.0, 15.0) == 15.0


def test_what_failed_together_does_not_come_back_together() -> None:
    waits = {backoff(3, 0.5, 30.0) for _ in range(100)}
    assert len(waits) > 90
    assert all(1.0 <= wait <= 2.0 for wait in waits)
    assert min(waits) < 1.2
    assert max(waits) > 1.8


def test_a_policy_waits_at_most_so_long() -> None:
    policy = RetryPolicy(tries=3, retry_for=60.0, first_wait=0.2, longest_wait=1.0)
    assert 0.1 <= policy.wait(1) <= 0.2
    assert 0.5 <= policy.wait(50) <= 1.0


def failing(times: int, error: Exception) -> Callable[[], object]:
    """Work that fails so often before it is done."""
    left = [error] * times

    async def work() -> str:
        if left:
            raise left.pop()
        return "done"

    return work


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return waits


async def test_work_is_done_again_until_it_works(slept: list[float]) -> None:
    told: list[tuple[str, int]] = []

    def pause(err: Retryable, failures: int) -> float:
        told.append((str(err), failures))
        return 10.0 * failures

    assert await patiently(failing(2, Retryable("away")), pause) == "done"
    assert told == [("away", 1), ("away", 2)]
    assert slept == [10.0, 20.0]


async def test_after_the_last_try_its_error_is_raised(slept: list[float]) -> None:
    with pytest.raises(Retryable, match="away"):
        await patiently(failing(3, Retryable("away")), lambda err, failures: 1.0 if failures < 3 else None)
    assert slept == [1.0, 1.0]


async def test_what_is_wrong_for_good_is_not_tried_again(slept: list[float]) -> None:
    with pytest.raises(Permanent):
        await patiently(failing(1, Permanent("no")), lambda err, failures: 1.0)
    assert slept == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.25 "}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:30:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 120.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:30:00 -0000", "date": "Wed, 21 Oct 2026 07:31:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:30:00 GMT"}, 0.0),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "9999999999"}, 9_999_999_999.0),
        ({"retry-after": "Wed, 21 Oct 99999999 07:30:00 GMT"}, None),
        ({}, None),
    ],
)
def test_a_server_says_when_to_come_again(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
