"""Answering: from sources to the events a visitor sees, by a model or by quoting (SPEC B8, B9).

query.retrieved ─▶ rephrased, sources ─▶ token, citation ... ─▶ answer, done ─▶ answer.events
                          model there ─▶ streams, markers become citations
               none, or it breaks down ─▶ the best sentences are quoted
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

import structlog

from pipelines.query import answer
from pipelines.query.cite import CitationParser, used_sources
from pipelines.query.extract import Extract, extract
from pipelines.query.language import Phrases
from pipelines.query.ports import ChatModel, Delta, Embedder
from pipelines.query.publish import Publication
from pipelines.runtime.errors import PagewireError
from pipelines.runtime.settings import Settings
from prompts.loader import Prompt
from schemas.answer import Answered, Citation, Done, Failed, QuestionRephrased, SourcesFound, Token, Usage
from schemas.query import Retrieved

log = structlog.get_logger(__name__)

QUOTABLE = ("content", "description")
WAITING = 64  # pieces of a model's text that may wait while the broker confirms


class ModelFailed(PagewireError):
    """The model broke down or had nothing to say."""

    code = "model-failed"


@dataclass(frozen=True)
class Written:
    """A finished text."""

    text: str
    citations: Sequence[Citation]
    usage: Usage
    extractive: bool


class Answering:
    """Writes answers. One per process."""

    def __init__(self, settings: Settings, prompt: Prompt, phrases: Phrases, model: ChatModel | None) -> None:
        self._settings = settings
        self._prompt = prompt
        self._phrases = phrases
        self._model = model

    async def answer(self, retrieved: Retrieved, embedder: Embedder, to: Publication) -> None:
        """Publish the whole answer, `rephrased` to `done`.

        Raises:
            Retryable: the broker, or the embedder that picks quotes, is away.
        """
        began = perf_counter()
        request = retrieved.request
        await to.put(
            QuestionRephrased(question=retrieved.question, mode=retrieved.mode),
            SourcesFound(grade=retrieved.grade, sources=retrieved.sources),
        )
        if datetime.now(UTC) > request.deadline:
            await to.put(Failed(code="timeout", message=self._phrases.error("timeout", request.lang)), Done())
            return
        written = await self._written(retrieved, embedder, to)
        await to.put(
            Answered(
                text=written.text,
                citations=tuple(written.citations),
                sources=used_sources(retrieved.sources, written.citations),
                extractive=written.extractive,
                usage=written.usage,
                timings_ms=retrieved.timings_ms | {"answer": (perf_counter() - began) * 1000},
            ),
            Done(),
        )

    async def _written(self, retrieved: Retrieved, embedder: Embedder, to: Publication) -> Written:
        if self._model is not None and retrieved.sources:
            try:
                return await self._by_model(self._model, retrieved, to)
            except ModelFailed as err:
                # What a visitor needs is on the pages: quote them. What was streamed so far is taken back.
                log.warning("the model failed, quoting instead", error=str(err))
                await to.restart()
        return await self._by_quoting(retrieved, embedder, to)

    async def _by_model(self, model: ChatModel, retrieved: Retrieved, to: Publication) -> Written:
        request = retrieved.request
        chat = answer.chat(
            self._prompt,
            retrieved,
            site=self._settings.site(request.site).title or request.site,
            language=self._phrases.name(request.lang),
            today=datetime.now(UTC).date(),
            budget=self._settings.context_chars,
            history_messages=self._settings.history_messages,
        )
        parser = CitationParser(chat.sources)
        usage = Usage(model=self._settings.llm_model)
        async with aclosing(_batches(model.stream(chat.messages, max_tokens=answer.OUTPUT_TOKENS))) as batches:
            async for deltas in batches:
                usage = next((delta.usage for delta in deltas if delta.usage), usage)
                await to.put(*parser.feed("".join(delta.text for delta in deltas)))
        await to.put(*parser.finish())
        if not parser.text:
            raise ModelFailed("it wrote nothing")
        if parser.dropped:
            log.info("citations of no source", count=parser.dropped)
        return Written(parser.text, parser.citations, usage, extractive=False)

    async def _by_quoting(self, retrieved: Retrieved, embedder: Embedder, to: Publication) -> Written:
        lang = retrieved.request.lang
        # A title says that its page is about the question, but answers nothing.
        worth = [source for source in retrieved.sources if source.field in QUOTABLE] or retrieved.sources
        extracted = await extract(retrieved.question, worth, embedder, self._phrases.lead_in(lang))
        if not extracted.events:
            extracted = Extract((Token(text=self._phrases.nothing_found(lang)),))
        await to.put(*extracted.events)
        return Written(extracted.text, extracted.citations, Usage(), extractive=True)


async def _batches(stream: AsyncGenerator[Delta, None]) -> AsyncGenerator[list[Delta], None]:
    """Whatever the model has written since the last batch was taken: a slow bus makes larger tokens, not lag.

    Raises:
        ModelFailed: the stream broke.
    """
    waiting: asyncio.Queue[Delta | None] = asyncio.Queue()
    room = asyncio.Semaphore(WAITING)

    async def read() -> None:
        async with aclosing(stream):
            async for delta in stream:
                await room.acquire()
                waiting.put_nowait(delta)

    reader = asyncio.create_task(read(), name="model-stream")
    reader.add_done_callback(lambda _: waiting.put_nowait(None))  # the last, whatever ended it
    try:
        ended = False
        while not ended:
            taken = [await waiting.get()]
            while not waiting.empty():
                taken.append(waiting.get_nowait())
            batch = [delta for delta in taken if delta is not None]
            ended = len(batch) < len(taken)
            for _ in batch:
                room.release()
            if batch:
                yield batch
        try:
            await reader
        except PagewireError as err:
            raise ModelFailed(f"{err.code}: {err}") from err
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
