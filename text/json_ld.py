"""Reads JSON-LD as nodes: dictionaries with `@type`. Websites write much that is no JSON, and little of it is lost.

scripts ─▶ JSON, mended where it is broken ─▶ nodes of arrays and `@graph`, references to other nodes resolved
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

Node = dict[str, Any]

SCRIPTS = 50  # of a page
LONGEST = 1_000_000  # characters of a script; a longer one is a catalogue
NODES = 2_000  # objects of a page that are looked at
_WRAPPED = re.compile(
    r"^\s*+(?://\s*+)?(?:<!--|<!\[CDATA\[|/\*\s*+<!\[CDATA\[\s*+\*/)|(?://\s*+|/\*\s*+)?(?:-->|\]\]>)"
)
# A string, which stays, or what JSON does not have: a comment, a comma before a closing bracket.
_EXTRA = re.compile(
    r'("(?:[^"\\]|\\.)*+\\?(?:"|\Z))|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|,(?=\s*+[}\]])', re.DOTALL
)


def nodes_of(scripts: Iterable[str]) -> list[Node]:
    """The outermost nodes of a page's scripts, in order. A script that cannot be read is left out."""
    found: list[Node] = []
    for _, script in zip(range(SCRIPTS), scripts, strict=False):
        found += list(_outermost(_parsed(script)))[: NODES - len(found)]
    by_id = {id: node for node in _all(found) if len(node) > 1 and isinstance(id := node.get("@id"), str)}
    _resolve(found, by_id)
    return found


def _parsed(script: str) -> Any:
    if len(script) > LONGEST:
        return None
    for text in (script, _EXTRA.sub(lambda found: found[1] or "", _WRAPPED.sub("", script))):
        try:
            return json.loads(text, strict=False)  # line ends in strings are common
        except (ValueError, RecursionError):
            continue
    return None


def _outermost(value: Any) -> Iterator[Node]:
    waiting, left = deque([value]), NODES
    while waiting and left:
        one = waiting.popleft()
        left -= 1
        if isinstance(one, list):
            waiting.extendleft(reversed(one[:NODES]))
        elif isinstance(one, dict):
            if "@graph" in one:
                waiting.appendleft(one["@graph"])
            if "@type" in one:
                yield one


def _all(found: Iterable[Node]) -> Iterator[Node]:
    """All objects, the outer ones first."""
    waiting: deque[Any] = deque(found)
    left = NODES
    while waiting and left:
        one = waiting.popleft()
        if isinstance(one, dict):
            left -= 1
            yield one
            waiting.extend(value for value in one.values() if isinstance(value, dict | list))
        elif isinstance(one, list):
            waiting.extend(value for value in one[:NODES] if isinstance(value, dict | list))


def _resolve(found: Iterable[Node], by_id: dict[str, Node]) -> None:
    """Put nodes in the place of references to them. Readers go down a fixed number of steps, so circles do no harm."""
    for node in list(_all(found)):
        for name, value in node.items():
            node[name] = [_meant(one, by_id) for one in value] if isinstance(value, list) else _meant(value, by_id)


def _meant(value: Any, by_id: dict[str, Node]) -> Any:
    if isinstance(value, dict) and len(value) == 1 and isinstance(id := value.get("@id"), str):
        return by_id.get(id, value)
    return value
