'''Registry: a tool is a typed function; what the model reads of it comes from its signature and docstring.

async def bus(stop: Annotated[str, Field(description="Name of the stop.")], at: time | None = None) -> str:
    """Says when the next bus leaves."""

A parameter without a `Field` is described by the `Args:` of the docstring. One with an `alias` has that name for the
model and its visitors, and its own for the function.

Tool.of(bus).spec  ─▶ {"name": "bus", "description": "Says when ...", "parameters": <JSON schema>}
Tool.of(bus).call('{"stop": "Mill"}')  ─▶ checked arguments, filled in ─▶ await bus(stop="Mill")
'''

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from docstring_parser import parse
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import from_json

from pipelines.query.answer.tools.argument_schema import ArgumentSchema
from pipelines.query.ports import ToolSpec
from prompts.loader import ToolCall
from schemas.query import Source

PROBLEMS = 3  # of wrong arguments that the model reads
ARGUMENT_CHARS = 8_000  # of a call as a model writes it
COMPLAINT_CHARS = 500  # of what is wrong with a call
SHOWN = 60  # characters of a tool's name that does not exist, or of a value to choose
CHOICES = 20  # of an argument that the visitor is asked for

CONFIG = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, protected_namespaces=())


@dataclass(frozen=True)
class Said:
    """What a tool says, and the sources it has found."""

    text: str
    sources: tuple[Source, ...] = ()


class MissingSlots(Exception):
    """Arguments that are not given yet; `slots` says in words what they are.

    `given`: those that are known.
    """

    def __init__(self, slots: list[str], names: Iterable[str] = (), given: Mapping[str, Any] | None = None) -> None:
        super().__init__(", ".join(slots))
        self.slots = slots
        self.names = tuple(names)
        self.given = dict(given or {})


class BadCall(Exception):
    """No such tool, or arguments that make no sense; says what the model may do about it."""


class ToolFailed(Exception):
    """A tool of the site gave no result; says why, to the model and to operators, without secrets."""


# Keyword arguments with types, a docstring, words or `Said` in return; ValueError says what is wrong.
Function = Callable[..., Awaitable[str | Said]]


@dataclass(frozen=True)
class Tool:
    """One function as a tool.

    `title`: of a tool of the site, what its visitors read above its result, which is a source then; empty: one of ours.
    `groups`: access groups whose visitors may have it called; None: everybody.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    function: Function
    title: str = ""
    schema: Mapping[str, Any] | None = None  # of the arguments, as the model reads it; default: that of `arguments`
    groups: Collection[str] | None = None

    @classmethod
    def of(cls, function: Function) -> Tool:
        """Raises: TypeError: a tool without docstring, or with an argument that cannot be named or has no type."""
        name = function.__name__
        described = parse(inspect.getdoc(function) or "")
        description = f"{described.short_description or ''} {described.long_description or ''}".split()
        if not description:
            raise TypeError(f"tool {name}: no docstring to tell the model what it does")
        told = {each.arg_name: " ".join((each.description or "").split()) for each in described.params}
        try:
            hints = get_type_hints(function, include_extras=True)
            fields: dict[str, Any] = {}
            for argument in inspect.signature(function).parameters.values():
                if argument.kind not in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY):
                    raise TypeError(f"tool {name}: argument {argument.name} cannot be given by its name")
                if argument.name not in hints:
                    raise TypeError(f"tool {name}: argument {argument.name} has no type")
                hint = _described(hints[argument.name], told.get(argument.name))
                # A default may stand in the `Field` of the type as well.
                empty = argument.default is inspect.Parameter.empty
                fields[argument.name] = hint if empty else (hint, argument.default)
            model = create_model(name, __config__=CONFIG, **fields)
            names = [_written_as(name, field) for name, field in model.model_fields.items()]
            if doubled := [each for each in names if names.count(each) > 1]:
                raise TypeError(f"tool {name}: two arguments are called {doubled[0]}")
            model.model_json_schema()
        except (NameError, PydanticUserError) as err:
            raise TypeError(f"tool {name}: no schema can be made of its arguments: {err}") from err
        return cls(name, " ".join(description), model, function)

    @property
    def spec(self) -> ToolSpec:
        schema = dict(self.schema or self.arguments.model_json_schema())
        schema.pop("title", None)
        return ToolSpec(self.name, self.description, schema)

    def is_for(self, groups: Collection[str]) -> bool:
        """Whether a visitor with these access groups may have it called."""
        return self.groups is None or not set(self.groups).isdisjoint(groups)

    def read(self, arguments: str) -> dict[str, Any]:
        """The arguments that a model wrote, without the empty ones. Raises: BadCall: no JSON object, or too long."""
        if len(arguments) > ARGUMENT_CHARS:
            raise BadCall(f"{self.name}: the arguments are longer than {ARGUMENT_CHARS} characters")
        try:
            written = from_json(arguments or "{}")
        except (ValueError, TypeError):  # a lone surrogate, too: no message could carry it
            raise BadCall(f"{self.name}: the arguments are not JSON") from None
        if not isinstance(written, dict):
            raise BadCall(f"{self.name}: the arguments must be a JSON object")
        # What a model does not know it often writes as null or an empty text.
        return {name: value for name, value in written.items() if value not in (None, "") and name in self.fields}

    @property
    def fields(self) -> dict[str, FieldInfo]:
        """The arguments, by the names that a model writes."""
        return {_written_as(name, field): field for name, field in self.arguments.model_fields.items()}

    def missing(self, given: Collection[str]) -> list[str]:
        """The arguments that it needs besides these."""
        return [name for name, field in self.fields.items() if field.is_required() and name not in given]

    def in_words(self, names: Iterable[str]) -> list[str]:
        """These arguments as a visitor can be asked for them."""
        fields, schema = self.fields, self.spec.parameters
        return [_in_words(name, fields[name], ArgumentSchema.of(schema, name).choices) for name in names]

    async def call(self, given: Mapping[str, Any]) -> Said:
        """Run it with arguments that a model gave.

        Raises: MissingSlots: what the visitor must be asked for. BadCall.
        """
        try:
            checked = self.arguments.model_validate(given)
        except ValidationError as err:
            missing = [str(e["loc"][0]) for e in err.errors() if e["type"] == "missing" and len(e["loc"]) == 1]
            if missing:
                raise MissingSlots(self.in_words(missing)) from None
            problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in err.errors()[:PROBLEMS]]
            raise BadCall(f"{self.name}: {'; '.join(problems)[:COMPLAINT_CHARS]}") from None
        try:
            said = await self.function(**{name: getattr(checked, name) for name in self.arguments.model_fields})
        except (ValueError, OverflowError) as err:
            raise BadCall(f"{self.name}: {str(err)[:COMPLAINT_CHARS]}") from err
        return said if isinstance(said, Said) else Said(said)


# The tools that a site has added.
SiteTools = Callable[[str], Awaitable[Sequence[Tool]]]


async def no_tools(site: str) -> Sequence[Tool]:
    return ()


class Tools:
    """The tools of one answer, by name."""

    def __init__(self, functions: Iterable[Function], of_site: Iterable[Tool] = ()) -> None:
        tools = [*of_site, *map(Tool.of, functions)]
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}

    @property
    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    def named(self, name: str) -> Tool:
        """Raises: BadCall: there is none."""
        tool = self._tools.get(name)
        if tool is None:
            raise BadCall(f"there is no tool {name[:SHOWN]!r}; there are: {', '.join(self._tools)}")
        return tool

    async def call(self, call: ToolCall) -> Said:
        """Raises: MissingSlots, BadCall, and what the tool itself raises but ValueError."""
        tool = self.named(call.name)
        return await tool.call(tool.read(call.arguments))


def _described(hint: Any, told: str | None) -> Any:
    """The type with the docstring's description, unless it has one of its own."""
    known = FieldInfo.from_annotation(hint).description
    return Annotated[hint, Field(description=told)] if told and not known else hint


def _written_as(name: str, field: FieldInfo) -> str:
    """The name of an argument as a model writes it. Raises: TypeError: it has several."""
    alias = field.validation_alias or name
    if not isinstance(alias, str):
        raise TypeError(f"argument {name} has an alias that is no name")
    return alias


def _in_words(name: str, field: FieldInfo, choices: Sequence[Any]) -> str:
    listed = [str(each)[:SHOWN] for each in choices[:CHOICES]] + ["…"] * (len(choices) > CHOICES)
    details = "; ".join(filter(None, [field.description, f"one of: {', '.join(listed)}" if listed else ""]))
    return f"{name.replace('_', ' ')} ({details})" if details else name.replace("_", " ")
