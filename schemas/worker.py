"""Notes of a process about itself: a paused stage, for the status, and counts (`limits.rates`, `limits.budgets`)."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field, NonNegativeInt, PositiveInt

from schemas.base import Message

PAUSES_KEY = "stages"  # one key, so one partition to read
CUTS_KEY = "cuts"


class PauseNote(Message):
    """A stage of a worker is paused; sent periodically during the pause, and once at its end.

    Under the key `cuts`: messages were deleted before the stage had read them; sent once.
    """

    worker: str = Field(description="Host and process.")
    stage: str
    lane: Literal["save", "bulk"] | None = None
    code: str
    reason: str
    since: AwareDatetime
    at: AwareDatetime
    over: bool = Field(default=False, description="It goes on.")


class Counts(Message):
    """A process's own counts of a period so far, for changed names. The greatest count of a name is the newest."""

    process: str = Field(description="A random name, new at each start.")
    period: NonNegativeInt = Field(description="Which one since 1970, of so many seconds each.")
    seconds: PositiveInt = Field(description="Of a period.")
    counts: dict[str, NonNegativeInt] = Field(description="Name -> count. Names of visitors and addresses are hashed.")
