"""Run with the code of one release and none of ours: reads and writes messages as that release does.

In:  [{"name", "kinds": ["module:Class", ...], "value"}], a class being the first of its names that the release has.
Out: {name: {"written", "read", "refused"}}, each null where there is none; a kind that it does not know is left out.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


def find(kinds: list[str]) -> Any:
    for kind in kinds:
        module, _, name = kind.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return None


def written(kind: Any, value: Any) -> Any:
    """As this release would write it, without what it does not know; null: it has no such thing to say."""
    try:
        message = kind.model_validate_json(json.dumps(value), extra="ignore")
    except ValueError:
        return None
    return json.loads(message.encode()) if hasattr(kind, "encode") else message.model_dump(mode="json")


def passed_on(kind: Any, value: Any) -> Any:
    """Read, and written again. Raises: ValueError: it cannot be read."""
    if hasattr(kind, "decode"):
        return json.loads(kind.decode(json.dumps(value).encode()).encode())
    if hasattr(kind, "stored"):
        return kind.stored(value).dumped()
    return kind.model_validate(value).model_dump(mode="json")


def main() -> None:
    said = {}
    for sample in json.load(sys.stdin):
        kind = find(sample["kinds"])
        if kind is None:
            continue
        answer = {"written": written(kind, sample["value"]), "read": None, "refused": None}
        try:
            answer["read"] = passed_on(kind, sample["value"])
        except ValueError as err:
            answer["refused"] = str(err)
        said[sample["name"]] = answer
    json.dump({"code": importlib.import_module("schemas").__file__, "said": said}, sys.stdout)


main()
