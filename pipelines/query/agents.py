"""The query stages' handlers: decode, call, send. What they do stands in rephrase, retrieve and answering.

query.requests ─▶ rephrase ─▶ query.rephrased ─▶ retrieve ─▶ query.retrieved ─▶ answer ─▶ answer.events
                     └──────── a service is away for longer than visitors wait ────────────────▲
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter

import structlog

from pipelines.query.answer.answering import Answering
from pipelines.query.answer.stops import Stops
from pipelines.query.books import Books
from pipelines.query.ports import ChatModel
from pipelines.query.publish import begin, fail
from pipelines.query.rephrase.examples import Examples
from pipelines.query.rephrase.follow_up import continued
from pipelines.query.rephrase.rewrite import OUTPUT_TOKENS, parsed, search_mode, values
from pipelines.query.retrieve.ports import Chunks, Reranker
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.retrieve.search import Searcher
from pipelines.query.settings import QuerySettings
from pipelines.query.translate import terms_back
from pipelines.runtime.bus import LogReader
from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.embedder import SiteEmbedders
from pipelines.runtime.errors import PagewireError, Retryable
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, OnDead, Sender
from schemas.base import WireError
from schemas.query import Question, Rephrased, Retrieved
from schemas.topics import REPHRASED, RETRIEVED

logger = structlog.get_logger(__name__)


PATIENCE = 10.0  # seconds a rewriting may take: without it the answer is a little worse, but it comes


@dataclass(frozen=True)
class Rewriter:
    """What questions are rewritten with."""

    model: ChatModel
    examples: Examples


def rephrase_handler(settings: QuerySettings, books: Books, rewriter: Rewriter | None) -> Handler:
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
            question = await rewritten(request, settings, books, rewriter)
        timings = {"rephrase": (perf_counter() - began) * 1000}
        message = Rephrased(request=request, question=question, mode=mode, timings_ms=timings)
        await sender.send(REPHRASED, request.conversation_id, message)
        logger.info("rephrased", mode=mode, changed=question != request.question, ms=round(timings["rephrase"]))

    return handle


async def rewritten(request: Question, settings: QuerySettings, books: Books, rewriter: Rewriter | None) -> str:
    """The question as the model puts it; without one, or when it fails, by its words alone."""
    if rewriter is None:
        return continued(request.question, request.history)
    site, book = settings.site(request.site), books.of(request.site)
    lang = site.languages[0]
    asks = values(
        request,
        site=site.title or request.site,
        language=book.phrases.name(lang),
        history_messages=settings.history_messages,
        terms=terms_back(site.glossary, request.question),
    )
    try:
        async with asyncio.timeout(PATIENCE):
            shots = await rewriter.examples.pick(request, lang)
            messages = book.prompts["rephrase"].messages(asks, lang, shots)
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


def retrieve_handler(
    settings: QuerySettings, searcher: Searcher, chunks: Chunks, reranker: Reranker | None = None
) -> Handler:
    """A question gets the passages that may answer it."""

    async def handle(record: Record, sender: Sender) -> None:
        asked = Rephrased.decode(record.value)
        found = await retrieve(asked, searcher, chunks, settings, reranker)
        await sender.send(RETRIEVED, asked.request.conversation_id, found)
        took = {name: round(ms) for name, ms in found.timings_ms.items()}
        logger.info("retrieved", grade=found.grade, sources=len(found.sources), ms=took)

    return handle


def answer_handler(answering: Answering, models: SiteEmbedders, log: LogReader, stops: Stops) -> Handler:
    """Passages become an answer, streamed, until it is written or the visitor stops it."""

    async def handle(record: Record, sender: Sender) -> None:
        retrieved = Retrieved.decode(record.value)
        publication = await begin(record, retrieved.request, sender, log)
        if publication is None:
            return
        async with stops.watch(retrieved.request) as stopped:
            embedder = await models.for_site(retrieved.request.site)
            await answering.answer(retrieved, embedder, publication, stopped)

    return handle


def impatient(
    handler: Handler, question_of: Callable[[Record], Question], settings: QuerySettings, books: Books, log: LogReader
) -> Handler:
    """The handler, but what a service that is away does to a question is told to its visitor while they still wait.

    The stage itself would retry for much longer, and then keep a dead letter of what nobody wants to know any more.
    """
    patience = timedelta(seconds=settings.question_patience)

    async def handle(record: Record, sender: Sender) -> None:
        try:
            await handler(record, sender)
        except Retryable as err:
            request = question_of(record)
            if datetime.now(UTC) < min(request.asked_at + patience, request.deadline):
                raise
            logger.warning("a question is given up", code=err.code, error=str(err), attempt=record.attempt)
            words = books.of(request.site).phrases.error(err.code, request.lang)
            await fail(record, request, sender, log, err.code, words)

    return handle


def apology(question_of: Callable[[Record], Question], books: Books, log: LogReader) -> OnDead:
    """End the visitor's answer in plain words when their question ended as a dead letter."""

    async def tell(record: Record, letter: DeadLetter, sender: Sender) -> None:
        try:
            request = question_of(record)
        except WireError:
            return  # nobody can be told
        words = books.of(request.site).phrases.error(letter.code, request.lang)
        await fail(record, request, sender, log, letter.code, words)

    return tell


def asked(record: Record) -> Question:
    return Question.decode(record.value)


def rephrased(record: Record) -> Question:
    return Rephrased.decode(record.value).request


def retrieved(record: Record) -> Question:
    return Retrieved.decode(record.value).request
