"""Tool calls on OpenAI's wire: assembled from the pieces of a stream, and sent back as history.

    {index: 0, id: "c1", function: {name: "search", arguments: ""}} ─┐
    {index: 0, function: {arguments: '{"question": "fer'}}          ─┼─▶ ToolCall("search", '{"question": "ferry"}')
    {index: 0, function: {arguments: 'ry"}'}}                       ─┘

Most servers number the calls of a turn 0, 1, 2. Some number all of them 0 (Ollama), or none (Gemini): there a new id
begins a new call. Gemini needs the `extra_content` of a call back.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel

from prompts.loader import ChatMessage, ToolCall

_CONTROLS = dict.fromkeys(n for n in (*range(32), *range(127, 160)) if chr(n) not in "\t\n\r")


class SurrogateJoiner:
    """Joins halves of characters and removes control characters, piece by piece. Pieces do not change the result.

        "a\\ud83d" "\\ude00b\\u0000" ─▶ "a" "😀b"        a lone surrogate becomes U+FFFD

    Servers that count in UTF-16 cut emoji in two.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def feed(self, piece: str) -> str:
        """The complete characters up to this piece. Half a character is kept for the next piece."""
        return self._decoder.decode(piece.encode("utf-16-le", "surrogatepass")).translate(_CONTROLS)


def writable(text: str) -> str:
    """Repair a whole text."""
    return SurrogateJoiner().feed(text)


# Errors for missing support of tools: Ollama, vLLM, llama.cpp, OpenRouter, FastAPI.
_TOOLLESS = re.compile(
    r"not support(?:ed)?\b.{0,40}\b(?:tool|function call)"
    r"|\b(?:tools?|function calling|tool (?:use|calls?|calling))\b.{0,60}"
    r"(?:not (?:yet )?(?:supported|support|available|enabled)|not permitted|unsupported|requires?)"
    r"|(?:unsupported|unknown|unrecognized|unexpected) (?:request )?"
    r"(?:param(?:eter)?|argument|field)\w*(?: supplied)?\W+tools?\b"
    r"|no endpoints.{0,60}tool",
    re.IGNORECASE | re.DOTALL,
)


_Text = Annotated[str, AfterValidator(writable)]


class FunctionPiece(BaseModel):
    """The parts of a call's function in a piece."""

    name: _Text | None = None
    arguments: _Text | None = None


class CallPiece(BaseModel):
    """A piece of a call."""

    index: int | None = None
    id: _Text | None = None
    function: FunctionPiece | None = None
    extra_content: Any = None

    @property
    def chars(self) -> int:
        """Characters that the model has written for it, at least one."""
        function = self.function or FunctionPiece()
        return len(function.name or "") + len(function.arguments or "") or 1


class CallParts:
    """Assembles the calls of one stream."""

    def __init__(self) -> None:
        self._calls: list[ToolCall] = []
        self._open: dict[int, int] = {}  # the server's index -> the current call with it

    def feed(self, piece: CallPiece) -> None:
        at = self._place(piece)
        call, function = self._calls[at], piece.function or FunctionPiece()
        self._calls[at] = ToolCall(
            call.name + (function.name or ""),
            call.arguments + (function.arguments or ""),
            piece.id or call.id,
            call.extra if piece.extra_content is None else piece.extra_content,
        )

    def finish(self) -> tuple[ToolCall, ...]:
        return tuple(self._calls)

    def _place(self, piece: CallPiece) -> int:
        index = piece.index or 0
        at = self._open.get(index)
        if at is None or (piece.id and self._calls[at].id and piece.id != self._calls[at].id):
            at = self._open[index] = len(self._calls)
            self._calls.append(ToolCall("", ""))
        return at


def to_wire(message: ChatMessage) -> dict[str, Any]:
    """The message in OpenAI's format."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.answers, "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.content}
    return {"role": message.role, "content": message.content or None, "tool_calls": [*map(_called, message.calls)]}


def says_no_tools(said: str) -> bool:
    """Whether a server's error means that it does not support tools, rather than that the request is wrong."""
    return _TOOLLESS.search(said) is not None


def _called(call: ToolCall) -> dict[str, Any]:
    # Servers put the arguments into their model's template as an object, and fail if they are none.
    arguments = call.arguments if _is_object(call.arguments) else "{}"
    wire = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
    return wire if call.extra is None else wire | {"extra_content": call.extra}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
