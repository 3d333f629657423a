"""The configuration of a site's connectors: `sites.SITE.connectors.NAME` in pagewire.yaml, by `kind`.

`secret: ${NAME}` reads a secret from the environment variable NAME, or from the file that NAME_FILE names.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)

from pipelines.runtime.secret import not_empty
from pipelines.runtime.settings import HOST_NAME, HomeSettings, LocalPath, SettingsGroup, Site, SitesSettings
from schemas.base import Lang, SiteId

SECRET_PREFIX = "whsec_"  # noqa: S105  # by Standard Webhooks
SHORTEST_KEY = 24  # bytes, https://github.com/standard-webhooks/standard-webhooks
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SECRETS = ("secret", "password")
# Sources of changes that are not connectors (schemas.page.PageChange.source).
RESERVED = frozenset({"push", "import"})


def signing_key(secret: SecretStr) -> bytes:
    """The key of a secret, `whsec_` + base64 of the key.

    Raises:
        ValueError: the secret has another form, or is too short to be safe.
    """
    text = secret.get_secret_value()
    how = "must be whsec_ and the base64 of 24 random bytes or more: echo whsec_$(openssl rand -base64 32)"
    if not text.startswith(SECRET_PREFIX):
        raise ValueError(how)
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(how) from None
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"{how}; this is of {len(key)} bytes")
    return key


def _is_signing_secret(secret: SecretStr) -> SecretStr:
    signing_key(secret)
    return secret


def _is_free(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name!r} is how changes are marked that come from no connector; pick another name")
    return name


WebhookSecret = Annotated[SecretStr, AfterValidator(_is_signing_secret)]
# Without user and password, which have settings of their own that are never printed.
WebUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/@?#]+(/[^\s#]*)?$", max_length=2_000)]
ConnectorName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$"), AfterValidator(_is_free)
]  # part of its webhook's path, and the source of its changes


class _Connector(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PushConnector(_Connector):
    """Any sender of signed webhooks."""

    kind: Literal["push"]
    secret: WebhookSecret = Field(description="Signs its webhooks: `echo whsec_$(openssl rand -base64 32)`.")


class WordPressConnector(_Connector):
    """The plugin pushes, the REST API is read by `import` and `reconcile`."""

    kind: Literal["wordpress"]
    url: WebUrl = Field(description="Address of the site, `https://www.example.org`.")
    secret: WebhookSecret | None = Field(default=None, description="The plugin's secret; none: it is read only.")
    user: str | None = Field(default=None, description="Who reads: only what is public is taken all the same.")
    password: Annotated[SecretStr, AfterValidator(not_empty)] | None = Field(
        default=None, description="Application password of that user."
    )
    as_visitor: bool = Field(
        default=True,
        description="Read a page only where its own address shows it to visitors. `false` takes all that the REST API "
        "says, for a site whose pages need a login and whose chat does, too.",
    )

    @model_validator(mode="after")
    def _user_with_password(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password: give both or neither")
        return self


class ModuleConnector(_Connector):
    """A module of ours inside the CMS pushes, and answers `import` and `reconcile`."""

    kind: str
    url: WebUrl = Field(description="Address of the site, `https://www.example.org`.")
    secret: WebhookSecret = Field(description="The secret of our module or app.")


class WagtailConnector(ModuleConnector):
    """The Django app pushes, and answers `import` and `reconcile`."""

    kind: Literal["wagtail"]


class DrupalConnector(ModuleConnector):
    """The Drupal module pushes, and answers `import` and `reconcile`."""

    kind: Literal["drupal"]


class FolderConnector(_Connector):
    """Markdown, HTML and office files."""

    kind: Literal["folder"]
    path: LocalPath = Field(description="The folder.")
    url: WebUrl | None = Field(
        default=None, description="Where the folder is served: pages that do not say their `url` get one below it."
    )


class SitemapConnector(_Connector):
    """A website read as a search engine does."""

    kind: Literal["sitemap"]
    url: WebUrl = Field(
        description="A `sitemap.xml`, or the site's own address: then robots.txt and `/sitemap.xml` are asked."
    )
    crawl: bool = Field(default=False, description="Follow links from `url` on instead; for sites without a sitemap.")
    max_pages: int = Field(default=50_000, ge=1, description="Pages at most; a site with more is refused.")
    delay: float = Field(
        default=0.5, ge=0, le=60, description="Seconds between two requests; a longer one in robots.txt wins."
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Beginnings of paths that are left out, such as `/calendar/`."
    )
    lang: Lang | None = Field(
        default=None, description="Language of pages that do not say theirs; default: the site's first."
    )
    indexnow_key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{8,128}$")] | None = Field(
        default=None,
        description="The key with which the website pushes IndexNow; its key file shows it to everybody.",
    )
    linked_documents: bool = Field(
        default=False,
        description="Attach the PDF, DOCX and ODT files of this website that a page links to in its content, 20 at "
        "most.",
    )
    feeds: tuple[WebUrl, ...] = Field(
        default=(), max_length=20, description="RSS or Atom feeds, whose new entries `pagewire watch` visits."
    )
    feed_interval: float = Field(default=300, ge=1, le=86_400, description="Seconds between two polls of the feeds.")
    websub: WebUrl | None = Field(
        default=None,
        description="Public address of the gateway, `https://chat.example.org`: `pagewire watch` subscribes there to "
        "the feeds whose hubs speak WebSub, and new entries come at once. Default: the feeds are only polled.",
    )


Connector = Annotated[
    PushConnector | WordPressConnector | WagtailConnector | DrupalConnector | FolderConnector | SitemapConnector,
    Field(discriminator="kind"),
]
KINDS: tuple[type[_Connector], ...] = get_args(get_args(Connector)[0])


def webhook_secret(connector: Connector) -> SecretStr | None:
    """The secret of the connector's webhooks; None: it sends none."""
    return getattr(connector, "secret", None)


def variables(values: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any], str, str]]:
    """Secrets written as `${NAME}` in a configuration: path, the mapping that contains it, its key, NAME."""
    for site, of_site in _mappings(values.get("sites")):
        for group in ("connectors", "handover"):
            for name, holder in _mappings(of_site.get(group)):
                for key in SECRETS:
                    match = VARIABLE.fullmatch(text) if isinstance(text := holder.get(key), str) else None
                    if match:
                        yield ("sites", site, group, name, key), holder, key, match[1]
        tools = of_site.get("tools")
        for n, holder in enumerate(tools if isinstance(tools, list) else ()):
            text = holder.get("secret") if isinstance(holder, dict) else None
            if isinstance(text, str) and (match := VARIABLE.fullmatch(text)):
                yield ("sites", site, "tools", str(n), "secret"), holder, "secret", match[1]


def _mappings(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The well-formed mappings; the models refuse the others."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, dict):
                yield str(name), inner


class ConnectedSite(Site):
    """One website with its connectors."""

    connectors: dict[ConnectorName, Connector] = Field(
        default_factory=dict, description="Where its pages come from: name -> `kind` and what goes with it, see below."
    )


class FetchSettings(SettingsGroup):
    """Limits of fetching."""

    fetch_allow: tuple[str, ...] = Field(
        default=(),
        description="Hosts, addresses or networks that may be fetched from although they are not public, with commas "
        "between them: `cms.internal,10.1.0.0/16`. Else attachments, feeds and pages come from public addresses only.",
    )

    @field_validator("fetch_allow", mode="before")
    @classmethod
    def _from_one_line(cls, value: Any) -> Any:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("fetch_allow")
    @classmethod
    def _hosts_and_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            if not HOST_NAME.fullmatch(entry.rstrip(".")):
                try:
                    ip_network(entry.strip("[]"), strict=False)
                except ValueError:
                    raise ValueError(f"{entry!r} is no host, address or network") from None
        return value


class ConnectorsSettings(HomeSettings, FetchSettings, SitesSettings):
    """All sites' connectors."""

    sites: Mapping[SiteId, ConnectedSite] = Field(default_factory=dict)

    def site(self, name: str) -> ConnectedSite:
        """Raises: UnknownSite."""
        super().site(name)
        return self.sites[name]
