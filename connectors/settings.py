"""The tools of a site, `sites.SITE.tools` in pagewire.yaml, and where visitors' messages to a person go."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    SecretStr,
    StringConstraints,
    Tag,
    TypeAdapter,
    model_validator,
)

from connectors.cms.settings import WebhookSecret, WebUrl
from pipelines.runtime.secret import not_empty
from pipelines.runtime.settings import LocalPath, SettingsGroup
from schemas.page import Group

ToolName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]  # as models and their servers take it

_ADDRESS = re.compile(r"https?:", re.IGNORECASE)


def _header_value(secret: SecretStr) -> SecretStr:
    written = secret.get_secret_value()
    if not (written.isascii() and written.isprintable() and written == written.strip()):
        raise ValueError("must be ASCII on one line, without spaces or line ends around it: a header carries it")
    return secret


def _file_or_address(written: str) -> str:
    TypeAdapter(WebUrl if _ADDRESS.match(written) else LocalPath).validate_python(written)
    return written


class _OfferedTools(SettingsGroup):
    groups: tuple[Group, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Access groups whose visitors may have it called. Default: every visitor.",
    )


class PythonTool(_OfferedTools):
    """A Python function, where its name is not enough."""

    function: ToolName = Field(description="Name of its entry point.")


class OpenApiTools(_OfferedTools):
    """Operations of a web service that an OpenAPI document describes."""

    openapi: Annotated[str, AfterValidator(_file_or_address)] = Field(
        description="The document: a file, or an address. OpenAPI 3, as JSON or YAML."
    )
    operations: tuple[str, ...] = Field(
        min_length=1, description="Ids of the operations that become tools; `GET` and `POST` only. No other is called."
    )
    server: WebUrl | None = Field(
        default=None, description="Address of the service. Default: the first of the document's `servers`."
    )
    header: str = Field(
        default="Authorization", pattern=r"^[A-Za-z0-9-]{1,64}$", description="Header that carries `secret`."
    )
    secret: Annotated[SecretStr, AfterValidator(not_empty), AfterValidator(_header_value)] | None = Field(
        default=None, description="Its value, such as `Bearer ...`, best as `${NAME}`. Default: none is sent."
    )

    @model_validator(mode="after")
    def _secret_goes_where_the_site_says(self) -> Self:
        if self.secret is not None and self.address is not None and self.server is None:
            raise ValueError("give `server`: else the owner of the document chooses who gets the secret")
        return self

    @property
    def address(self) -> str | None:
        """The document's address; None: it is a file."""
        return self.openapi if _ADDRESS.match(self.openapi) else None

    @property
    def file(self) -> Path:
        return Path(self.openapi).expanduser()


def _kind(given: Any) -> str:
    if isinstance(given, str):
        return "name"
    return (
        "openapi" if isinstance(given, OpenApiTools) or (isinstance(given, dict) and "openapi" in given) else "python"
    )


SiteTool = Annotated[
    Annotated[ToolName, Tag("name")]  # of an entry point `pagewire.tools`
    | Annotated[PythonTool, Tag("python")]
    | Annotated[OpenApiTools, Tag("openapi")],
    Discriminator(_kind),
]


MailAddress = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,64}@[A-Za-z0-9.-]{1,190}$")]
Security = Literal["starttls", "tls", "none"]


class WebhookTarget(SettingsGroup):
    """A receiver of signed requests."""

    url: WebUrl = Field(
        description="Its address. One that is not public must be in `fetch_allow`; redirects are not followed."
    )
    secret: WebhookSecret = Field(description="Signs the requests: `echo whsec_$(openssl rand -base64 32)`.")


class MailTarget(SettingsGroup):
    """A mailbox, and the server that takes mail for it."""

    server: str = Field(min_length=1, description="Host of the mail server (SMTP), `mail.example.org`.")
    port: int = Field(default=587, ge=1, le=65_535, description="Its port.")
    security: Security = Field(
        default="starttls",
        description="`starttls` (587), `tls` from the first byte (465), or `none`: for a relay on this machine.",
    )
    user: str | None = Field(default=None, min_length=1, description="Who sends. Default: no sign-in.")
    password: Annotated[SecretStr, AfterValidator(not_empty)] | None = Field(
        default=None, description="Password of that user."
    )
    sender: MailAddress = Field(description="`From`; the visitor's address is in `Reply-To`.")
    to: tuple[MailAddress, ...] = Field(min_length=1, description="Who gets the messages.")

    @model_validator(mode="after")
    def _user_with_password(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password: give both or neither")
        if self.user is not None and self.security == "none":
            raise ValueError("security: `none` would send the password in the clear")
        return self


class HandoverSettings(SettingsGroup):
    """How a visitor's message reaches a person."""

    webhook: WebhookTarget | None = Field(default=None, description="To a ticket system or a team's chat, see below.")
    mail: MailTarget | None = Field(default=None, description="To a mailbox, see below.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.webhook is None) == (self.mail is None):
            raise ValueError("webhook, mail: give one of them")
        return self
