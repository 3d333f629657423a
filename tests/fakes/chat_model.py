"""A scripted chat model, for tests and for stages without a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence

from adapters.llm.written import StreamingChat
from pipelines.query.ports import ChatModel, Completion, Delta, ToolSpec
from pipelines.runtime.settings import StepName, StepSettings
from prompts.loader import ChatMessage, ToolCall
from schemas.answer import Usage

Reply = str | Sequence[str] | Exception | ToolCall | Completion


class FakeChat(StreamingChat):
    """Returns the replies in turn, and the last one for ever; counts one token for each piece.

    A reply is a text, its pieces, a tool call, a completion, or an error to raise. `asked` has the messages of each
    call, `stopped` the number of streams that were closed early.
    """

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[ChatMessage, ...]] = []
        self.steps: list[StepName] = []
        self.own: list[StepSettings | None] = []
        self.stopped = 0

    def of(self, site: str, step: StepName, question: str = "", own: StepSettings | None = None) -> ChatModel:
        """This model, for every step. `steps` records the steps, `own` their settings."""
        self.steps.append(step)
        self.own.append(own)
        return self

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None, tools: Sequence[ToolSpec] = ()
    ) -> AsyncGenerator[Delta, None]:
        self.asked.append(tuple(messages))
        reply = self._replies[min(len(self.asked), len(self._replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ToolCall):
            reply = Completion("", Usage(), (reply,))
        calls, cut = (reply.calls, reply.cut) if isinstance(reply, Completion) else ((), False)
        text = reply.text if isinstance(reply, Completion) else reply
        pieces: Iterable[str] = [text] if isinstance(text, str) else text
        sent = 0
        try:
            for piece in pieces:
                sent += 1
                yield Delta(piece)
        except GeneratorExit:
            self.stopped += 1
            raise
        usage = Usage(model="fake", prompt_tokens=len(messages), completion_tokens=sent)
        yield Delta(usage=usage, calls=calls, cut=cut)

    async def aclose(self) -> None:
        """There is nothing to close."""
