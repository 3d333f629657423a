"""A worker's notes about itself, for the status."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

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
