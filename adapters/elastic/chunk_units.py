"""Units as a chunk's document holds them: stored, never searched.

"units": {"said": [{"start": 0, "text": "Open daily.", "kind": "prose", "block": 0}, …], "vectors": base64}
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from schemas.ingest import ChunkUnit, EmbeddedChunk


def stored(chunk: EmbeddedChunk) -> dict[str, Any]:
    """For the field `units`."""
    return {
        "said": [unit.model_dump() for unit in chunk.units],
        "vectors": base64.b64encode(chunk.unit_vectors).decode(),
    }


def read(source: Mapping[str, Any]) -> tuple[list[ChunkUnit], bytes]:
    """Units and their vectors (schemas.compact); none of a document from before there were any."""
    units = source.get("units")
    if not units:
        return [], b""
    said = [ChunkUnit.model_construct(**unit | {"headings": tuple(unit.get("headings", ()))}) for unit in units["said"]]
    return said, base64.b64decode(units["vectors"])
