"""What is worked out for everybody at once, however many ask."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


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
