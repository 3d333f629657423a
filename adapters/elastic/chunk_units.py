"""Units in a chunk's document: stored, but not indexed.

"units": {"said": [{"start": 0, "text": "Open daily.", "kind": "prose", "block": 0}, …], "vectors": base64}
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from schemas.ingest import EmbeddedChunk


def stored(chunk: EmbeddedChunk) -> dict[str, Any]:
    """The value of the field `units`."""
    return {
        "said": [unit.model_dump() for unit in chunk.units],
        "vectors": base64.b64encode(chunk.unit_vectors).decode(),
    }


def read(source: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bytes]:
    """The units' fields, and their vectors (schemas.compact); empty for documents of older versions."""
    units = source.get("units")
    if not units:
        return [], b""
    said: list[dict[str, Any]] = units["said"]
    for unit in said:
        if "headings" in unit:
            unit["headings"] = tuple(unit["headings"])
    return said, base64.b64decode(units["vectors"])
