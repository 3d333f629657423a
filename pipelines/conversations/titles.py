"""Titles: a conversation's title is its first question until a model, if there is one, has written a better one.

    answer stored ─▶ (in the background) a model ─▶ is the title still the question? ─▶ new title

It runs after the visitor has the answer. Without a result the question stays the title.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from pipelines.runtime.errors import PagewireError
from schemas.conversation import StoredTurn

log = structlog.get_logger(__name__)

AT_ONCE = 20  # titles in work; beyond that, the question stays the title


# Site, language, question and answer to a title on one line and without markup; None: no title.
WriteTitle = Callable[[str, str, str, str], Awaitable[str | None]]


class Titles:
    """Writes titles in the background. One per process; close it."""

    def __init__(self, write: WriteTitle) -> None:
        self._write_title = write
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, site: str, turn: StoredTurn, keep: Callable[[str], Awaitable[object]]) -> None:
        """Write a title of the turn; `keep` stores it, if there is one."""
        if len(self._tasks) >= AT_ONCE:
            return
        task = asyncio.create_task(self._write(site, turn, keep), name="title")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self, site: str, turn: StoredTurn, keep: Callable[[str], Awaitable[object]]) -> None:
        # An answer for some access groups must not show in the title, because the visitor may lose the groups.
        answer = "" if turn.groups else turn.answer
        try:
            title = await self._write_title(site, turn.lang, turn.question, answer)
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
