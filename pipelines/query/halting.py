"""Halting: while a site's chat is switched off none of its questions is worked on, and answers under way end.

query.* ─▶ switched off ─▶ answer.events: error `chat-off`, in the site's words or ours
                        └▶ query.outcomes
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.outcomes import Known, Outcomes, question_of
from pipelines.query.publish import fail
from pipelines.runtime.bus import LogReader
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.base import WireError

log = structlog.get_logger(__name__)

CHAT_OFF = "chat-off"


class Switch(Protocol):
    """Whether sites' chats are switched off (pipelines.operate.chat_switches.ChatSwitches)."""

    def went_off(self, site: str) -> asyncio.Event:
        """Set while it is."""
        ...


def halted(
    handler: Handler,
    read: Callable[[Record], Known],
    switch: Switch,
    site_prompts: SitePrompts,
    answers: LogReader,
    outcomes: Outcomes,
) -> Handler:
    """The handler, but only while the chat of the question's site is on."""

    async def handle(record: Record, sender: Sender) -> None:
        try:
            known = read(record)
        except WireError:  # a dead letter, chat or no chat
            await handler(record, sender)
            return
        request = question_of(known)
        off = switch.went_off(request.site)
        if not off.is_set() and await _before(off, handler(record, sender)):
            return
        log.info("a question is not answered: the chat is switched off", site=request.site)
        words = site_prompts.of(request.site).phrases.error(CHAT_OFF, request.lang)
        await outcomes.say(known, await fail(record, request, sender, answers, CHAT_OFF, words), sender)

    return handle


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
