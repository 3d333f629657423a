"""A chat model behind any server with OpenAI's chat completions: OpenAI, Azure, vLLM, llama.cpp, Ollama, ...

Servers support different parameters. An optional parameter that a server refuses by name is left out from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

import openai
import structlog
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient

from adapters.llm.settings import ModelSettings, OpenAISettings, key_of
from adapters.llm.tool_calls import says_no_tools, to_wire
from adapters.llm.written import OutputAllowance, StreamChunk, StreamingChat, Written
from pipelines.query.ports import (
    BadRequest,
    ContentFiltered,
    ContextTooLong,
    Delta,
    ModelCut,
    ModelDenied,
    ModelDown,
    ModelError,
    ModelSilent,
    NoToolCalls,
    RateLimited,
    ToolSpec,
)
from pipelines.runtime import tracing
from pipelines.runtime.retry import retry_after
from prompts.loader import ChatMessage

log = structlog.get_logger(__name__)

TEMPERATURE = 0.0  # the same question gets the same answer
LIST_TIMEOUT = 5.0  # seconds for the list of models
REASON = 200  # characters of a server's error in our messages
# Optional parameters, and their replacements on servers that refuse them.
_OPTIONAL = {"max_tokens": "max_completion_tokens", "max_completion_tokens": None} | dict.fromkeys(
    ("stream_options", "temperature")
)


class OpenAIChat(StreamingChat):
    """One model on one server. Shared by all conversations, without state of any.

    Args:
        client: without retries, since the stage retries, and nested retries multiply.
        silence: seconds without data after which the server counts as down.
        thinking: tokens of reasoning, added to every limit of the text.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        model: str,
        *,
        silence: float,
        temperature: float = 0.0,
        thinking: int = 0,
    ) -> None:
        self._client = client
        self._model = model
        self._silence = silence
        self._temperature = temperature
        self._thinking = thinking
        self._refused: dict[str, str | None] = {}  # parameter -> its replacement
        self._no_tools = ""  # the server's error when it was offered tools

    @classmethod
    def named(
        cls, model: str, settings: ModelSettings, *, temperature: float = TEMPERATURE, thinking: int | None = None
    ) -> OpenAIChat:
        """A model of the configured server, with other parameters than the settings'."""
        client = AsyncOpenAI(
            api_key=key_of(settings.openai_api_key),
            base_url=settings.openai_base_url,
            timeout=None,
            max_retries=0,
            http_client=DefaultAioHttpClient(timeout=None),  # half the default client's CPU time for each token
        )
        return cls(
            client,
            model,
            silence=settings.llm_timeout,
            temperature=temperature,
            thinking=settings.llm_thinking_tokens if thinking is None else thinking,
        )

    async def aclose(self) -> None:
        await self._client.close()

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
    ) -> AsyncGenerator[Delta, None]:
        """Stream the text without the model's reasoning, then the usage and the tool calls.

        Raises:
            RateLimited, ModelDown, ModelSilent, ModelCut: retryable.
            ContentFiltered, ContextTooLong, ModelDenied, BadRequest: not retryable.
            NoToolCalls: the server does not support tools, which is found out once.
        """
        if tools and self._no_tools:
            raise NoToolCalls(self._no_tools)
        options: dict[str, Any] = {"temperature": self._temperature, "stream_options": {"include_usage": True}}
        if max_tokens is not None:
            options["max_tokens"] = max_tokens + self._thinking
        if tools:
            options["tools"] = [{"type": "function", "function": asdict(tool)} for tool in tools]
        allowance = OutputAllowance(max_tokens, self._thinking)
        written = Written(self._model, allowance)
        server = str(self._client.base_url)
        limit = options.get("max_tokens")
        with tracing.inference("chat", self._model, server, limit, self._temperature) as asked:
            with self._explained(ModelDown):
                stream = await self._open(messages, options, asked.headers)
            self._bound(stream, allowance.most_bytes)
            with self._explained(ModelCut):
                async with stream:
                    while not written.stopped and (chunk := await self._next(stream)) is not None:
                        if text := written.take(chunk):
                            asked.first_word()
                            yield Delta(text)
            if written.finish is None:
                raise ModelCut(f"{self._model}: the stream ended in the middle of the answer")
            asked.answered(written.usage, written.finish)
        if written.stopped:
            log.warning("a model that runs on is stopped", model=self._model, max_tokens=max_tokens)
        if text := written.rest():
            yield Delta(text)
        yield Delta(usage=written.usage, calls=written.calls.finish(), cut=written.finish == "length")

    async def _open(
        self, messages: Sequence[ChatMessage], options: dict[str, Any], headers: Mapping[str, str]
    ) -> AsyncStream[object]:
        """Start the stream without the parameters that the server refuses."""
        while True:
            sent = self._accepted(options)
            try:
                async with asyncio.timeout(self._silence):
                    return await self._client.post(
                        "/chat/completions",
                        cast_to=object,  # see Chunk
                        body={"model": self._model, "messages": [*map(to_wire, messages)], "stream": True, **sent},
                        options={"headers": headers} if headers else {},
                        stream=True,
                        stream_cls=AsyncStream[object],
                    )
            except openai.APIStatusError as err:
                if "tools" in sent and says_no_tools(_said(err)):
                    self._no_tools = f"{self._model}: {err.status_code} {_reason(err)}"
                    log.warning("the model has no tool calls", model=self._model)
                    raise NoToolCalls(self._no_tools) from err
                if err.status_code not in (400, 422):
                    raise
                name = _refused_parameter(err, sent)
                if name is None:
                    raise
                self._refused[name] = _OPTIONAL[name]
                log.info("model server refuses a parameter", model=self._model, parameter=name)

    def _accepted(self, options: dict[str, Any]) -> dict[str, Any]:
        sent: dict[str, Any] = {}
        for name, value in options.items():
            key: str | None = name
            while key is not None and key in self._refused:
                key = self._refused[key]
            if key is not None:
                sent[key] = value
        return sent

    def _bound(self, stream: AsyncStream[object], most: int) -> None:
        """Limit the response's bytes, since the client's decoder buffers lines of any length."""
        pieces = stream.response.aiter_bytes

        async def bounded() -> AsyncGenerator[bytes, None]:
            size = 0
            async with aclosing(pieces()) as received:
                async for piece in received:
                    size += len(piece)
                    if size > most:
                        raise ModelCut(f"{self._model}: the server sends no end, {most:,} bytes so far")
                    yield piece

        stream.response.aiter_bytes = bounded  # type: ignore[method-assign, assignment]

    async def _next(self, stream: AsyncStream[object]) -> StreamChunk | None:
        try:
            async with asyncio.timeout(self._silence):
                return StreamChunk.model_validate(await anext(stream))
        except StopAsyncIteration:
            return None

    @contextlib.contextmanager
    def _explained(self, broken: type[ModelDown]) -> Iterator[None]:
        """Translate the client's errors; `broken` is for a broken connection. Messages never contain the prompt."""
        try:
            yield
        except TimeoutError as err:
            raise ModelSilent(f"{self._model}: silent for {self._silence:g} s") from err
        except openai.APIStatusError as err:
            kind, said = _of_status(err), f"{self._model}: {err.status_code} {_reason(err)}"
            raise (RateLimited(said, retry_after(err.response.headers)) if kind is RateLimited else kind(said)) from err
        except openai.APIConnectionError as err:
            raise broken(f"{self._model}: {_reason(err)}") from err
        except openai.APIError as err:  # an error event in the stream
            raise _of_event(err)(f"{self._model}: {_reason(err)}") from err
        except ValueError as err:  # not JSON, or not an event
            raise broken(f"{self._model}: the server sent something unreadable") from err


async def server_problem(settings: OpenAISettings) -> str | None:
    """Why requests to the server would fail, as far as its list of models shows; None: no problem is known."""
    key, url = key_of(settings.openai_api_key), settings.openai_base_url
    async with AsyncOpenAI(api_key=key, base_url=url, timeout=LIST_TIMEOUT, max_retries=0) as client:
        try:
            await client.models.with_raw_response.list()  # raw: the body does not matter
        except openai.APIConnectionError:
            return f"nothing answers at {client.base_url} (OPENAI_BASE_URL)"
        except (openai.AuthenticationError, openai.PermissionDeniedError):
            return f"{client.base_url} refuses the key (OPENAI_API_KEY)"
        except openai.APIError:  # some servers have no list of models
            pass
    return None


def _of_status(err: openai.APIStatusError) -> type[ModelError]:
    marked = _of_words(err)
    if marked is not None:
        return marked
    if err.status_code == 429:
        return RateLimited
    if err.status_code in (401, 403):
        return ModelDenied
    if err.status_code >= 500 or err.status_code in (408, 409):
        return ModelDown
    return BadRequest


def _of_event(err: openai.APIError) -> type[ModelError]:
    marked = _of_words(err)
    if marked is not None:
        return marked
    return RateLimited if "rate" in f"{err.code} {err.type}" or err.code == "429" else ModelCut


def _of_words(err: openai.APIError) -> type[ModelError] | None:
    """The error by the codes in the body, or by words: llama.cpp and vLLM send no codes."""
    said = f"{err.code} {err.type} {_said(err)}".lower()
    marks: tuple[tuple[type[ModelError], tuple[str, ...]], ...] = (
        (ContentFiltered, ("content_filter", "content_policy", "content management policy")),
        (ContextTooLong, ("context_length", "context length", "exceed_context_size", "context window", "context size")),
        (ModelDenied, ("insufficient_quota",)),
    )
    return next((kind for kind, words in marks if any(word in said for word in words)), None)


def _refused_parameter(err: openai.APIStatusError, sent: dict[str, Any]) -> str | None:
    """The sent optional parameter that the server refuses; None: it refuses something else."""
    if _of_words(err) is not None:  # "maximum context length ... max_tokens" is about the prompt
        return None
    said = f"{err.param} {_said(err)}"
    return next((name for name in _OPTIONAL if name in sent and name in said), None)


def _reason(err: openai.APIError) -> str:
    return " ".join(_said(err).split())[:REASON]


def _said(err: openai.APIError) -> str:
    """The server's message. Servers made with FastAPI put it into `detail`, which OpenAI's client ignores."""
    detail = err.body.get("detail") if isinstance(err.body, Mapping) else None
    return f"{err.message} - {detail}" if detail else err.message
