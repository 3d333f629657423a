"""Where Elasticsearch is, who we are there, and what its indexes are made of."""

from __future__ import annotations

from typing import Self

from pydantic import Field, SecretStr, model_validator

from pipelines.runtime.settings import SettingsGroup


class ElasticSettings(SettingsGroup):
    """The index."""

    elasticsearch: str | None = Field(
        default=None,
        pattern=r"^https?://[^/@\s]+:\d+(/\S*)?$",  # its client wants the port; user and password are settings
        description="URL with port, `https://host:9200`; default: the local engine.",
    )
    shards: int = Field(default=1, ge=1, description="Primary shards of new indexes.")
    replicas: int = Field(default=0, ge=0, description="Replicas of new indexes (1 or more in production).")
    elasticsearch_api_key: SecretStr | None = Field(
        default=None, description="API key of Elasticsearch; wins over user and password."
    )
    elasticsearch_user: str | None = Field(default=None, description="User of Elasticsearch; needs the password too.")
    elasticsearch_password: SecretStr | None = Field(default=None, description="Password of that user.")

    @model_validator(mode="after")
    def _user_with_password(self) -> Self:
        if (self.elasticsearch_user is None) != (self.elasticsearch_password is None):
            raise ValueError("elasticsearch_user and elasticsearch_password: give both or neither")
        return self
