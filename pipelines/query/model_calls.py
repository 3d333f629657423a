"""Model calls: what models read and wrote for a question, for operators of sites that keep it (`log_prompts`).

adapters.llm.registry.StepChat ─▶ begun ─▶ the calls of the stage at work on the question ─▶ bounded ─▶ the outcome
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from prompts.loader import ChatMessage, ToolCall
from schemas.outcome import DoubtedSentence
from schemas.query import ModelCall, PromptMessage
from text.sentences import cut

CALL_CHARS = 20_000  # of the messages and the reply of a call that are kept
STAGE_CHARS = 100_000  # of all calls of a stage for one question: an outcome has to fit into a message of the bus


@dataclass
class Call:
    """A call that may still go on."""

    step: str
    messages: tuple[ChatMessage, ...]
    model: str | None = None
    failed: str | None = None
    _reply: list[str] = field(default_factory=list)
    _tools: tuple[ToolCall, ...] = ()

    def add(self, text: str, tools: Iterable[ToolCall] = ()) -> None:
        self._reply.append(text)
        self._tools += tuple(tools)

    @property
    def kept(self) -> ModelCall:
        return ModelCall(
            step=self.step,
            model=self.model,
            messages=tuple(
                PromptMessage(role=message.role, text=_written(message.content, message.calls))
                for message in self.messages
            ),
            reply=_written("".join(self._reply), self._tools),
            failed=self.failed,
        )


@dataclass(frozen=True)
class AnswerRecord:
    """How an answer came about, besides what its visitor got."""

    calls: tuple[Call, ...] = ()
    doubted: tuple[DoubtedSentence, ...] = ()


_calls: ContextVar[list[Call] | None] = ContextVar("model_calls", default=None)


@contextmanager
def recorded() -> Iterator[list[Call]]:
    """The calls that are begun within, also by tasks that are started within."""
    calls: list[Call] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def begun(step: str, messages: Sequence[ChatMessage]) -> Call:
    """A new call, part of the record where there is one."""
    call = Call(step, tuple(messages))
    if (calls := _calls.get()) is not None:
        calls.append(call)
    return call


def bounded(calls: Iterable[Call]) -> tuple[ModelCall, ...]:
    """The calls in `CALL_CHARS` characters each, and in `STAGE_CHARS` together.

    The reply and the last message say most of a call: what is before them is cut first.
    """
    found: list[ModelCall] = []
    left = STAGE_CHARS
    for call in calls:
        found.append(_bounded(call.kept, min(CALL_CHARS, left)))
        left -= _length(found[-1])
    return tuple(found)


def _written(text: str, tools: Iterable[ToolCall]) -> str:
    return "\n".join([*([text] if text else []), *map(str, tools)])


def _bounded(call: ModelCall, room: int) -> ModelCall:
    # At the end of a sentence or a word: of half a telephone number it is unknown that it has to be masked.
    reply = cut(call.reply, room)
    left = room - len(reply)
    texts: list[str] = []
    for message in reversed(call.messages):
        texts.append(cut(message.text, left))
        left -= len(texts[-1])
    kept = zip(call.messages, reversed(texts), strict=True)
    messages = tuple(message.model_copy(update={"text": text}) for message, text in kept)
    fewer = call.model_copy(update={"messages": messages, "reply": reply})
    return fewer.model_copy(update={"not_kept": _length(call) - _length(fewer)})


def _length(call: ModelCall) -> int:
    return len(call.reply) + sum(len(message.text) for message in call.messages)
