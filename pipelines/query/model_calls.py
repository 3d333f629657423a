"""Model calls: input and output of models for a question, logged for sites with `log_prompts`.

adapters.llm.registry.StepChat ─▶ start_call ─▶ the calls of a stage for one question ─▶ bounded ─▶ the outcome
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

CALL_CHARS = 20_000  # characters of a call's messages and reply to keep
STAGE_CHARS = 100_000  # characters of all calls of a stage for one question: an outcome must fit into a message


@dataclass
class Call:
    """A call of a model, which may still be running."""

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
    """Model calls and doubted sentences of an answer, for the question log."""

    calls: tuple[Call, ...] = ()
    doubted: tuple[DoubtedSentence, ...] = ()


_calls: ContextVar[list[Call] | None] = ContextVar("model_calls", default=None)


@contextmanager
def recorded() -> Iterator[list[Call]]:
    """The calls that start within this context, also in tasks that start within it."""
    calls: list[Call] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def start_call(step: str, messages: Sequence[ChatMessage]) -> Call:
    """A new call, added to the calls of the surrounding `recorded`, if there is one."""
    call = Call(step, tuple(messages))
    if (calls := _calls.get()) is not None:
        calls.append(call)
    return call


def bounded(calls: Iterable[Call]) -> tuple[ModelCall, ...]:
    """The calls, cut to `CALL_CHARS` characters each and to `STAGE_CHARS` together.

    Earlier messages are cut first: the reply and the last message say most about a call.
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
    # Cut at the end of a sentence or a word: the masks do not recognize half a phone number.
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
