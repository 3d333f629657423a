"""How often to retry, and how long to wait before.

No library: stamina retries functions that raise, with waits of its own. Here a failed try may be a part of an answer
(adapters.elastic.writer), has to be counted and reported (worker.guard), or brings its own wait (Retry-After).
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import TypeVar

from pipelines.runtime.errors import Retryable

Value = TypeVar("Value")
# Seconds until the next try, after the last failure and so many of them; None: no more tries.
Pause = Callable[[Retryable, int], float | None]

_SECONDS = re.compile(r"\d+(?:\.\d*)?")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long a stage or a rebuild retries a message."""

    # Tries of a message that fails alone, while others go through, before it is a dead letter (an unforeseen error) or
    # parked (a service's error).
    tries: int = 6
    # Seconds of retries after what should be over in a moment, such as a promotion; then the message is parked. The
    # stages of ingest wait without limit for a service that is away; a rebuild gives up after so long.
    retry_for: float = 900.0
    first_wait: float = 0.2
    longest_wait: float = 15.0  # the end of an outage is noticed within this time

    def wait(self, failures: int) -> float:
        """Seconds before the next try, after so many failures."""
        return backoff(failures, self.first_wait, self.longest_wait)


def doubled(failures: int, first: float, longest: float = inf) -> float:
    """Seconds: `first` after the first failure, twice as long after each further one, at most `longest`."""
    return min(longest, first * 2.0 ** min(failures - 1, 30))


def backoff(failures: int, first: float, longest: float) -> float:
    """Seconds between half and all of `doubled`, by chance: calls that failed together must not retry together."""
    whole = doubled(failures, first, longest)
    return random.uniform(whole / 2, whole)  # noqa: S311 - spreads load, guards no secret


async def patiently(work: Callable[[], Awaitable[Value]], pause: Pause) -> Value:
    """Repeat `work` until it succeeds or `pause` ends it. Raises: Retryable: the last failure."""
    failures = 0
    while True:
        try:
            return await work()
        except Retryable as err:
            failures += 1
            wait = pause(err, failures)
            if wait is None:
                raise
        await asyncio.sleep(wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3): a number, or a date by the server's clock; None without it.

    Args:
        headers: of its answer, in small letters or for any spelling.
    """
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    until = http_date(value)
    if until is None:
        return None
    return max(0.0, (until - (http_date(headers.get("date", "")) or datetime.now(UTC))).total_seconds())


def http_date(text: str) -> datetime | None:
    """A date as servers write it; None if it is none."""
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)  # "-0000" (RFC 5322)
