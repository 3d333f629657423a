"""Writes widget/src/wire.ts: what the widget and the gateway say to each other, from the schemas themselves.

python -m widget.wire            writes
python -m widget.wire --check    exit code 1 when it is stale
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from gateway.edge.tokens import VisitorToken
from schemas.answer import Event
from schemas.conversation import ConversationDetail, ConversationList, FeedbackOrder
from schemas.handover import HandoverOrder, HandoverTaken
from schemas.http import ChatRequest, NextQuestions, SearchResult, SuggestResult, Welcome

TARGET = Path(__file__).parent / "src" / "wire.ts"
MODELS = (
    ChatRequest,
    ConversationDetail,
    ConversationList,
    FeedbackOrder,
    HandoverOrder,
    HandoverTaken,
    NextQuestions,
    SearchResult,
    SuggestResult,
    VisitorToken,
    Welcome,
)
SENT = {"ChatRequest", "FeedbackOrder", "HandoverOrder"}  # by the widget, which may leave out what has a default
WANTED = {"trace"}  # fields that visitors are sent where their site wants it
OPERATORS = {"trial"}  # fields that visitors are never sent
NOTE = "/* Written by `make widget` from schemas/; do not edit. */\n"
SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript() -> str:
    """The whole file."""
    union = TypeAdapter(Event).json_schema(mode="serialization")
    _, models = models_json_schema([(model, "serialization") for model in MODELS])
    shapes = union["$defs"] | models["$defs"]
    parts = [_interface(name, shapes[name]) for name in sorted(shapes)]
    return "\n".join([NOTE, *parts, f"export type Event = {_type(union)};\n"])


def _interface(name: str, shape: dict[str, Any]) -> str:
    if "properties" not in shape:
        return f"export type {name} = {_type(shape)};\n"
    return "\n".join([f"export interface {name} {{", *_fields(shape, sent=name in SENT), "}\n"])


def _fields(shape: dict[str, Any], *, sent: bool) -> Iterator[str]:
    required = shape.get("required", ())
    for field, value in shape["properties"].items():
        if field in OPERATORS:
            continue
        missing = field in WANTED or (sent and field not in required)
        yield f"  {field}{'?' if missing else ''}: {_type(value)};"


def _type(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        return str(shape["$ref"]).rpartition("/")[2]
    if "const" in shape:
        return f'"{shape["const"]}"'
    if "enum" in shape:
        return " | ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in shape["enum"])
    for several in ("anyOf", "oneOf"):
        if several in shape:
            return " | ".join(_type(one) for one in shape[several])
    if shape.get("type") == "array":
        items = _type(shape["items"])
        return f"({items})[]" if "|" in items else f"{items}[]"
    if shape.get("type") == "object":
        return f"Record<string, {_type(shape['additionalProperties'])}>"
    return SCALARS[shape["type"]]


def main() -> int:
    """Exit code."""
    fresh = typescript()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == fresh:
        return 0
    if "--check" in sys.argv[1:]:
        print("stale, run `make widget`: widget/src/wire.ts", file=sys.stderr)  # noqa: T201  # its answer
        return 1
    TARGET.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
