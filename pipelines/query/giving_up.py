"""Giving up: a question that is not answered, since its stage cannot work in time or the site's chat is switched off.

query.* ─┬▶ a service is away for longer than visitors wait, or the record is a dead letter ─┬▶ answer.events: error
         └▶ the chat is switched off: before the work, or while it is under way ─────────────┴▶ query.outcomes
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog

from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.outcomes import Known, KnownKind, Outcomes, question_of
from pipelines.query.ports import NotTried
from pipelines.query.publish import fail
from pipelines.runtime.bus import LogReader
from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, OnDead, Sender
from schemas.base import WireError
from schemas.query import Question

logger = structlog.get_logger(__name__)

CHAT_OFF = "chat-off"
PATIENCE = timedelta(seconds=20)  # of a question while a service is away; then its visitor gets an error


class TooLate(Retryable):
    """The question's deadline has passed: its visitor waits no more."""

    code = "timeout"


def in_time(request: Question) -> None:
    """Before work is put into a question: it may have waited, or have been redelivered.

    Raises: TooLate: `with_deadline` gives it up.
    """
    if datetime.now(UTC) > request.deadline:
        raise TooLate("the deadline of the question has passed")


def with_deadline(
    handler: Handler,
    kind: KnownKind,
    site_prompts: SitePrompts,
    log: LogReader,
    outcomes: Outcomes,
) -> Handler:
    """The handler; where a service is away, the visitor gets an error while they still wait.

    The stage itself would retry for much longer, and then keep a dead letter of a question that is too old.
    """

    async def handle(record: Record, sender: Sender) -> None:
        try:
            await handler(record, sender)
        except NotTried as err:  # a trial's own doing: no dead letter, and said to who tries it out as it is
            await fail(record, question_of(kind.decode(record.value)), sender, log, err.code, str(err))
        except Retryable as err:
            known = kind.decode(record.value)
            request = question_of(known)
            if datetime.now(UTC) < min(request.asked_at + PATIENCE, request.deadline):
                raise
            logger.warning("a question is given up", code=err.code, error=str(err), attempt=record.attempt)
            await _end(record, known, err.code, sender, site_prompts, log, outcomes)

    return handle


def apology(kind: KnownKind, site_prompts: SitePrompts, log: LogReader, outcomes: Outcomes) -> OnDead:
    """End the visitor's answer in plain words when their question ended as a dead letter."""

    async def tell(record: Record, letter: DeadLetter, sender: Sender) -> None:
        try:
            known = kind.decode(record.value)
        except WireError:
            return  # whose question it was is unknown
        await _end(record, known, letter.code, sender, site_prompts, log, outcomes)

    return tell


def while_chat_on(
    handler: Handler,
    kind: KnownKind,
    went_off: Callable[[str], asyncio.Event],
    site_prompts: SitePrompts,
    answers: LogReader,
    outcomes: Outcomes,
) -> Handler:
    """The handler, but only while the chat of the question's site is on; `went_off`: set while a site's chat is off."""

    async def handle(record: Record, sender: Sender) -> None:
        try:
            known = kind.decode(record.value)
        except WireError:  # a dead letter, chat or no chat
            await handler(record, sender)
            return
        site = question_of(known).site
        off = went_off(site)
        if not off.is_set() and await _before(off, handler(record, sender)):
            return
        logger.info("a question is not answered: the chat is switched off", site=site)
        await _end(record, known, CHAT_OFF, sender, site_prompts, answers, outcomes)

    return handle


async def _end(
    record: Record,
    known: Known,
    code: str,
    sender: Sender,
    site_prompts: SitePrompts,
    log: LogReader,
    outcomes: Outcomes,
) -> None:
    """End the visitor's answer in plain words, and say the outcome."""
    request = question_of(known)
    words = site_prompts.of(request.site).phrases.error(code, request.lang)
    await outcomes.say(known, await fail(record, request, sender, log, code, words), sender)


async def _before(event: asyncio.Event, work: Awaitable[None]) -> bool:
    """Whether the work came to its end before the event; else it is cancelled. Its errors go on as they are."""
    working, waiting = asyncio.ensure_future(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        working.cancel()
        waiting.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
