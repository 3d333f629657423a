"""Assembles a model's answer from the events of its stream.

event ─▶ Chunk ─▶ Written.take ─▶ repaired characters ─▶ without reasoning ─▶ within the limit ─▶ text
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator

from adapters.llm.allowance import OutputAllowance
from adapters.llm.reasoning import ReasoningFilter
from adapters.llm.tool_calls import CallParts, CallPiece, SurrogateJoiner, writable
from pipelines.query.ports import ContentFiltered, ModelCut
from schemas.answer import Usage

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
