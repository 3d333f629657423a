"""Whatever a visitor asks, and whatever was said before and stands on pages, no function of ours needs long for it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from pipelines.runtime.errors import PagewireError
from prompts.loader import PromptError
from schemas.query import MAX_QUESTION
from tests.hostile.clock import quiet_seconds, seconds
from tests.hostile.functions import UNHURRIED, Call, calls, unknown
from tests.hostile.texts import UNITS, long, mixed

LIMIT = 0.05  # seconds
LIMIT_UNHURRIED = 0.25
SHORT = (24, 36)  # characters: what doubles with each shows early
MIXES = 4
TEXTS = [*(long(unit, MAX_QUESTION) for unit in UNITS), *mixed(MAX_QUESTION, MIXES)]
ORDINARY = "When is the pool open? Öffnet es um 9:30?"


def test_every_function_that_is_given_strangers_text_is_called_here() -> None:
    assert not unknown()


def test_no_question_takes_long() -> None:
    slow = [complaint for name, call in calls().items() if (complaint := _slow(name, call))]
    assert not slow, "\n".join(slow)


def test_what_takes_the_square_fails() -> None:
    assert _slow("hurt", lambda text: sum(one == other for one in text for other in text), [long("!", MAX_QUESTION)])


def _slow(name: str, call: Call, texts: Sequence[str] = TEXTS) -> str | None:
    """The text that takes longest, where one takes too long."""
    limit = LIMIT_UNHURRIED if name in UNHURRIED else LIMIT
    call(ORDINARY)  # it can, and what is read once is read
    worst, most = "", 0.0
    for size in (*SHORT, MAX_QUESTION):
        for text in texts:
            asked = partial(_quietly, call, text[:size])
            taken = seconds(asked)
            if taken > limit and (taken := quiet_seconds(asked, limit)) > max(limit, most):
                worst, most = text[:12], taken
        if worst:
            return f"{name}: {most:.3f} s for {worst!r} to {size} characters"
    return None


def _quietly(call: Call, text: str) -> None:
    """It may refuse a text, by an error that its callers expect."""
    with suppress(PagewireError, PromptError, ValueError):
        call(text)
