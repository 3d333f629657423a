"""The rephrase stage: decode, rewrite, send. How a question is rewritten stands in rewrite, examples and follow_up.

query.requests ─▶ rephrase ─▶ query.rephrased

A courtesy is handed on as one, in the language it was said in: nothing is searched for it. One or two words are looked
up as they stand where they open a conversation, and are rewritten as any other question where they go on with one.

A question goes on with the settings that were made live of its site, so that all stages answer it by the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import structlog

from pipelines.query.extractive.courtesy import Utterance, recognized
from pipelines.query.extractive.follow_ups import earlier
from pipelines.query.giving_up import in_time
from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.live.tuning import SiteTuning
from pipelines.query.masks import Masks
from pipelines.query.model_calls import Call, bounded, recorded
from pipelines.query.rephrase.rewrite import Rewriter, rewrite, search_mode
from pipelines.query.settings import QuerySettings
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.query import Question, Rephrased, Turn, Usage
from schemas.topics import REPHRASED

logger = structlog.get_logger(__name__)


def rephrase_handler(
    settings: QuerySettings,
    site_prompts: SitePrompts,
    rewriter: Rewriter | None,
    tuning: SiteTuning | None = None,
    privacy: SitePrivacy | None = None,
) -> Handler:
    """A question becomes one that needs no conversation.

    Without a rewriter, or when it fails, it is handed on with what it may lean on.

    Args:
        tuning: what was made live of the sites' settings; default: nothing was.
        privacy: what they keep; default: what their settings say.
    """
    masks = Masks(settings.sites, privacy)

    def reachable(site: str, lang: str) -> bool:
        known = settings.site(site)
        return known.hands_over or bool(site_prompts.of(site).reached_by(known, lang))

    async def handle(record: Record, sender: Sender) -> None:
        request = Question.decode(record.value)
        in_time(request)
        if tuning is not None and request.tuned is None:  # a trial may say that nothing of it counts
            request = request.model_copy(update={"tuned": tuning.of(request.site)})
        began = perf_counter()
        flow = settings.flow_of(request.site, request.under)
        understood = Utterance(None, request.lang, request.question)
        if flow.courtesies:
            understood = recognized(request.question, request.lang, conversing=bool(request.history))
        kind, question = understood.kind, understood.question
        if kind == "person" and not reachable(request.site, understood.lang):
            kind = None  # the pages may name somebody
        mode = search_mode(question, flow.short_question_words)
        before, spent = None, Usage()
        calls: Sequence[Call] = ()
        if kind is not None:
            mode, request = "courtesy", request.model_copy(update={"lang": understood.lang})
        else:
            asked = request.model_copy(update={"question": question, "history": _questions(request.history)})
            rewritten = None
            # The original looks a word or two up as they are, whatever was said before.
            if mode == "semantic" or (asked.history and flow.retriever != "original"):
                with recorded() as calls:
                    rewritten, spent = await rewrite(asked, settings, flow, site_prompts, rewriter)
            if rewritten is None and flow.retriever == "original":
                pass  # it is searched as it is
            elif rewritten is None:
                before = earlier(question, asked.history)
            else:
                question = rewritten
                mode = mode if mode == "semantic" else search_mode(rewritten, flow.short_question_words)
        timings = {"rephrase": (perf_counter() - began) * 1000}
        message = Rephrased(
            request=request,
            question=question,
            earlier=before,
            mode=mode,
            courtesy="about" if kind == "person" else kind,
            person=kind == "person",
            calls=bounded(calls) if calls and request.logged_as and masks.logs_prompts(request.site) else (),
            usage=Usage().and_for(spent),
            timings_ms=timings,
        )
        await sender.send(REPHRASED, request.conversation_id, message)
        logger.info("rephrased", mode=mode, changed=question != request.question, ms=round(timings["rephrase"]))

    return handle


def _questions(history: Sequence[Turn]) -> tuple[Turn, ...]:
    """The turns that a question may lean on: "And on Sundays?" is not about the thanks before it."""
    return tuple(turn for turn in history if recognized(turn.question, "en").kind is None)
