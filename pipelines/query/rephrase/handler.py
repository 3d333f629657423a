"""The rephrase stage: decode, rewrite, send. How a question is rewritten stands in rewrite, examples and follow_up.

query.requests ─▶ rephrase ─▶ query.rephrased"""

from __future__ import annotations

from datetime import UTC, datetime
from time import perf_counter

import structlog

from pipelines.query.rephrase.rewrite import Rewriter, rewrite, search_mode
from pipelines.query.settings import QuerySettings
from pipelines.query.site_prompts import SitePrompts
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.query import Question, Rephrased
from schemas.topics import REPHRASED

logger = structlog.get_logger(__name__)


def rephrase_handler(settings: QuerySettings, site_prompts: SitePrompts, rewriter: Rewriter | None) -> Handler:
    """A question becomes one that needs no conversation.

    Without a rewriter, or when it fails, one that leans on earlier questions is asked together with them.
    """

    async def handle(record: Record, sender: Sender) -> None:
        request = Question.decode(record.value)
        began = perf_counter()
        mode = search_mode(request.question, settings.short_question_words)
        question = request.question
        awaited = datetime.now(UTC) < request.deadline  # after it, the answer stage says so
        if mode == "semantic" and awaited:
            question = await rewrite(request, settings, site_prompts, rewriter)
        timings = {"rephrase": (perf_counter() - began) * 1000}
        message = Rephrased(request=request, question=question, mode=mode, timings_ms=timings)
        await sender.send(REPHRASED, request.conversation_id, message)
        logger.info("rephrased", mode=mode, changed=question != request.question, ms=round(timings["rephrase"]))

    return handle
