"""Self-ask: a question that needs several looks is taken apart into follow-up questions (Press et al. 2022).

ask: what is missing? ─ Follow up: ... ─▶ search ─▶ ask again: intermediate answer, what is missing?
                      └ Enough ─▶ answer, with the intermediate answers as notes
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import ClassVar

from pipelines.query.answer.prompt import fenced
from pipelines.query.answer.strategies.base import NumberedSources, Piece, StrategyContext, Task, ask, search, write
from pipelines.query.retrieve.widen import fit
from schemas.query import Source
from text.words import stems

FOLLOW_UPS = 4
STEP_TOKENS = 200
FOUND_CHARS = 2_500  # of sources shown for a follow-up question

_FOLLOW_UP = re.compile(r"^\W*follow[ -]?up(?: question)?\W*:\s*(?P<text>.+)$", re.IGNORECASE | re.MULTILINE)
_INTERMEDIATE = re.compile(r"^\W*intermediate answer\W*:\s*(?P<text>.+)$", re.IGNORECASE | re.MULTILINE)


class SelfAsk:
    """As many calls of the model as there are follow-up questions, and two."""

    searches: ClassVar = True

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        library = NumberedSources.of(task.retrieved.sources)
        notes: list[str] = []
        asked: set[tuple[str, ...]] = set()
        found: Sequence[Source] = ()
        while True:
            shown = "\n".join([*notes, *([fenced(fit(found, FOUND_CHARS), task.fence)] if found else [])])
            said, step = await ask(self._means, "self-ask", task, max_tokens=STEP_TOKENS, findings=shown or "(none)")
            yield said.usage
            yield step
            answered, follow_up = _line(_INTERMEDIATE, said.text), _line(_FOLLOW_UP, said.text)
            if notes and answered:
                notes.append(f"Intermediate answer: {answered}")
            # The same question again would find the same again.
            if follow_up is None or len(asked) == FOLLOW_UPS or (key := tuple(stems(follow_up))) in asked:
                break
            asked.add(key)
            notes.append(f"Follow up: {follow_up}")
            found, step = await search(self._means, task, library, follow_up)
            yield step
            yield library.event(task)
        if not library.all:
            return
        async with aclosing(write(self._means, task, library.ranked, notes)) as pieces:
            async for piece in pieces:
                yield piece


def _line(pattern: re.Pattern[str], said: str) -> str | None:
    match = pattern.search(said)
    return " ".join(match["text"].split()) if match else None
