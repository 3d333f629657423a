"""Reads microdata and RDFa Lite as nodes like those of JSON-LD (text.json_ld).

<p itemscope itemtype="https://schema.org/Product"><b itemprop="name">Lamp</b>  ─▶  {"@type": ..., "name": ["Lamp"]}
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from lxml import etree

from text.json_ld import Node

PROPERTIES = 2_000  # of a page
STEPS = 400  # through the elements in one property: properties may be nested
LONGEST = 5_000  # characters of a value
DEPTH = 20  # items in items
_ATTRIBUTES = {
    "meta": "content", "link": "href", "a": "href", "area": "href", "img": "src", "time": "datetime", "data": "value",
    "meter": "value",
}  # fmt: skip


def items_of(tree: Any) -> list[Node]:
    """The outermost items of an HTML document (lxml), in order."""
    found: list[Node] = []
    opened: list[tuple[Any, Node]] = []
    left = PROPERTIES
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if event == "end":
            if opened and opened[-1][0] is element:
                opened.pop()
            continue
        type = element.get("itemtype") or element.get("typeof")
        names = element.get("itemprop") or (element.get("property") if element.tag != "meta" or opened else None)
        if not (type or names) or not left or not isinstance(element.tag, str):
            continue
        left -= 1
        node: Node | None = {"@type": type.split()[:5]} if type and len(opened) < DEPTH else None
        if names and opened:
            value = node if node is not None else _value(element)
            for name in names.split()[:5]:
                opened[-1][1].setdefault(name.removeprefix("schema:"), []).append(value)
        elif node is not None:
            found.append(node)
        if node is not None:
            opened.append((element, node))
    return found


def _value(element: Any) -> str:
    said = element.get("content") or element.get(_ATTRIBUTES.get(element.tag, "content"))
    return str(said or " ".join(_pieces(element)))[:LONGEST]


def _pieces(element: Any) -> Iterator[str]:
    """The text in an element, like `itertext`, but only of its first steps."""
    for event, inner in islice(etree.iterwalk(element, events=("start", "end", "comment", "pi")), STEPS):
        piece = inner.text if event == "start" else inner.tail if inner is not element else None
        if piece:
            yield piece
