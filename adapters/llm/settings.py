"""Which chat model writes answers, and where it is."""

from __future__ import annotations

from pydantic import Field, SecretStr

from pipelines.runtime.settings import SettingsGroup


class OpenAISettings(SettingsGroup):
    """A server that speaks OpenAI's API: of chat models, and of embedders."""

    openai_api_key: SecretStr | None = Field(default=None, description="Also read from `OPENAI_API_KEY`.")
    openai_base_url: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="Also read from `OPENAI_BASE_URL`."
    )


class ModelSettings(OpenAISettings):
    """The chat model."""

    llm_model: str | None = Field(default=None, description="Chat model; none: answers quote the pages.")
    llm_timeout: float = Field(default=30.0, gt=0, description="Seconds a model may be silent.")
