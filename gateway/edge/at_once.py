"""Bounds: how much is in hand at once of what costs memory before it is known who sends it; what is worked out once."""

from __future__ import annotations

import asyncio
import math
from asyncio import Lock
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Generic, TypeVar

from gateway.edge.problems import Problem
from gateway.edge.rates import network

WAIT = 2  # seconds until it pays to come again
T = TypeVar("T")


class AtOnce:
    """`most` of all addresses together, and a part of them of each: one address leaves the others theirs."""

    def __init__(self, most: int, of_one: int) -> None:
        self._most = most
        self._of_one = of_one
        self._in_hand: Counter[str] = Counter()

    @contextmanager
    def one(self, address: str) -> Iterator[None]:
        """Around one of them. Raises: Problem: 429."""
        name = network(address)
        if self._in_hand[name] >= self._of_one or self._in_hand.total() >= self._most:
            raise Problem(429, "too-many-requests", "too many at once; try again", headers={"Retry-After": str(WAIT)})
        self._in_hand[name] += 1
        try:
            yield
        finally:
            self._in_hand[name] -= 1
            self._in_hand += Counter()  # forgets those that have none


class InTurn(AtOnce):
    """The same for names that are no addresses; of each name, one works at a time."""

    def __init__(self, most: int, of_one: int) -> None:
        super().__init__(most, of_one)
        self.turns: defaultdict[str, Lock] = defaultdict(Lock)  # of names in the configuration only


class Cached(Generic[T]):
    """Made at most once in `seconds`, by default once; who asks while it is made waits for the same.

    Args:
        clock: in seconds.
    """

    def __init__(
        self, make: Callable[[], Awaitable[T]], seconds: float = math.inf, clock: Callable[[], float] = monotonic
    ) -> None:
        self._make = make
        self._seconds = seconds
        self._clock = clock
        self._lock = asyncio.Lock()
        self._made: tuple[float, T] | None = None

    async def get(self) -> T:
        """Raises: as `make`, which the next who asks tries again."""
        async with self._lock:
            if self._made is None or self._clock() >= self._made[0]:
                value = await self._make()
                self._made = (self._clock() + self._seconds, value)
            return self._made[1]
