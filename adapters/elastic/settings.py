"""Elasticsearch's address, our credentials and the privileges they need, and the shape of new indexes."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from adapters.tls import TlsFiles
from pipelines.runtime.settings import LocalPath, SettingsGroup

_NODE = r"https?://[^/@,\s]+:\d+(/[^,\s]*)?"
_PORT = re.compile(r":(\d+)(?=/|,|\s|$)")

SiteIndex = Literal["own", "shared"]


class ElasticSettings(SettingsGroup):
    """The index."""

    elasticsearch: str | None = Field(
        default=None,
        # The client requires the port; user and password have settings of their own.
        pattern=rf"^{_NODE}(\s*,\s*{_NODE})*$",
        description="URL with port, `https://host:9200`, or those of several nodes with commas between them: requests "
        "go to the nodes that answer. Default: the local engine.",
    )
    elasticsearch_ca: LocalPath | None = Field(
        default=None,
        description="PEM file of the authority that signed the nodes' certificates; default: those of the system.",
    )
    shards: int = Field(default=1, ge=1, description="Primary shards of new indexes.")
    site_index: SiteIndex = Field(
        default="own",
        description="Whether a site gets an index of its own (`own`) or small sites share indexes (`shared`); a site's "
        "own `index` overrides this. Elasticsearch allows some 1,000 shards a node.",
    )
    replicas: int = Field(default=0, ge=0, description="Replicas of new indexes (1 or more in production).")
    elasticsearch_api_key: SecretStr | None = Field(
        default=None, description="API key of Elasticsearch; overrides user and password."
    )
    elasticsearch_user: str | None = Field(default=None, description="User of Elasticsearch; needs the password too.")
    elasticsearch_password: SecretStr | None = Field(default=None, description="Password of that user.")

    def shares_index(self, site: str) -> bool:
        """Whether new generations of the site go into an index of many sites."""
        return self.site_index == "shared"

    @property
    def elasticsearch_nodes(self) -> list[str]:
        """The URLs of the nodes."""
        return [url.strip() for url in (self.elasticsearch or "").split(",") if url.strip()]

    @property
    def elasticsearch_tls(self) -> TlsFiles:
        """The TLS files, for nodes with https URLs."""
        return TlsFiles("elasticsearch", self.elasticsearch_ca)

    @field_validator("elasticsearch")
    @classmethod
    def _ports(cls, value: str | None) -> str | None:
        for number in _PORT.findall(value or ""):
            if not 0 < int(number) < 65536:
                raise ValueError("a port is 1 to 65535")
        return value

    @model_validator(mode="after")
    def _files_are_there(self) -> Self:
        if self.elasticsearch_ca is None:
            return self
        if any(url.startswith("http:") for url in self.elasticsearch_nodes):
            raise ValueError("elasticsearch_ca (PAGEWIRE_ELASTICSEARCH_CA): PAGEWIRE_ELASTICSEARCH is no https:// URL")
        self.elasticsearch_tls.context()  # reads the file, so that a wrong one fails at the start
        return self

    @model_validator(mode="after")
    def _user_with_password(self) -> Self:
        if (self.elasticsearch_user is None) != (self.elasticsearch_password is None):
            raise ValueError("elasticsearch_user and elasticsearch_password: give both or neither")
        return self


# https://www.elastic.co/docs/reference/elasticsearch/security-privileges
#   monitor                  health, and the common clock of all gateways (nodes/stats)
#   manage_index_templates   the template, before the first index
#   manage                   indexes, aliases, mappings, settings, refreshes; on our indexes only
#   read, write              documents
ROLE: Final[dict[str, Any]] = {
    "cluster": ["manage_index_templates", "monitor"],
    "indices": [{"names": ["pagewire-*", "pagewire.*"], "privileges": ["manage", "read", "write"]}],
}
