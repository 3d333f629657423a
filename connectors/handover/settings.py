"""Where a site's visitors' messages to a person go: `sites.SITE.handover` in pagewire.yaml."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from connectors.cms.settings import WebhookSecret, WebUrl
from pipelines.runtime.secret import not_empty
from pipelines.runtime.settings import SettingsGroup

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
