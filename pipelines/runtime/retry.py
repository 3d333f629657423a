"""How long a message is tried before it is a dead letter."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """How long and how often. Seconds."""

    tries: int
    retry_for: float
    first_wait: float = 0.2
    longest_wait: float = 15.0  # an outage's end is noticed this late at most

    def wait(self, failures: int) -> float:
        """Exponential with jitter: between half and all of first_wait * 2^(failures-1), capped."""
        longest = min(self.longest_wait, self.first_wait * 2.0 ** min(failures - 1, 30))
        return random.uniform(longest / 2, longest)  # noqa: S311 - spreads load, guards no secret
