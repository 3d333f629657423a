"""Giving up: what becomes of a question whose stage cannot do its work while the visitor waits.

query.* ─▶ a service is away for longer than visitors wait, or the record is a dead letter ─▶ answer.events: error
                                                                                            └▶ query.outcomes
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.outcomes import Known, Outcomes, question_of
from pipelines.query.ports import NotTried
from pipelines.query.publish import fail
from pipelines.query.settings import QuerySettings
from pipelines.runtime.bus import LogReader
from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, OnDead, Sender
from schemas.base import WireError
from schemas.query import Question, Rephrased, Retrieved

logger = structlog.get_logger(__name__)


class TooLate(Retryable):
    """The question's deadline has passed: nobody waits for the answer any more."""

    code = "timeout"


def in_time(request: Question) -> None:
    """Before work is put into a question: it may have waited, or have been redelivered.

    Raises:
        TooLate: `impatient` gives it up.
    """
    if datetime.now(UTC) > request.deadline:
        raise TooLate("the deadline of the question has passed")


def impatient(
    handler: Handler,
    read: Callable[[Record], Known],
    settings: QuerySettings,
    site_prompts: SitePrompts,
    log: LogReader,
    outcomes: Outcomes,
) -> Handler:
    """The handler, but what a service that is away does to a question is told to its visitor while they still wait.

    The stage itself would retry for much longer, and then keep a dead letter of what nobody wants to know any more.
    """
    patience = timedelta(seconds=settings.question_patience)

    async def handle(record: Record, sender: Sender) -> None:
        try:
            await handler(record, sender)
        except NotTried as err:  # a trial's own doing: no dead letter, and said to who tries it out as it is
            await fail(record, question_of(read(record)), sender, log, err.code, str(err))
        except Retryable as err:
            known = read(record)
            request = question_of(known)
            if datetime.now(UTC) < min(request.asked_at + patience, request.deadline):
                raise
            logger.warning("a question is given up", code=err.code, error=str(err), attempt=record.attempt)
            words = site_prompts.of(request.site).phrases.error(err.code, request.lang)
            await outcomes.say(known, await fail(record, request, sender, log, err.code, words), sender)

    return handle


def apology(read: Callable[[Record], Known], site_prompts: SitePrompts, log: LogReader, outcomes: Outcomes) -> OnDead:
    """End the visitor's answer in plain words when their question ended as a dead letter."""

    async def tell(record: Record, letter: DeadLetter, sender: Sender) -> None:
        try:
            known = read(record)
        except WireError:
            return  # nobody can be told
        request = question_of(known)
        words = site_prompts.of(request.site).phrases.error(letter.code, request.lang)
        await outcomes.say(known, await fail(record, request, sender, log, letter.code, words), sender)

    return tell


def asked(record: Record) -> Question:
    return Question.decode(record.value)


def rephrased(record: Record) -> Rephrased:
    return Rephrased.decode(record.value)


def retrieved(record: Record) -> Retrieved:
    return Retrieved.decode(record.value)
