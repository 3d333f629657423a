'''Registry: a tool is a typed function; what the model is told of it comes from its signature and docstring.

async def bus(stop: Annotated[str, Field(description="Name of the stop.")], at: time | None = None) -> str:
    """Says when the next bus leaves."""

Tool.of(bus).spec  ─▶ {"name": "bus", "description": "Says when ...", "parameters": <JSON schema>}
Tool.of(bus).call('{"stop": "Mill"}')  ─▶ checked arguments, filled in ─▶ await bus(stop="Mill")
'''

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from pipelines.query.ports import ToolSpec
from prompts.loader import ToolCall
from schemas.query import Source

PROBLEMS = 3  # of wrong arguments that the model is told


@dataclass(frozen=True)
class Said:
    """What a tool says, and the sources it has found."""

    text: str
    sources: tuple[Source, ...] = ()


class MissingSlots(Exception):
    """Arguments that nobody has given yet; `slots` says in words what they are."""

    def __init__(self, slots: list[str]) -> None:
        super().__init__(", ".join(slots))
        self.slots = slots


class BadCall(Exception):
    """No such tool, or arguments that make no sense; says what the model may do about it."""


# Keyword arguments with types, a docstring, words or `Said` in return; ValueError says what is wrong.
Function = Callable[..., Awaitable[str | Said]]


@dataclass(frozen=True)
class Tool:
    """One function as a tool."""

    name: str
    description: str
    arguments: type[BaseModel]
    function: Function

    @classmethod
    def of(cls, function: Function) -> Tool:
        """Raises: TypeError: a tool without docstring, or with an argument without a type."""
        name = function.__name__
        description = inspect.getdoc(function)
        if not description:
            raise TypeError(f"tool {name}: no docstring to tell the model what it does")
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for argument in inspect.signature(function).parameters.values():
            if argument.name not in hints:
                raise TypeError(f"tool {name}: argument {argument.name} has no type")
            default = ... if argument.default is inspect.Parameter.empty else argument.default
            fields[argument.name] = (hints[argument.name], default)
        model = create_model(name, __config__=ConfigDict(extra="ignore", frozen=True), **fields)
        return cls(name, " ".join(description.split()), model, function)

    @property
    def spec(self) -> ToolSpec:
        """As the model sees it."""
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        return ToolSpec(self.name, self.description, schema)

    async def call(self, arguments: str) -> Said:
        """Run it with arguments as a model wrote them.

        Raises:
            MissingSlots: what the visitor must be asked for. BadCall.
        """
        try:
            written = json.loads(arguments or "{}")
        except ValueError:
            raise BadCall(f"{self.name}: the arguments are not JSON") from None
        if not isinstance(written, dict):
            raise BadCall(f"{self.name}: the arguments must be a JSON object")
        # What a model does not know it often writes as null or an empty text.
        given = {name: value for name, value in written.items() if value not in (None, "")}
        try:
            checked = self.arguments.model_validate(given)
        except ValidationError as err:
            missing = [str(e["loc"][0]) for e in err.errors() if e["type"] == "missing" and len(e["loc"]) == 1]
            if missing:
                raise MissingSlots([_in_words(name, self.arguments.model_fields[name]) for name in missing]) from None
            problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in err.errors()[:PROBLEMS]]
            raise BadCall(f"{self.name}: {'; '.join(problems)}") from None
        try:
            said = await self.function(**{name: getattr(checked, name) for name in self.arguments.model_fields})
        except (ValueError, OverflowError) as err:
            raise BadCall(f"{self.name}: {err}") from err
        return said if isinstance(said, Said) else Said(said)


class Tools:
    """The tools of one answer, by name."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in map(Tool.of, functions)}

    @property
    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    async def call(self, call: ToolCall) -> Said:
        """Raises: MissingSlots, BadCall, and what the tool itself raises but ValueError."""
        tool = self._tools.get(call.name)
        if tool is None:
            raise BadCall(f"there is no tool {call.name!r}; there are: {', '.join(self._tools)}")
        return await tool.call(call.arguments)


def _in_words(name: str, field: FieldInfo) -> str:
    return f"{name.replace('_', ' ')} ({field.description})" if field.description else name.replace("_", " ")
