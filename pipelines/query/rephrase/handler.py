"""The rephrase stage: decode, rewrite, send. How a question is rewritten stands in rewrite, examples and follow_up.

query.requests ─▶ rephrase ─▶ query.rephrased"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

import structlog

from pipelines.query.ports import ChatModel
from pipelines.query.rephrase.examples import Examples
from pipelines.query.rephrase.follow_up import continued
from pipelines.query.rephrase.rewrite import OUTPUT_TOKENS, parsed, search_mode, values
from pipelines.query.settings import QuerySettings
from pipelines.query.site_prompts import SitePrompts
from pipelines.query.translate import terms_back
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.query import Question, Rephrased
from schemas.topics import REPHRASED

logger = structlog.get_logger(__name__)


PATIENCE = 10.0  # seconds a rewriting may take: without it the answer is a little worse, but it comes


@dataclass(frozen=True)
class Rewriter:
    """What questions are rewritten with."""

    model: ChatModel
    examples: Examples


def rephrase_handler(settings: QuerySettings, site_prompts: SitePrompts, rewriter: Rewriter | None) -> Handler:
    """A question becomes one that needs no conversation.

    Without a rewriter, and where it fails, one that leans on earlier ones is asked together with them.
    """

    async def handle(record: Record, sender: Sender) -> None:
        request = Question.decode(record.value)
        began = perf_counter()
        mode = search_mode(request.question, settings.short_question_words)
        question = request.question
        awaited = datetime.now(UTC) < request.deadline  # after it, the answer stage says so
        if mode == "semantic" and awaited:
            question = await rewritten(request, settings, site_prompts, rewriter)
        timings = {"rephrase": (perf_counter() - began) * 1000}
        message = Rephrased(request=request, question=question, mode=mode, timings_ms=timings)
        await sender.send(REPHRASED, request.conversation_id, message)
        logger.info("rephrased", mode=mode, changed=question != request.question, ms=round(timings["rephrase"]))

    return handle


async def rewritten(
    request: Question, settings: QuerySettings, site_prompts: SitePrompts, rewriter: Rewriter | None
) -> str:
    """The question as the model puts it; without one, or when it fails, by its words alone."""
    if rewriter is None:
        return continued(request.question, request.history)
    site, prompt_set = settings.site(request.site), site_prompts.of(request.site)
    lang = site.languages[0]
    asks = values(
        request,
        site=site.title or request.site,
        language=prompt_set.phrases.name(lang),
        history_messages=settings.history_messages,
        terms=terms_back(site.glossary, request.question),
    )
    try:
        async with asyncio.timeout(PATIENCE):
            shots = await rewriter.examples.pick(request, lang)
            messages = prompt_set.prompts["rephrase"].messages(asks, lang, shots)
            completion = await rewriter.model.complete(messages, max_tokens=OUTPUT_TOKENS)
    except TimeoutError:
        logger.warning("not rephrased", code="timeout", seconds=PATIENCE)
        return continued(request.question, request.history)
    except PagewireError as err:
        logger.warning("not rephrased", code=err.code, error=str(err))
        return continued(request.question, request.history)
    if completion.cut:  # half a question asks for something else
        logger.warning("not rephrased", code="cut", tokens=OUTPUT_TOKENS)
        return continued(request.question, request.history)
    return parsed(completion.text, request.question)
