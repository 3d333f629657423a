"""The few sentences that the edge itself says to a visitor; they stand with all the others in `prompts/`."""

from __future__ import annotations

from functools import cache
from typing import Literal

from prompts.phrases import Phrases

Trouble = Literal["timeout", "unavailable", "internal"]


@cache
def _phrases() -> Phrases:
    return Phrases.load()


def message(trouble: Trouble, lang: str) -> str:
    """In `lang`, or in English where we do not speak it."""
    return _phrases().error("error" if trouble == "internal" else trouble, lang)
