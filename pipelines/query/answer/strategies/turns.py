"""Turns: a model's calls and the results of its tools, as native tool calls or, for models without them, as text.

native   assistant: calls ─▶ tool: answer ...
text     assistant: Thought: ... Action: search[question] ─▶ user: answer, between marks ...

Both are written from the same turns, so a run may begin with one model and continue with another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipelines.query.ports import Completion, ToolSpec
from prompts.loader import ChatMessage, ToolCall

FINISH = "finish"
NO_ACTION = "That was no action. Write one line: Action: name[input], or: Action: finish[]"

_MARKS = r"[^\w\n]*"
_ACTION = re.compile(
    rf"^{_MARKS}action{_MARKS}(?:\n{_MARKS})?(?P<name>[a-z_][a-z0-9_]*)[ \t]*\[(?P<input>[^\n]*)$", re.I | re.M
)
_THOUGHT = re.compile(rf"^{_MARKS}thought{_MARKS}:\s*", re.I | re.M)
_NO_MORE = re.compile(r"\W*(?:no|enough)\W*", re.I)


@dataclass
class ToolTurn:
    """One round. `results`: results of the calls, in their order; `lost`: the model wrote neither a call nor an end."""

    said: str
    calls: tuple[ToolCall, ...] = ()
    lost: bool = False
    results: list[str] = field(default_factory=list)


def native_messages(turns: Sequence[ToolTurn], fence: str) -> Iterator[ChatMessage]:
    """For a model with tool calls.

    Args:
        fence: the word in the marks around results, which contain pages' text.
    """
    for turn in turns:
        yield ChatMessage("assistant", turn.said, calls=turn.calls)
        for call, result in zip(turn.calls, turn.results, strict=True):
            yield ChatMessage("tool", _marked(result, fence), answers=call.id)


def text_messages(turns: Sequence[ToolTurn], fence: str) -> Iterator[ChatMessage]:
    """For a model without tool calls: its first action as text, and the results as observations."""
    for turn in turns:
        actions = [f"Action: {call.name}[{' '.join(call.arguments.split())}]" for call in turn.calls]
        yield ChatMessage("assistant", "\n".join([*([f"Thought: {turn.said}"] if turn.said else []), *actions]) or "-")
        results = "\n".join(_marked(result, fence) for result in turn.results)
        yield ChatMessage("user", NO_ACTION if turn.lost else f"Observation:\n{results}")


def _marked(result: str, fence: str) -> str:
    return f"<result-{fence}>\n{result}\n</result-{fence}>"


def actions(tools: Sequence[ToolSpec]) -> str:
    """The list of tools for a model without tool calls, a line for each."""
    lines = []
    for tool in tools:
        properties = tool.parameters.get("properties", {})
        if len(properties) == 1:
            lines.append(f"- {tool.name}[{next(iter(properties))}]: {tool.description}")
        else:
            schema = json.dumps(tool.parameters, ensure_ascii=False)
            lines.append(f"- {tool.name}[JSON object]: {tool.description} The object: {schema}")
    return "\n".join([*lines, f"- {FINISH}[]: nothing more is needed, or to be found"])


def spoken(completion: Completion, tools: Sequence[ToolSpec]) -> ToolTurn:
    """The first action in a model's text. The model makes up everything after it, including observations."""
    match = _ACTION.search(completion.text)
    said = _words(completion.text[: match.start()] if match else completion.text)
    if match is None:
        return ToolTurn(said, lost=_NO_MORE.fullmatch(said) is None)
    name, given = match["name"].lower(), " ".join(match["input"].split()).removesuffix("]").rstrip()
    if name == FINISH:
        return ToolTurn(said)
    return ToolTurn(said, (ToolCall(name, _arguments(name, given, tools)),))


def _words(text: str) -> str:
    return " ".join(_THOUGHT.sub("", text).split())


def _arguments(name: str, given: str, tools: Sequence[ToolSpec]) -> str:
    """A JSON object as it is; anything else is the tool's first argument."""
    if given.startswith("{") or not given:
        return given
    known = next((list(tool.parameters.get("properties", {})) for tool in tools if tool.name == name), [])
    return json.dumps({known[0] if known else "input": given.strip("\"'“”")}, ensure_ascii=False)
