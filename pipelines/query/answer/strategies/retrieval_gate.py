"""Retrieval gate: the model first says whether the website must be looked at, and for what.

decide ─ NO ──────────────▶ a courtesy, from nothing but the conversation
       └ SEARCH: question ─▶ what was retrieved, and what that question finds ─▶ answer
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar

from pipelines.query.answer.strategies.base import (
    NumberedSources,
    Piece,
    StrategyContext,
    Task,
    ask,
    search,
    write,
)
from pipelines.query.answer.strategies.courtesy import Courtesy
from text.words import stems

DECISION_TOKENS = 80

_NO = re.compile(r"\W*no\W*", re.IGNORECASE)
_SEARCH = re.compile(r"\W*search\s*[:\[(][\s*_]*(?P<query>[^\n\])]+)", re.IGNORECASE)


class RetrievalGate:
    """Two calls of the model. What is no decision counts as: search for the question as it is."""

    searches: ClassVar = True

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        decided, step = await ask(self._means, "decide", task, max_tokens=DECISION_TOKENS)
        yield decided.usage
        yield step
        library = NumberedSources.of(task.retrieved.sources)
        if _NO.fullmatch(decided.text.strip()):
            writing = Courtesy(self._means).run(task)
        else:
            query = decision(decided.text)
            if query and stems(query) != stems(task.question):
                found, step = await search(self._means, task, library, query)
                yield step
                if found:
                    yield library.event(task)
            if not library.all:
                return
            writing = write(self._means, task, library.ranked)
        async with aclosing(writing) as pieces:
            async for piece in pieces:
                yield piece


def decision(said: str) -> str | None:
    """What the model wants to search for."""
    match = _SEARCH.search(said)
    return " ".join(match["query"].split()).strip("\"'“”") if match else None
