"""What a tool's JSON schema says of the values of its arguments: those that it gives, those to choose from.

{"default": 2}                ─▶ gives 2
{"const": "v1"}               ─▶ gives "v1", the only choice
{"enum": [1, 2, 3]}           ─▶ gives none, choices 1, 2, 3
{"anyOf": [{"enum": [1, 2]}, {"type": "null"}]}  ─▶ choices 1, 2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

Schema = Mapping[str, Any]

DEEPEST = 12  # references and alternatives inside each other
MOST = 50  # alternatives of one value that are looked at

_ANY_OF = ("anyOf", "oneOf")


class ArgumentSchema:
    """The schemas that a value may have. `root`: of all arguments, with what its parts refer to."""

    def __init__(self, root: Schema, *schemas: object) -> None:
        self._root = root
        self._schemas = [each for each in schemas if isinstance(each, Mapping)]

    @classmethod
    def of(cls, root: Schema, name: str) -> ArgumentSchema:
        """The schema of the argument of this name."""
        return cls(root, root).member(name)

    @cached_property
    def choices(self) -> list[Any]:
        """The values that it allows, without null; empty: it does not list them."""
        found = [_choices(self._root, each) for each in self._schemas]
        return next((each for each in found if each), [])

    @cached_property
    def given(self) -> list[Any]:
        """The values that it gives by itself: a default, a constant, the only choice."""
        choices = self.choices
        return [node["default"] for node in self._nodes() if "default" in node] + choices * (len(choices) == 1)

    def member(self, name: str) -> ArgumentSchema:
        """Of a property of an object."""
        objects = (node.get("properties") for node in self._nodes())
        return ArgumentSchema(self._root, *(each.get(name) for each in objects if isinstance(each, Mapping)))

    @property
    def items(self) -> ArgumentSchema:
        """Of each value of a list."""
        return ArgumentSchema(self._root, *(node.get("items") for node in self._nodes()))

    def _nodes(self) -> Iterator[Schema]:
        """The schemas, what they refer to, and their alternatives."""
        left, seen = list(self._schemas), 0
        while left and seen < MOST:
            node = left.pop()
            seen += 1
            yield node
            more = [
                _referred(self._root, node),
                *(each for key in (*_ANY_OF, "allOf") for each in _list(node.get(key))),
            ]
            left += [each for each in more if isinstance(each, Mapping)]


def _choices(root: Schema, schema: object, deep: int = 0) -> list[Any] | None:
    """None: it lists none."""
    if not isinstance(schema, Mapping) or deep > DEEPEST:
        return None
    if "const" in schema:
        return [schema["const"]]
    if values := _list(schema.get("enum")):
        return [each for each in values if each is not None]
    if (referred := _referred(root, schema)) is not None:
        return _choices(root, referred, deep + 1)
    for key in _ANY_OF:
        others = [each for each in _list(schema.get(key)) if not (isinstance(each, Mapping) and _is_null(each))]
        if others:
            found = [_choices(root, each, deep + 1) for each in others[:MOST]]
            return None if None in found else [value for each in found for value in each or ()]
    every = (_choices(root, each, deep + 1) for each in _list(schema.get("allOf"))[:MOST])
    return next((each for each in every if each), None)


def _is_null(schema: Schema) -> bool:
    return schema.get("type") == "null" or ("const" in schema and schema["const"] is None)


def _referred(root: Schema, schema: Schema) -> object:
    """What pydantic's `$ref` names."""
    ref, known = schema.get("$ref"), root.get("$defs")
    if not isinstance(ref, str) or not isinstance(known, Mapping):
        return None
    return known.get(ref.removeprefix("#/$defs/"))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
