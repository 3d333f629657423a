"""An answer as OpenAI's clients read it: whole, or in the chunks of a stream."""

from __future__ import annotations

import time

from schemas.answer import Answered, Usage
from schemas.completion import (
    ChatCompletion,
    Choice,
    ChunkChoice,
    CompletionChunk,
    CompletionDelta,
    CompletionErrorDocument,
    CompletionMessage,
    CompletionUsage,
    FinishReason,
)
from schemas.http import ChatResponse

DONE = b"data: [DONE]\n\n"


def completion(request_id: str, model: str, answer: Answered | ChatResponse) -> ChatCompletion:
    """A whole answer."""
    text = answer.text if isinstance(answer, Answered) else answer.answer
    message = CompletionMessage(content=text, sources=answer.sources, citations=answer.citations)
    return ChatCompletion(
        id=_id(request_id),
        created=int(time.time()),
        model=model,
        choices=(Choice(message=message, finish_reason=_finish_reason(answer)),),
        usage=_usage(answer.usage),
    )


class CompletionChunks:
    """The chunks of one answer. Text that was sent cannot be taken back: a new attempt begins below it.

    Args:
        usage: a last chunk tells what the models counted (`stream_options.include_usage`).
    """

    def __init__(self, request_id: str, model: str, *, usage: bool) -> None:
        self._head = {"id": _id(request_id), "created": int(time.time()), "model": model}
        self._usage = usage
        self._before = 0  # characters of attempts that broke off
        self._written = 0  # characters sent

    def begin(self) -> bytes:
        return self._chunk(CompletionDelta(role="assistant", content=""))

    def text(self, text: str) -> bytes:
        self._written += len(text)
        return self._chunk(CompletionDelta(content=text))

    def again(self) -> bytes:
        """An attempt broke off; nothing, where nothing of it was sent."""
        if not self._written:
            return b""
        piece = self.text("\n\n")
        self._before = self._written
        return piece

    def end(self, answer: Answered) -> bytes:
        citations = tuple(
            c.model_copy(update={"start": c.start + self._before, "end": c.end + self._before})
            for c in answer.citations
        )
        last = self._chunk(CompletionDelta(sources=answer.sources, citations=citations), _finish_reason(answer))
        if self._usage:
            last += event(CompletionChunk(**self._head, choices=(), usage=_usage(answer.usage)))
        return last

    def _chunk(self, delta: CompletionDelta, finish_reason: FinishReason | None = None) -> bytes:
        return event(CompletionChunk(**self._head, choices=(ChunkChoice(delta=delta, finish_reason=finish_reason),)))


def event(document: CompletionChunk | CompletionErrorDocument) -> bytes:
    """One event of the stream."""
    return f"data: {document.model_dump_json()}\n\n".encode()


def _id(request_id: str) -> str:
    return f"chatcmpl-{request_id}"


def _finish_reason(answer: Answered | ChatResponse) -> FinishReason:
    return "length" if answer.cut else "stop"


def _usage(usage: Usage) -> CompletionUsage:
    total = usage.prompt_tokens + usage.completion_tokens
    return CompletionUsage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, total_tokens=total
    )
