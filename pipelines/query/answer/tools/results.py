"""Results: what a tool of a site has worked out, as a source that the answer can cite."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from pipelines.query.answer.tools.registry import Tool
from schemas.query import Source

RESULT_CHARS = 4_000  # of a result that a model and a visitor read
GIVEN_CHARS = 200  # of an argument above it
DESCRIPTION_CHARS = 300


def as_source(tool: Tool, given: Mapping[str, Any], said: str, lang: str) -> Source:
    """The result below the arguments that it follows from: a visitor sees whether they were understood.

    Equal calls make equal sources, so that a second one gets the number of the first.
    """
    inputs = {name: _cut(_words(value), GIVEN_CHARS) for name, value in given.items()}
    above = "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in inputs.items())
    known = blake2b(json.dumps(given, sort_keys=True).encode(), digest_size=3)
    return Source(
        n=1,
        page_id=tool.name,
        lang=lang,
        title=tool.title,
        url="",
        field="content",
        ord=int.from_bytes(known.digest()),
        heading=f"Description: {_cut(tool.description, DESCRIPTION_CHARS)}",
        text="\n\n".join(filter(None, [above, _cut(said, RESULT_CHARS)])),
        score=0.0,
        revision=0,
        kind="tool",
    )


def _words(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list) and all(isinstance(each, (str, int, float)) for each in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
