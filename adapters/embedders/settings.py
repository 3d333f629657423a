"""The choice of the embedder."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from adapters.llm.settings import OpenAISettings

NAMES = ("lite", "bge-m3", "bge-m3-sparse")
MUST_BE = "must be lite, bge-m3, bge-m3-sparse, onnx:FOLDER or openai:MODEL"


class EmbedderSettings(OpenAISettings):
    """The embedder of new indexes."""

    embedder: str = Field(
        default="lite", description="`lite`, `bge-m3`, `bge-m3-sparse`, `onnx:FOLDER` or `openai:MODEL`."
    )
    bge_model: str = Field(
        default="BAAI/bge-m3", description="Local path, or name in the hub cache, of the bge-m3 weights."
    )
    nice: int = Field(
        default=0,
        ge=0,
        le=19,
        description="Niceness (nice(1)) of the threads that compute a worker's model; 19: the lowest priority. Linux "
        "only. `pagewire up` uses 19 for its bulk worker, unless this is set.",
    )

    @field_validator("embedder")
    @classmethod
    def _embedder_known(cls, value: str) -> str:
        if value not in NAMES and not re.match(r"(openai|onnx):\S", value):
            raise ValueError(MUST_BE)
        return value
