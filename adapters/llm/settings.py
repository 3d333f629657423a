"""Which chat model writes answers, and where it is."""

from __future__ import annotations

import re

from pydantic import Field, SecretStr, field_validator

from pipelines.runtime.settings import SettingsGroup

TOKEN_CHARS = 8  # nearly twice what English has


class OpenAISettings(SettingsGroup):
    """A server that speaks OpenAI's API: of chat models, and of embedders."""

    openai_api_key: SecretStr | None = Field(default=None, description="Also read from `OPENAI_API_KEY`.")
    openai_base_url: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="Also read from `OPENAI_BASE_URL`."
    )

    @field_validator("openai_base_url")
    @classmethod
    def _base_alone(cls, value: str | None) -> str | None:
        base = re.sub(r"/(chat/completions|completions|embeddings|models)/?$", "", value or "")
        if value and base != value:
            raise ValueError("must be the address below which the routes stand, without the last parts of this one")
        return value


class ModelSettings(OpenAISettings):
    """The chat model."""

    llm_model: str | None = Field(default=None, min_length=1, description="Chat model; none: answers quote the pages.")
    llm_timeout: float = Field(default=30.0, gt=0, description="Seconds a model may be silent.")
    llm_small_model: str | None = Field(
        default=None,
        min_length=1,
        description="A cheaper model of the same server, for rephrasing questions and translating our own sentences; "
        "default: `llm_model`.",
    )
    llm_fallback_model: str | None = Field(
        default=None,
        min_length=1,
        description="Another model of the same server, asked where the first one fails before its first word.",
    )
    llm_temperature: float = Field(default=0.0, ge=0, le=2, description="0 says the same to the same question.")
    llm_thinking_tokens: int = Field(
        default=0,
        ge=0,
        description="Tokens on top of every limit, for models that think first and whose servers count that.",
    )
    llm_token_chars: int = Field(
        default=TOKEN_CHARS,
        ge=2,
        description="Characters that a token may have, over a whole text: what a model writes beyond its limit of "
        "tokens times this is not read, and the call is stopped, whether its server keeps to the limit or not (English "
        "has 4 to 5). What it thinks is measured likewise, by `llm_thinking_tokens`, or 8,000 if those are fewer.",
    )
    llm_at_once: int = Field(default=64, ge=1, description="Calls that one process has open at once; the others wait.")
    llm_failures: int = Field(
        default=10,
        ge=1,
        description="Failures in a row (the server away, silent or cutting off) after which a model is left alone.",
    )
    llm_rest: float = Field(
        default=30.0, gt=0, description="Seconds for which it is left alone; then one call tries it."
    )
