"""Assembles a model's answer from the events of its stream.

event ─▶ Chunk ─▶ Written.take ─▶ repaired characters ─▶ without reasoning ─▶ within the limit ─▶ text
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator

from adapters.llm.tool_calls import CallParts, CallPiece, SurrogateJoiner, writable
from pipelines.query.ports import Completion, ContentFiltered, Delta, ModelCut, ToolSpec
from prompts.loader import ChatMessage
from schemas.answer import Usage

# Characters of a token on average, nearly twice what English has. Beyond the limit of tokens times this a call is
# stopped, in case its server ignores the limit; reasoning beyond its own limit, or 8,000 tokens, likewise.
TOKEN_CHARS = 8
DEFAULT_TOKENS = 4_000  # of a call without `max_tokens`
# Most servers count reasoning against `max_tokens`. For those that do not, this limit applies, which is generous for a
# question and a few passages.
FREE_THINKING_TOKENS = 8_000
EVENT_BYTES = 1_024  # of an event with one token: some 200 to 500 on the wire

_OPENING = ("<think>", "<thinking>")
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_UNFINISHED = len("</thinking>") - 1  # characters of an incomplete closing tag

# Finish reasons of a server that has failed: OpenRouter's, vLLM's, DeepSeek's.
_BROKEN = {"error", "abort", "insufficient_system_resource"}


def _text_parts(content: Any) -> Any:
    """Content as Mistral sends it, in typed parts: the texts without the thoughts. Other content unchanged."""
    if not isinstance(content, list):
        return content
    texts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


class _Delta(BaseModel):
    content: Annotated[str | None, BeforeValidator(_text_parts)] = None
    refusal: str | None = None
    reasoning_content: Any = None  # DeepSeek's, vLLM's and llama.cpp's name
    reasoning: Any = None  # the name of OpenRouter, Ollama and later versions of vLLM
    tool_calls: list[CallPiece] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Spent(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Groq(BaseModel):
    usage: _Spent | None = None


class StreamChunk(BaseModel):
    """The needed fields of a stream's event. Parsing takes 4 us, with the client's own class 180."""

    model: Annotated[str, AfterValidator(writable)] | None = None
    choices: list[_Choice] | None = None
    usage: _Spent | None = None
    x_groq: _Groq | None = None


class OutputAllowance:
    """The remaining output of one call, in characters, since some servers ignore `max_tokens` or never stop.

    Beyond a limit the connection is closed. An English text has 4 to 5 characters a token, so a server that keeps to
    its limit of tokens stays far below. Arguments of tool calls count as text.

    Args:
        tokens: limit of the text. thinking: limit of the reasoning.
    """

    def __init__(self, tokens: int | None, thinking: int) -> None:
        tokens, thinking = tokens or DEFAULT_TOKENS, max(thinking, FREE_THINKING_TOKENS)
        self._text = tokens * TOKEN_CHARS
        self._thinking = thinking * TOKEN_CHARS
        self.most_bytes = (tokens + thinking) * EVENT_BYTES  # of the whole response

    def take_text(self, text: str) -> str:
        """Count the text, and return as much of it as fits."""
        fits = text[: max(0, self._text)]
        self._text -= len(text)
        return fits

    def count_call(self, chars: int) -> None:
        """Count the characters of a tool's name and arguments."""
        self._text -= chars

    def count_reasoning(self, chars: int) -> None:
        """Count an event's characters of reasoning. An empty event stands for one hidden token."""
        self._thinking -= chars or TOKEN_CHARS

    @property
    def exceeded(self) -> bool:
        return self._text < 0 or self._thinking < 0


class ReasoningFilter:
    """Removes a model's reasoning at the start of its output. The result does not depend on the pieces.

        "\\n<think>They want the pri" "ce.</think>\\n\\nNine eu" "ros [1]." ─▶ "" "Nine eu" "ros [1]."

    Most servers send the reasoning in a separate field. Others leave it in the text, between tags. It only holds back
    white space at the start, and a possible opening tag there.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._thought = False  # some reasoning has ended
        self._answering = False

    def feed(self, piece: str) -> str:
        """The answer's text that is certain after this piece."""
        if self._answering:
            return piece
        self._held += piece
        while True:
            if self._thinking:
                end = _CLOSING.search(self._held)
                if end is None:
                    self._held = self._held[-_UNFINISHED:]
                    return ""
                self._held, self._thinking, self._thought = self._held[end.end() :], False, True
            start = self._held.lstrip()
            head = start[: max(map(len, _OPENING))].lower()
            opened = next((tag for tag in _OPENING if head.startswith(tag)), None)
            if opened is not None:
                self._held, self._thinking = start[len(opened) :], True
                continue
            if any(tag.startswith(head) for tag in _OPENING):
                return ""
            self._answering = True
            return self.finish()

    def finish(self) -> str:
        """The text held back until the end. Empty where reasoning never ended."""
        held, self._held = self._held, ""
        if self._thinking:
            return ""
        return held.lstrip() if self._thought else held


class StreamingChat(ABC):
    """A chat model whose whole answer is its stream put together: a pipelines.query.ports.ChatModel."""

    @abstractmethod
    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
    ) -> AsyncGenerator[Delta, None]: ...

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
    ) -> Completion:
        """Raises: as `stream`."""
        text, last = "", Delta()
        async with aclosing(self.stream(messages, max_tokens=max_tokens, tools=tools)) as deltas:
            async for delta in deltas:
                text += delta.text
                last = delta
        return Completion(text, last.usage or Usage(), last.calls, last.cut)


class Written:
    """The answer of one call. `finish` is the server's finish reason; None: unfinished, or the stream broke."""

    def __init__(self, model: str, allowance: OutputAllowance) -> None:
        self._model = model
        self._allowance = allowance
        self._characters = SurrogateJoiner()
        self._reasoning = ReasoningFilter()
        self.usage = Usage(model=model)
        self.calls = CallParts()
        self.finish: str | None = None
        self.stopped = False  # the limit is exceeded: the reader closes the stream

    def take(self, chunk: StreamChunk) -> str:
        """The event's text that belongs to the answer. Raises: ContentFiltered, ModelCut."""
        if spent := chunk.usage or (chunk.x_groq and chunk.x_groq.usage):
            self.usage = Usage(
                model=chunk.model or self._model,
                prompt_tokens=spent.prompt_tokens or 0,
                completion_tokens=spent.completion_tokens or 0,
            )
        said, called, thought = "", 0, 0
        for choice in chunk.choices or ():
            delta = choice.delta or _Delta()
            if choice.finish_reason == "content_filter" or delta.refusal:
                raise ContentFiltered(f"{self._model} refused to answer")
            if choice.finish_reason in _BROKEN:
                raise ModelCut(f"{self._model}: the server ended with {choice.finish_reason}")
            self.finish = choice.finish_reason or self.finish
            content = self._characters.feed(delta.content or "")
            spoken = self._reasoning.feed(content)
            thought += max(0, len(content) - len(spoken)) + _length(delta.reasoning_content) + _length(delta.reasoning)
            said += spoken
            for call in delta.tool_calls or ():
                self.calls.feed(call)
                called += call.chars
        if thought or not (said or called):
            self._allowance.count_reasoning(thought)
        text = self._allowance.take_text(said)
        self._allowance.count_call(called)
        if self._allowance.exceeded:
            self.stopped, self.finish = True, "length"
        return text

    def rest(self) -> str:
        """The text held back until the end of the stream."""
        return self._allowance.take_text(self._reasoning.finish())


def _length(thought: Any) -> int:
    return len(thought) if isinstance(thought, str) else 0
