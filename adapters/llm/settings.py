"""The server of models, the chat model and the embedder."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from pydantic import Field, SecretStr, field_validator

from pipelines.runtime.settings import SettingsGroup

NO_KEY = "none"  # local servers need no key, but the client requires one


def key_of(secret: SecretStr | None) -> Callable[[], Awaitable[str]]:
    """A function that the client calls before each request, since a key file may change."""

    async def key() -> str:
        return secret.get_secret_value() if secret else NO_KEY

    return key


class OpenAISettings(SettingsGroup):
    """A server with OpenAI's API, for chat models and embedders."""

    openai_api_key: SecretStr | None = Field(default=None, description="Also read from `OPENAI_API_KEY`.")
    openai_base_url: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="Also read from `OPENAI_BASE_URL`."
    )

    @field_validator("openai_base_url")
    @classmethod
    def _base_alone(cls, value: str | None) -> str | None:
        base = re.sub(r"/(chat/completions|completions|embeddings|models)/?$", "", value or "")
        if value and base != value:
            raise ValueError("must be the base URL of the API's routes, without the last parts of this one")
        return value


class ModelSettings(OpenAISettings):
    """The chat model."""

    llm_model: str | None = Field(default=None, min_length=1, description="Chat model; none: answers quote the pages.")
    llm_timeout: float = Field(
        default=30.0,
        gt=0,
        description="Seconds a model may be silent. Rewriting a question may take a third of them, and 10 at least; an "
        "answer comes too late after three times as many.",
    )
    llm_fallback_model: str | None = Field(
        default=None,
        min_length=1,
        description="Another model of the same server, used when the first one fails before its first word.",
    )
    judging_model: str | None = Field(
        default=None,
        min_length=1,
        description="Model of the same server that `pagewire eval run --judge` and the stage `judge` ask. Default: "
        "`llm_model`; another one than writes the answers is better, as a model likes its own.",
    )
    llm_thinking_tokens: int = Field(
        default=0,
        ge=0,
        description="Tokens added to every limit, for reasoning models whose servers count the reasoning.",
    )

    @property
    def question_timeout(self) -> float:
        """Seconds until an answer comes too late: a model that was silent, then its fallback, and the quotation."""
        return 3 * self.llm_timeout


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
