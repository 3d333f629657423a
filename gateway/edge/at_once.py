"""How much is in hand at once of what costs memory before it is known who sends it."""

from __future__ import annotations

from asyncio import Lock
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.edge.problems import Problem
from gateway.edge.rates import network

WAIT = 2  # seconds until it pays to come again


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
