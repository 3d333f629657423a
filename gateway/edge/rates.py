"""How often a visitor may ask: counted in fixed windows, in this process.

`limits` was tried: its in-memory storage walks all visitors on every hit and starts a task or thread for it. A
fixed window needs one dict, forgets everybody when the window ends, and lets at most two windows' worth through at
a border, which is all that a guard against a runaway page has to do. Several gateways each count for themselves.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal

from gateway.edge.problems import Problem

DAY = 86_400  # seconds
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": DAY}
ADDRESS_FACTOR = 5  # a classroom asks from one address

What = Literal["ask", "search", "token", "stop", "feedback", "conversation", "resume", "sign-in"]
TIMES: dict[What, int] = {"conversation": 6, "resume": 6}  # as often as a question: reading costs little


class DailyBudgets:
    """Questions that a site's visitors may ask in a day, all together. `clock` gives Unix seconds; days are UTC's."""

    def __init__(self, limits: Mapping[str, int | None], clock: Callable[[], float] = time.time) -> None:
        """`limits`: by site; None is no limit."""
        self._limits = limits
        self._clock = clock
        self._day = 0
        self._asked: Counter[str] = Counter()

    def spend(self, site: str) -> None:
        """Count one question.

        Raises:
            Problem: 429, with the seconds until tomorrow.
        """
        now = self._clock()
        day = int(now // DAY)
        if day != self._day:
            self._day = day
            self._asked.clear()
        limit = self._limits.get(site)
        if limit is not None and self._asked[site] >= limit:
            wait = int((day + 1) * DAY - now) + 1
            raise Problem(
                429,
                "daily-budget",
                f"all {limit:,} questions of the day have been asked on the site {site!r}",
                headers={"Retry-After": str(wait)},
            )
        self._asked[site] += 1


class Rates:
    """`rate` is settings.visitor_rate, such as `20/minute`; `clock` gives seconds."""

    def __init__(self, rate: str, clock: Callable[[], float] = time.monotonic) -> None:
        count, _, unit = rate.partition("/")
        self._limit = int(count)
        self._window = SECONDS[unit]
        self._clock = clock
        self._current = 0
        self._hits: Counter[tuple[What, str, str]] = Counter()

    def count(self, what: What, address: str, visitor: str | None = None) -> None:
        """Count one act of a visitor.

        Raises:
            Problem: 429, with the seconds to wait.
        """
        now = self._clock()
        window = int(now // self._window)
        if window != self._current:
            self._current = window
            self._hits.clear()
        allowed = self._limit * TIMES.get(what, 1)
        budgets = [((what, "address", address), allowed * ADDRESS_FACTOR)]
        if visitor is not None:
            budgets.append(((what, "visitor", visitor), allowed))
        if any(self._hits[key] >= limit for key, limit in budgets):
            wait = int((window + 1) * self._window - now) + 1
            raise Problem(
                429,
                "too-many-requests",
                f"too many requests; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )
        for key, _ in budgets:
            self._hits[key] += 1
