"""The few sentences that the edge itself says to a visitor; they stand with all the others in `prompts/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import structlog

from prompts.loader import PromptError
from prompts.phrases import Phrases

log = structlog.get_logger(__name__)

Trouble = Literal["timeout", "unavailable", "internal", "chat-off"]


@cache
def _phrases(folder: Path | None) -> Phrases:
    """Ours, where what the folder holds cannot be read: its workers do not even start."""
    try:
        return Phrases.load(folder)
    except PromptError as err:
        log.warning("a site's own sentences cannot be read; ours are said", error=str(err))
        return Phrases.load()


def message(trouble: Trouble, lang: str, folder: Path | None = None) -> str:
    """In `lang`, or in English where we do not speak it. `folder`: of a site that says some things its own way."""
    return _phrases(folder).error("error" if trouble == "internal" else trouble, lang)
