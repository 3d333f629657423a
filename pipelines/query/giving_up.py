"""Giving up: ends a question with an error when its stage cannot work in time, or while the site's chat is off.

query.* ─┬▶ a service is away for longer than visitors wait, or the record is a dead letter ─┬▶ answer.events: error
         └▶ the chat is switched off: before the work, or while it is under way ─────────────┴▶ query.outcomes
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog

from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.outcomes import Outcomes, StageInput, StageInputType, question_of
from pipelines.query.ports import BadTrial
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
PATIENCE = timedelta(seconds=20)  # age of a question at which its visitor gets an error while a service is away


class TooLate(Retryable):
    """The question's deadline has passed, so its visitor no longer waits."""

    code = "timeout"


def in_time(request: Question) -> None:
    """Check the deadline before the work: the message may have waited in the topic, or been redelivered.

    Raises: TooLate: `with_deadline` then ends the question.
    """
    if datetime.now(UTC) > request.deadline:
        raise TooLate("the deadline of the question has passed")


def with_deadline(
    handler: Handler,
    kind: StageInputType,
    site_prompts: SitePrompts,
    log: LogReader,
    outcomes: Outcomes,
) -> Handler:
    """The handler with a deadline: while a service is away, the visitor gets an error in time.

    The stage itself would retry for much longer, and then make a dead letter of a question that is too old.
    """

    async def handle(record: Record, sender: Sender) -> None:
        try:
            await handler(record, sender)
        except BadTrial as err:  # the operator's mistake: no dead letter, and the operator reads the message
            await fail(record, question_of(kind.decode(record.value)), sender, log, err.code, str(err))
        except Retryable as err:
            known = kind.decode(record.value)
            request = question_of(known)
            if datetime.now(UTC) < min(request.asked_at + PATIENCE, request.deadline):
                raise
            logger.warning("the question ends with an error", code=err.code, error=str(err), attempt=record.attempt)
            await _end(record, known, err.code, sender, site_prompts, log, outcomes)

    return handle


def apology(kind: StageInputType, site_prompts: SitePrompts, log: LogReader, outcomes: Outcomes) -> OnDead:
    """A callback that ends the visitor's answer with an error when its question becomes a dead letter."""

    async def end(record: Record, letter: DeadLetter, sender: Sender) -> None:
        try:
            known = kind.decode(record.value)
        except WireError:
            return  # an unreadable message names no question
        await _end(record, known, letter.code, sender, site_prompts, log, outcomes)

    return end


def while_chat_on(
    handler: Handler,
    kind: StageInputType,
    went_off: Callable[[str], asyncio.Event],
    site_prompts: SitePrompts,
    answers: LogReader,
    outcomes: Outcomes,
) -> Handler:
    """The handler, stopped while the chat of the question's site is off. `went_off`: site -> event that is set then."""

    async def handle(record: Record, sender: Sender) -> None:
        try:
            known = kind.decode(record.value)
        except WireError:  # the handler makes it a dead letter, whether the chat is on or off
            await handler(record, sender)
            return
        site = question_of(known).site
        off = went_off(site)
        if not off.is_set() and await _finished_before(off, handler(record, sender)):
            return
        logger.info("a question is not answered: the chat is switched off", site=site)
        await _end(record, known, CHAT_OFF, sender, site_prompts, answers, outcomes)

    return handle


async def _end(
    record: Record,
    known: StageInput,
    code: str,
    sender: Sender,
    site_prompts: SitePrompts,
    log: LogReader,
    outcomes: Outcomes,
) -> None:
    """End the visitor's answer with an error in their language, and send the outcome."""
    request = question_of(known)
    words = site_prompts.of(request.site).phrases.error(code, request.lang)
    await outcomes.send(known, await fail(record, request, sender, log, code, words), sender)


async def _finished_before(event: asyncio.Event, work: Awaitable[None]) -> bool:
    """Whether the work ended before the event; if not, it is cancelled. Raises what the work raises."""
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
