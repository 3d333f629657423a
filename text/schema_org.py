"""Reads values of nodes (text.json_ld), which may be of any type, as schema.org allows and websites write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from text.html import one_line
from text.json_ld import Node

LONGEST = 500  # characters of a line
VALUES = 200  # of one property
TYPES = 10
_ADDRESS = re.compile(r"^.*[/#:]", re.DOTALL)


def types_of(node: Node) -> frozenset[str]:
    """The names of its types, without their address; of subtypes of events and products also `Event`, `Product`."""
    said = node.get("@type")
    written = said[:TYPES] if isinstance(said, list) else [said]
    types = set(filter(None, map(term, written)))
    if any(type.endswith(("Event", "Festival")) for type in types):
        types.add("Event")
    if types & {"ProductGroup", "IndividualProduct", "ProductModel", "SomeProducts"}:
        types.add("Product")
    return frozenset(types)


def term(value: Any) -> str:
    """The name of a term of schema.org without its address: `Monday` of `https://schema.org/Monday`."""
    if isinstance(value, dict):
        value = value.get("@id") or first(value, "name")
    return _ADDRESS.sub("", value.strip()) if isinstance(value, str) and len(value) <= LONGEST else ""


def nested(node: Node, name: str) -> Iterator[Node]:
    value = node.get(name)
    return (one for one in (value[:VALUES] if isinstance(value, list) else [value]) if isinstance(one, dict))


def first(node: Node, name: str) -> Any:
    """The first value of a property; None without one."""
    value = node.get(name)
    value = next(iter(value), None) if isinstance(value, list) else value
    return value["@value"] if isinstance(value, dict) and "@value" in value else value


def line(value: Any) -> str:
    """A text, or the name of a node, as one line; empty if it is neither, or too long for a name."""
    if isinstance(value, dict):
        value = first(value, "name")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    said = one_line(value) if isinstance(value, str) and len(value) <= 4 * LONGEST else ""
    return said if len(said) <= LONGEST else ""
