"""Suggested questions: what a chat offers before the first question, where its site names none.

asked for ─▶ kept, if not older than an hour and no import has ended since; where there are none, tried again sooner
          └▶ a task asks what its pages propose, as a visitor would, until three are answered from their own page

No model writes these answers, and nothing is logged or counted. A request never waits for them: until they are made,
there are none.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Protocol

import structlog

from pipelines.conversations.ask import Asker
from pipelines.runtime.errors import PagewireError
from schemas.answer import Answered
from schemas.query import Question, Trial

log = structlog.get_logger(__name__)

SUGGESTED = 3
TRIED = 30  # questions that are asked at most, for a site and a language
AGE = 3_600.0  # seconds
RETRY = 15.0  # seconds after which it is tried again where nothing was found; each time twice as many, up to AGE
PATIENCE = 20.0  # seconds for an answer
ID_BYTES = 16


class Proposal(Protocol):
    """A question that its page should answer."""

    @property
    def page_id(self) -> str: ...

    @property
    def question(self) -> str: ...


# What a site's pages for everybody propose in a language, the best first. Raises: Retryable.
Propose = Callable[[str, str], Awaitable[Sequence[Proposal]]]


@dataclass
class _Made:
    questions: tuple[str, ...] = ()
    good_until: float = 0.0
    wait: float = RETRY  # seconds until the next try, where nothing is found
    task: asyncio.Task[None] | None = None


class Suggestions:
    """One per process; close it last.

    Args:
        importing: whether many pages of a site are being read in.
        now: the time that all gateways go by.
    """

    def __init__(
        self, propose: Propose, asker: Asker, importing: Callable[[str], bool], now: Callable[[], datetime]
    ) -> None:
        self._propose = propose
        self._asker = asker
        self._importing = importing
        self._now = now
        self._made: dict[tuple[str, str], _Made] = {}
        self._changing: set[str] = set()  # sites that were being imported when they were looked at last
        self._one_at_a_time = asyncio.Lock()

    def of(self, site: str, lang: str) -> tuple[str, ...]:
        """The questions that are known. New ones are made where these are too old; not while pages are read in."""
        made = self._made.setdefault((site, lang), _Made())
        if self._importing(site):
            self._changing.add(site)
            return made.questions
        if site in self._changing:
            self._changing.discard(site)
            for (of, _), each in self._made.items():
                each.good_until, each.wait = (0.0, RETRY) if of == site else (each.good_until, each.wait)
        if made.task is None and monotonic() >= made.good_until:
            made.task = asyncio.create_task(self._make(site, lang, made), name=f"suggested questions of {site}")
        return made.questions

    async def aclose(self) -> None:
        for made in self._made.values():
            if made.task is not None:
                made.task.cancel()
                with suppress(asyncio.CancelledError):
                    await made.task

    async def _make(self, site: str, lang: str, made: _Made) -> None:
        found = False
        try:
            async with self._one_at_a_time:
                made.questions = await self._answered(site, lang, (await self._propose(site, lang))[:TRIED])
            found = bool(made.questions)
        except (PagewireError, TimeoutError) as err:
            log.warning("no questions could be suggested", site=site, lang=lang, error=repr(err))
        finally:
            # Pages may be on their way, or a server is away.
            made.good_until, made.task = monotonic() + (AGE if found else made.wait), None
            made.wait = RETRY if found else min(2 * made.wait, AGE)

    async def _answered(self, site: str, lang: str, proposed: Iterable[Proposal]) -> tuple[str, ...]:
        """Those that are answered from their own page, one of each."""
        found: dict[str, str] = {}
        for each in proposed:
            if each.page_id in found:
                continue
            answer = await self._answer(site, lang, each.question)
            cited = [source.page_id for source in answer.sources if source.cited] if answer else []
            if answer and answer.certainty in ("said", "place") and cited[:1] == [each.page_id]:
                found[each.page_id] = each.question
                if len(found) == SUGGESTED:
                    break
        return tuple(found.values())

    async def _answer(self, site: str, lang: str, question: str) -> Answered | None:
        """As a visitor without groups gets it; a trial is neither kept nor logged. Raises: Retryable, TimeoutError."""
        at = self._now()
        asked = Question(
            request_id=self._asker.new_id(),
            conversation_id=secrets.token_urlsafe(ID_BYTES),
            site=site,
            lang=lang,
            question=question,
            trial=Trial(strategy="quote"),
            asked_at=at,
            deadline=at + timedelta(seconds=PATIENCE),
        )
        async with asyncio.timeout(PATIENCE):
            events = [followed.event.event async for followed in self._asker.ask(asked)]
        return next((event for event in events if isinstance(event, Answered)), None)
