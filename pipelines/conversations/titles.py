"""Titles: a conversation is called by its first question until a model, where there is one, has found a better name.

    an answer is kept ─▶ (in the background) TitleWriter ─▶ still called by its question? ─▶ its title

Nobody waits for it: the visitor has the answer by then, and where no title comes of it the question stays one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from pipelines.runtime.errors import PagewireError
from schemas.conversation import StoredTurn

log = structlog.get_logger(__name__)

AT_ONCE = 20  # titles that are being written; beyond that, the question stays one


class TitleWriter(Protocol):
    """Finds titles (pipelines.query.titles.ModelTitles)."""

    async def write(self, site: str, lang: str, question: str, answer: str) -> str | None:
        """A title in the language, on one line and without markup; None: there is none."""
        ...


class Titles:
    """Writes them in the background. One per process; close it."""

    def __init__(self, writer: TitleWriter) -> None:
        self._writer = writer
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, site: str, turn: StoredTurn, keep: Callable[[str], Awaitable[object]]) -> None:
        """Look for a title of what was asked and answered; `keep` gets it, if there is one."""
        if len(self._tasks) >= AT_ONCE:
            return
        task = asyncio.create_task(self._write(site, turn, keep), name="title")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self, site: str, turn: StoredTurn, keep: Callable[[str], Awaitable[object]]) -> None:
        # What some groups alone may read must not stand in a title, which is shown whoever its visitor is by now.
        answer = "" if turn.groups else turn.answer
        try:
            title = await self._writer.write(site, turn.lang, turn.question, answer)
            if title is not None:
                await keep(title)
        except PagewireError as err:  # deleted meanwhile, or its store is away
            log.info("a title is not kept", code=err.code, error=str(err))
        except Exception:
            log.exception("a title was not written")

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
