"""A chat model that says what it is told to: for tests and for trying out stages without a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence

from pipelines.query.ports import Completion, Delta, ToolCall, ToolSpec
from prompts.loader import ChatMessage
from schemas.answer import Usage

Reply = str | Sequence[str] | Exception | ToolCall


class FakeChat:
    """Gives the replies in turn, the last one for ever; counts a token per piece.

    A reply is a text, its pieces, the call of a tool, or an error to raise. `asked` holds the messages of each call,
    `stopped` how many streams were closed before their end.
    """

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[ChatMessage, ...]] = []
        self.stopped = 0

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        tools: Sequence[ToolSpec] = (),
    ) -> AsyncGenerator[Delta, None]:
        self.asked.append(tuple(messages))
        reply = self._replies[min(len(self.asked), len(self._replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        calls = (reply,) if isinstance(reply, ToolCall) else ()
        pieces: Iterable[str] = [reply] if isinstance(reply, str) else () if isinstance(reply, ToolCall) else reply
        sent = 0
        try:
            for piece in pieces:
                sent += 1
                yield Delta(piece)
        except GeneratorExit:
            self.stopped += 1
            raise
        yield Delta(usage=Usage(model="fake", prompt_tokens=len(messages), completion_tokens=sent), calls=calls)

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        tools: Sequence[ToolSpec] = (),
    ) -> Completion:
        stream = self.stream(messages, max_tokens=max_tokens, temperature=temperature, tools=tools)
        deltas = [delta async for delta in stream]
        return Completion("".join(d.text for d in deltas), deltas[-1].usage or Usage(), deltas[-1].calls)
