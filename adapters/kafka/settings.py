"""Kafka's address, our login, and the shape of new topics."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from adapters.tls import TlsFiles
from pipelines.runtime.errors import named
from pipelines.runtime.settings import LocalPath, SettingsGroup

# The names of Kafka's own clients, so that values can be copied from a provider's documentation.
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
MAX_PARTITIONS = 1000  # of a topic; far more than there are workers
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@,\[\]]+):\d{1,5}")


class KafkaSettings(SettingsGroup):
    """The bus."""

    kafka: str | None = Field(
        default=None,
        description="Bootstrap servers `host:port,...`, several in case one is down; default: the local engine.",
    )
    kafka_security_protocol: SecurityProtocol = Field(
        default="PLAINTEXT",
        description="`SSL` and `SASL_SSL` are TLS, `SASL_*` log in; Kafka calls it `security.protocol`.",
    )
    kafka_ca: LocalPath | None = Field(
        default=None,
        description="PEM file of the authority that signed the brokers' certificates; default: those of the system.",
    )
    kafka_certificate: LocalPath | None = Field(
        default=None, description="PEM file of our own certificate, where brokers ask for one (mutual TLS)."
    )
    kafka_certificate_key: LocalPath | None = Field(
        default=None, description="PEM file of its key; default: in the same file."
    )
    kafka_certificate_password: SecretStr | None = Field(default=None, description="Password of that key.")
    kafka_sasl_mechanism: SaslMechanism | None = Field(
        default=None, description="How we log in, with `SASL_SSL` and `SASL_PLAINTEXT`."
    )
    kafka_user: str | None = Field(
        default=None, description="User of `PLAIN` and `SCRAM-*`; with `OAUTHBEARER` the client's id."
    )
    kafka_password: SecretStr | None = Field(
        default=None, description="Password of that user; with `OAUTHBEARER` the client's secret."
    )
    kafka_oauth_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s@]+$",
        description="Token endpoint of `OAUTHBEARER`: OAuth 2.0 client credentials (RFC 6749, section 4.4).",
    )
    kafka_oauth_scope: str | None = Field(default=None, description="Scope to ask for, where the endpoint wants one.")
    topic_prefix: str = Field(default="", pattern=r"^[A-Za-z0-9._-]*$", description="Put before every topic and group.")
    partitions: int = Field(
        default=4,
        ge=1,
        le=MAX_PARTITIONS,
        description="Partitions of new topics; `pagewire topics --partitions` adds some to existing topics.",
    )
    replication: int = Field(default=1, ge=1, description="Copies of new topics (3 in production).")

    @field_validator("kafka")
    @classmethod
    def _servers(cls, value: str | None) -> str | None:
        if value is None:
            return None
        servers = [server for server in map(str.strip, value.split(",")) if server]
        for number, server in enumerate(servers, 1):
            if not _SERVER.fullmatch(server):  # not part of the message: it may contain a password
                raise ValueError(f"server {number} is not `host:port`; servers are written `one:9092,two:9092`")
            if not 0 < int(server.rpartition(":")[2]) < 65536:
                raise ValueError(f"the port of server {number} is not 1 to 65535")
        if not servers:
            raise ValueError("must name a server, `host:port`")
        return ",".join(servers)

    @property
    def kafka_tls(self) -> TlsFiles | None:
        """The TLS files; None: TLS is off."""
        if self.kafka_security_protocol not in ("SSL", "SASL_SSL"):
            return None
        password = self.kafka_certificate_password
        return TlsFiles(
            "kafka",
            self.kafka_ca,
            self.kafka_certificate,
            self.kafka_certificate_key,
            password.get_secret_value() if password else None,
        )

    @model_validator(mode="after")
    def _security_complete(self) -> Self:
        protocol = self.kafka_security_protocol
        if tls := self.kafka_tls:
            tls.context()  # reads the files, so that wrong ones fail at the start
        elif given := [name for name in _TLS_ONLY if getattr(self, name) is not None]:
            raise ValueError(
                f"{named(given[0])}: there is no TLS with kafka_security_protocol {protocol}; "
                "PAGEWIRE_KAFKA_SECURITY_PROTOCOL=SSL or SASL_SSL"
            )
        if self.kafka_certificate is None and (self.kafka_certificate_key or self.kafka_certificate_password):
            raise ValueError(f"{named('kafka_certificate')}: there is a key or its password, but no certificate")
        mechanism = self.kafka_sasl_mechanism
        if mechanism is None:
            if protocol.startswith("SASL_"):
                raise ValueError(
                    f"{named('kafka_sasl_mechanism')}: kafka_security_protocol {protocol} needs one: PLAIN, "
                    "SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
                )
        elif not protocol.startswith("SASL_"):
            raise ValueError(
                f"{named('kafka_sasl_mechanism')}: there is no login with kafka_security_protocol {protocol}; "
                "PAGEWIRE_KAFKA_SECURITY_PROTOCOL=SASL_SSL"
            )
        for name in _NEEDED.get(mechanism or "", ()):
            if getattr(self, name) is None:
                raise ValueError(f"{named(name)}: kafka_sasl_mechanism {mechanism} needs it")
        for name in _LOGIN - set(_NEEDED.get(mechanism or "", ())):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{named(name)}: kafka_sasl_mechanism "
                    + (f"{mechanism} does not use it" if mechanism else "is not set, so it would not be used")
                )
        return self


_TLS_ONLY = ("kafka_ca", "kafka_certificate", "kafka_certificate_key", "kafka_certificate_password")
_USER = ("kafka_user", "kafka_password")
_OAUTH = ("kafka_oauth_url", *_USER)
_LOGIN = frozenset(_OAUTH)
_NEEDED = {"PLAIN": _USER, "SCRAM-SHA-256": _USER, "SCRAM-SHA-512": _USER, "OAUTHBEARER": _OAUTH}
