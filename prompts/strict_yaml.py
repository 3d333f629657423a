"""Reads untrusted YAML, and refuses its harmful features: anchors, tags, deep nesting, duplicate keys."""

from __future__ import annotations

from typing import Any

import yaml

try:  # libyaml reads a pagewire.yaml of 10,000 sites in a tenth of the time
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML was built without it
    from yaml import SafeLoader  # type: ignore[assignment]

MAX_DEPTH = 8  # levels of lists and mappings; our prompts have three


class NotPlain(ValueError):
    """The text has a forbidden feature, or is not YAML; names it."""


class DoubledKey(yaml.MarkedYAMLError):
    """A mapping has a key twice."""


class UniqueKeys(SafeLoader):
    """YAML's safe loader, but it refuses duplicate keys, which would silently replace each other.

    Raises: DoubledKey: names the key and its line.
    """

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) and not key.tag.endswith(":merge") else None
            if name is not None and name in seen:
                raise DoubledKey(problem=f"the key {name!r} stands twice", problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def check_plain(text: str) -> None:
    """Refuse anchors, aliases, tags and deep nesting: with them, a short text can keep YAML's parser busy for hours or
    exhaust its stack. Call it before the text is loaded.

    Raises: NotPlain: it has one of these, or is not YAML.
    """
    depth = 0
    try:
        for event in yaml.parse(text, SafeLoader):
            if isinstance(event, yaml.NodeEvent) and (event.anchor or getattr(event, "tag", None)):
                raise NotPlain("anchors, aliases and tags cannot be used")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise NotPlain(f"more than {MAX_DEPTH} levels")
    except yaml.YAMLError as err:
        raise NotPlain(f"cannot be read: {err}") from err


def load_safe(text: str) -> Any:
    """Parse one YAML document that an operator wrote. Raises: yaml.YAMLError."""
    return yaml.load(text, SafeLoader)


def load_plain(text: str) -> Any:
    """Parse one untrusted YAML document.

    Raises: NotPlain: see `check_plain`; ValueError, OverflowError: it has an invalid date or number.
    """
    check_plain(text)
    try:
        return load_safe(text)
    except yaml.YAMLError as err:
        raise NotPlain(f"cannot be read: {err}") from err
