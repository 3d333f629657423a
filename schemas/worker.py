"""What a worker says of itself to those who ask how the system is."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Message

PAUSES_KEY = "stages"  # one key, so one partition to read
CUTS_KEY = "cuts"


class PauseNote(Message):
    """A stage of a worker waits for a service or a setting; said again while it does, and once when it goes on.

    Under the key `cuts`: messages were deleted before the stage had read them; said once.
    """

    worker: str = Field(description="Host and process.")
    stage: str
    lane: Literal["save", "bulk"] | None = None
    code: str
    reason: str
    since: AwareDatetime
    at: AwareDatetime
    over: bool = Field(default=False, description="It goes on.")
