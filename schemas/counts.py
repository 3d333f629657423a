"""One process's counts of a period: on `limits.rates` and `limits.budgets`."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveInt

from schemas.base import Message


class Counts(Message):
    """A process's own counts of a period so far, for changed names. The greatest count of a name is the newest."""

    process: str = Field(description="A random name, new at each start.")
    period: NonNegativeInt = Field(description="Which one since 1970, of so many seconds each.")
    seconds: PositiveInt = Field(description="Of a period.")
    counts: dict[str, NonNegativeInt] = Field(description="Name -> count. Names of visitors and addresses are hashed.")
