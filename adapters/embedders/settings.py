"""Which embedder makes vectors."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from adapters.llm.settings import OpenAISettings


class EmbedderSettings(OpenAISettings):
    """The embedder of new indexes."""

    embedder: str = Field(default="lite", description="`lite`, `bge-m3`, `onnx:FOLDER` or `openai:MODEL`.")
    bge_model: str = Field(
        default="BAAI/bge-m3", description="Local path, or name in the hub cache, of the bge-m3 weights."
    )
    nice: int = Field(
        default=0,
        ge=0,
        le=19,
        description="How far the model that a worker computes with gives way to others, as nice(1) counts; 19: to "
        "everybody, at once. Linux only. `pagewire up` takes 19 for its bulk worker, unless this says otherwise.",
    )

    @field_validator("embedder")
    @classmethod
    def _embedder_known(cls, value: str) -> str:
        if value not in ("lite", "bge-m3") and not re.match(r"(openai|onnx):\S", value):
            raise ValueError("must be lite, bge-m3, onnx:FOLDER or openai:MODEL")
        return value
