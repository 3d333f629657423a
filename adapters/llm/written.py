"""Written: what a model has written so far, put together from the events of its stream.

event ─▶ Chunk ─▶ Written.take ─▶ characters ─▶ without what it thinks ─▶ as much as it may ─▶ text to hand on
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel

from adapters.llm.allowance import Allowance
from adapters.llm.characters import Characters, writable
from adapters.llm.reasoning import Spoken
from adapters.llm.tool_calls import CallParts, CallPiece
from pipelines.query.ports import ContentFiltered
from schemas.answer import Usage


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: Any = None  # what it thinks, in a field of its own: DeepSeek's, vLLM's and llama.cpp's name,
    reasoning: Any = None  # and OpenRouter's, Ollama's and a later vLLM's
    tool_calls: list[CallPiece] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Spent(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Chunk(BaseModel):
    """What is read of a piece of the stream, in 4 us; the client's own class, with dozens of fields, takes 180."""

    model: Annotated[str, AfterValidator(writable)] | None = None
    choices: list[_Choice] | None = None
    usage: _Spent | None = None


class Written:
    """Of one call. `finish` is why it stopped, in its server's words; None: it has not, or the stream broke off."""

    def __init__(self, model: str, allowance: Allowance) -> None:
        self._model = model
        self._allowance = allowance
        self._characters = Characters()
        self._spoken = Spoken()
        self.usage = Usage(model=model)
        self.calls = CallParts()
        self.finish: str | None = None
        self.stopped = False  # it wrote on past what it may: whoever reads it hangs up

    def take(self, chunk: Chunk) -> str:
        """The text in it that may be handed on. Raises: ContentFiltered."""
        if chunk.usage is not None:
            self.usage = Usage(
                model=chunk.model or self._model,
                prompt_tokens=chunk.usage.prompt_tokens or 0,
                completion_tokens=chunk.usage.completion_tokens or 0,
            )
        said, called, thought = "", 0, 0
        for choice in chunk.choices or ():
            delta = choice.delta or _Delta()
            if choice.finish_reason == "content_filter" or delta.refusal:
                raise ContentFiltered(f"{self._model} refused to answer")
            self.finish = choice.finish_reason or self.finish
            content = self._characters.feed(delta.content or "")
            spoken = self._spoken.feed(content)
            thought += max(0, len(content) - len(spoken)) + _length(delta.reasoning_content) + _length(delta.reasoning)
            said += spoken
            for call in delta.tool_calls or ():
                self.calls.feed(call)
                called += call.chars
        if thought or not (said or called):
            self._allowance.think(thought)
        text = self._allowance.say(said)
        self._allowance.call(called)
        if self._allowance.over:
            self.stopped, self.finish = True, "length"
        return text

    def rest(self) -> str:
        """What only the end makes certain."""
        return self._allowance.say(self._spoken.finish())


def _length(thought: Any) -> int:
    return len(thought) if isinstance(thought, str) else 0
