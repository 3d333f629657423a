"""All settings in one flat class; each group is defined next to the code that it configures.

`pagewire.yaml` < environment `PAGEWIRE_*`: wiring.settings_file reads them, once, at start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_interface, ip_network
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, StringConstraints, field_validator, model_validator

from adapters.elastic.settings import ElasticSettings, SiteIndex
from adapters.llm.settings import EmbedderSettings, ModelSettings
from connectors.cms.settings import ConnectedSite, ConnectorsSettings
from connectors.settings import HandoverSettings, SiteTool
from pipelines.ingest.settings import AttachmentSettings, IntakeSettings
from pipelines.query.settings import QuerySettings
from pipelines.runtime.logs import LogSettings
from pipelines.runtime.secret import SHORTEST_KEY, SHORTEST_SIGNING, not_empty, strong
from pipelines.runtime.settings import HomeSettings, ListenSettings, LocalPath, SettingsGroup
from schemas.access_key import Scope, digest_of
from schemas.base import Lang, SiteId, language_tag
from schemas.page import Group
from schemas.query import MAX_QUESTION
from wiring.proxy_sign_in import Origin, ProxySignInSettings
from worker.settings import WorkerSettings

USER_PREFIX = "user:"  # before the names of users that a proxy has signed in; no key may have it

EVERYBODY: Literal["*"] = "*"
TrustedProxy = IPv4Network | IPv6Network | Literal["*"]
HOST = re.compile(r"[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*+")

ExampleQuestion = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION, strip_whitespace=True)]


class ChatSettings(SettingsGroup):
    """Whether a site's visitors are answered, and how often."""

    enabled: bool = Field(
        default=True,
        description="`false`: no question is answered, also not those of programs (403 `chat-off`), and no switch of "
        "the console or of `pagewire chat` can change it.",
    )
    daily_questions: int | None = Field(
        default=None,
        ge=1,
        description="Questions that all visitors together may ask in a day (UTC), through whichever gateway; after "
        "them 429 `daily-budget`. Programs with a key are not counted. Default: no limit.",
    )
    examples: dict[Lang, tuple[ExampleQuestion, ...]] = Field(
        default_factory=dict,
        description="Questions to begin with, by language: the chat offers three of them, `pagewire eval check` asks "
        "all. Default: up to three that are made from the site's own pages.",
    )
    show_steps: bool = Field(
        default=False,
        description="Whether visitors may open how an answer came about: what was searched for, how many passages were "
        "read, who wrote it. Never the prompt of a model.",
    )
    frequent_questions: bool = Field(
        default=False,
        description="Whether visitors see what three others or more have asked, while they type into the search "
        "field and below an answer. Needs `log_questions: on`. The words are visitors' own, never masked ones, only of "
        "questions that were answered from pages for everybody.",
    )


# pages: as Markdown, with lists of them (llms.txt); mcp: the MCP server; nlweb: the route `/ask` of NLWeb
AgentAccess = Literal["pages", "mcp", "nlweb"]


class SiteSettings(ConnectedSite):
    """One website."""

    origins: tuple[Origin, ...] = Field(
        default=(),
        description="Origins whose pages may embed the chat, such as `https://www.example.org`: scheme, host, and the "
        "port where it is not the usual one.",
    )
    edit_link: str = Field(
        default="",
        pattern=r"^(https?://\S+)?$",
        description="Where a page is edited in its CMS, for the editors' console: "
        "`https://cms.example.org/edit?post={id}`. `{id}` is the page's id, `{lang}` its language, `{url}` its "
        "address.",
    )
    author_mail: str = Field(
        default="",
        pattern=r"^([^\s@,;]+@[^\s@,;]+)?$",
        description="Mail address of the pages' author: the console offers editors a message to it about a page.",
    )
    chat: ChatSettings = Field(
        default=ChatSettings(), description="Whether and how often visitors are answered, see below."
    )
    agents: frozenset[AgentAccess] = Field(
        default=frozenset(),
        description="What assistants may use without a key, within the limits of visitors (docs/howto/agents.md): "
        "`pages` (whole pages as Markdown, and `llms.txt`), `mcp` (the MCP server), `nlweb` (`/ask`). "
        "Default: nothing.",
    )
    handover: HandoverSettings | None = Field(
        default=None,
        description="Where messages go that visitors leave for a person (docs/howto/handover.md), see below. Default: "
        "visitors are offered no form, and told `contact`.",
    )
    tools: tuple[SiteTool, ...] = Field(
        default=(),
        description="Tools that a model may call under the strategy `tools` (docs/howto/tools.md): names of Python "
        "functions, and operations of web services, see below. Default: those that every site has.",
    )
    index: SiteIndex | None = Field(
        default=None,
        description="`shared`: new indexes of this small site are parts of those of many; `own`: they are its own. "
        "Default: as PAGEWIRE_SITE_INDEX says. `pagewire index rebuild SITE --from embeddings --promote` moves it.",
    )
    attachment_folder: LocalPath | None = Field(
        default=None,
        description="Folder of the workers' machine in which `path` attachments of its pages may lie, no other site's "
        "files among them. Default: none are read.",
    )

    def spoken(self, lang: str) -> str | None:
        """The site's language that a language tag asks for; None: it has none like it."""
        tag = language_tag(lang)
        like = (own for own in self.languages if own.partition("-")[0] == tag.partition("-")[0])
        return tag if tag in self.languages else next(like, None)

    @property
    def hands_over(self) -> bool:
        return self.handover is not None


class KeySettings(SettingsGroup):
    """A bearer key, given by its hash: `printf %s KEY | sha256sum`."""

    name: str = Field(min_length=1, description="For logs and for you; says whose key it is.")
    sha256: Annotated[str, StringConstraints(to_lower=True)] = Field(
        pattern=r"^[0-9a-fA-F]{64}$", description="SHA-256 of the key in hex."
    )
    scopes: tuple[Scope, ...] = Field(
        min_length=1, description="What the key may do; `edit` has `view` with it, `admin` both."
    )
    site: SiteId | None = Field(default=None, description="The one site it is good for; default: all.")
    groups: tuple[Group, ...] = Field(
        default=(), description="Access groups whose pages it may read, and may give to visitors."
    )

    @field_validator("sha256")
    @classmethod
    def _of_a_key(cls, digest: str) -> str:
        if digest == digest_of(""):  # of `printf %s "$KEY"` with an unset KEY
            raise ValueError("is the hash of an empty key")
        return digest


_HEAP = r"^[1-9]\d*[mMgG]$"


class EngineSettings(SettingsGroup):
    """The local engine: Kafka and Elasticsearch for development."""

    engine_kafka_port: int = Field(
        default=19092, ge=1, le=65535, description="Preferred port; a free one is taken when it is busy."
    )
    engine_es_port: int = Field(
        default=19200, ge=1, le=65535, description="Preferred port; a free one is taken when it is busy."
    )
    engine_kafka_heap: str = Field(default="320m", pattern=_HEAP, description="Java heap of Kafka.")
    engine_es_heap: str = Field(default="640m", pattern=_HEAP, description="Java heap of Elasticsearch.")

    @model_validator(mode="after")
    def _a_port_each(self) -> Self:
        if self.engine_kafka_port == self.engine_es_port:
            raise ValueError(
                f"engine_es_port (PAGEWIRE_ENGINE_ES_PORT): {self.engine_es_port} is Kafka's, engine_kafka_port; for "
                "example 19200"
            )
        return self


class EdgeSettings(HomeSettings, ListenSettings):
    """The gateway."""

    port: int = Field(default=8000, ge=0, le=65535, description="Port of the gateway; 0 takes a free one.")
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Names by which browsers call the gateway itself, such as `chat.example.org`: for the chat page at "
        "`/` and for signing in to the console by a proxy. Addresses, names without a dot and the hosts of the sites' "
        "`origins` are known without.",
    )
    forwarded_allow_ips: tuple[TrustedProxy, ...] = Field(
        default=(ip_network("127.0.0.0/8"), ip_network("::1")),
        description="Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed: addresses and networks, "
        "with commas between them in the variable, which may also be called `FORWARDED_ALLOW_IPS`. The visitor is the "
        "last of the list who is no such proxy. `*`: all who connect, for a gateway that nothing else reaches.",
    )
    admin_key: SecretStr | None = Field(
        default=None, description="Bootstrap admin key, 16 characters or more; default: made at first start."
    )
    keys: tuple[KeySettings, ...] = Field(default=(), description="Further keys; in the file only.")
    url: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="Address of the gateway that the commands of operators ask, with `admin_key`, such as "
        "`https://chat.example.org`; default: the gateway that runs on this machine with the same `home`.",
    )
    proxy_sign_in: ProxySignInSettings | None = Field(
        default=None,
        description="Signing in to the console by a proxy that knows who asks (docs/howto/sign-in.md), see below; in "
        "the file only. Default: by keys alone.",
    )
    token_secret: SecretStr | None = Field(
        default=None,
        description="Signs visitor tokens and the console's sessions, alike on all gateways, 32 characters or more; "
        "default: made at first start.",
    )
    audit_log_days: int = Field(
        default=365, ge=1, description="Days that the audit log is kept; the stage `log` deletes what is older."
    )
    token_ttl: int = Field(default=3600, gt=0, description="Seconds a visitor token lives.")
    visitor_rate: str = Field(
        default="20/minute",
        pattern=r"^[1-9]\d*/(second|minute|hour|day)$",
        description="Questions per visitor, at all gateways together; an address, or network (/64) of IPv6, gets "
        "five times as many.",
    )

    @field_validator("admin_key")
    @classmethod
    def _lets_nobody_guess(cls, key: SecretStr | None) -> SecretStr | None:
        return None if key is None else strong(key, SHORTEST_KEY)

    @field_validator("token_secret")
    @classmethod
    def _signs_safely(cls, secret: SecretStr | None) -> SecretStr | None:
        return None if secret is None else strong(secret, SHORTEST_SIGNING)

    @field_validator("hosts", mode="before")
    @classmethod
    def _names_alone(cls, value: Any) -> Any:
        names = _listed(value)
        for name in names:
            if not HOST.fullmatch(str(name)):
                raise ValueError(f"{name!r} is not a name alone; leave out scheme, port and path")
        return names

    @field_validator("forwarded_allow_ips", mode="before")
    @classmethod
    def _networks(cls, value: Any) -> Any:
        return tuple(map(_network, _listed(value)))


def _listed(value: Any) -> Any:
    """The list in a variable with commas, as a list in the file."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _network(written: object) -> TrustedProxy:
    if written == EVERYBODY:
        return EVERYBODY
    try:
        meant = ip_interface(str(written))
    except ValueError:
        raise ValueError(f"{str(written)!r} is no address, no network and not `*`") from None
    if meant.ip != meant.network.network_address:
        raise ValueError(f"{written} is an address in a network: write {meant.ip} or {meant.network}")
    return meant.network


def sample_site() -> Mapping[SiteId, SiteSettings]:
    """The default site without a pagewire.yaml: the fictional town of `pagewire demo`."""
    contact = {
        "de": "Im Rathaus hilft man Ihnen gern weiter: 030 23125-100 oder rathaus@kranichmuende.example.",
        "en": "The town hall is glad to help: 030 23125-100 or rathaus@kranichmuende.example.",
    }
    glossary = {
        "Sperrmüll": {"de": ["Sperrmüll", "Sofa", "Couch"]},
        "bulky waste": {"en": ["bulky waste", "sofa", "couch"]},
    }
    site = SiteSettings(
        languages=("de", "en"), title="Kranichmünde", timezone="Europe/Berlin", contact=contact, glossary=glossary
    )
    return {"demo": site}


class Settings(
    EdgeSettings,
    ElasticSettings,
    WorkerSettings,
    IntakeSettings,
    EmbedderSettings,
    AttachmentSettings,
    ConnectorsSettings,
    QuerySettings,
    ModelSettings,
    LogSettings,
    EngineSettings,
):
    """All settings. In the environment: `PAGEWIRE_` + the upper-case name."""

    sites: Mapping[SiteId, SiteSettings] = Field(
        default_factory=sample_site,
        description="The websites, each by its id: see below.",
    )

    @field_validator("*")
    @classmethod
    def _no_empty_secret(cls, value: Any) -> Any:
        return not_empty(value) if isinstance(value, SecretStr) else value

    @field_validator("sites")
    @classmethod
    def _site_names(cls, sites: dict[str, SiteSettings]) -> dict[str, SiteSettings]:
        if not sites:
            raise ValueError("at least one site")
        for name in sites:
            tail = name.rpartition("-")[2]
            if len(tail) == 6 and tail.isdigit():
                raise ValueError(f"{name!r} ends like an index generation (-000001); pick another name")
        return sites

    @model_validator(mode="after")
    def _keys_fit_sites(self) -> Self:
        for key in self.keys:
            if key.site is not None and key.site not in self.sites:
                raise ValueError(f"keys: {key.name!r} is for the unknown site {key.site!r}")
            if key.name.startswith(USER_PREFIX):
                raise ValueError(f"keys: {key.name!r} is called like a user of a proxy; choose another name")
        return self

    @model_validator(mode="after")
    def _roles_fit_sites(self) -> Self:
        for role in self.proxy_sign_in.roles if self.proxy_sign_in else ():
            if unknown := [site for site in role.sites or () if site not in self.sites]:
                who = role.group or role.user
                raise ValueError(f"proxy_sign_in.roles: {who!r} is for the unknown site {unknown[0]!r}")
        return self

    @model_validator(mode="after")
    def _attachments_stay_apart(self) -> Self:
        places = sorted((folder.absolute(), site) for site, folder in self.attachment_folders.items())
        for (outer, of_outer), (inner, of_inner) in pairwise(places):
            if outer != inner and inner.is_relative_to(outer):
                raise ValueError(
                    f"sites.{of_inner}.attachment_folder: {inner} lies in {outer}, which is that of the site "
                    f"{of_outer}; give each a folder of its own"
                )
        return self

    @model_validator(mode="after")
    def _steps_have_a_server(self) -> Self:
        places = {"steps": self.steps} | {f"sites.{name}.steps": site.steps for name, site in self.sites.items()}
        for place, steps in places.items():
            for name, step in steps.items():
                if step.model is not None and self.llm_model is None:
                    raise ValueError(
                        f"{place}.{name}.model: there is no model without llm_model, on whose server it is"
                    )
        return self

    @property
    def attachment_folders(self) -> Mapping[str, Path]:
        """The folders of `path` attachments, by site."""
        found = {name: site.attachment_folder for name, site in self.sites.items()}
        return {name: folder for name, folder in found.items() if folder is not None}

    def shares_index(self, site: str) -> bool:
        """As the site says; for one that says nothing, or is not configured, the default."""
        own = self.sites.get(site)
        return super().shares_index(site) if own is None or own.index is None else own.index == "shared"

    @property
    def judge_of_answers(self) -> str | None:
        """The model that judges answers; None: there is none."""
        return self.judging_model or self.llm_model

    def models(self, site: str) -> tuple[str, ...]:
        """The models that are named for a site, from which its trials may choose. None: there is no model server.

        Raises:
            UnknownSite.
        """
        if self.llm_model is None:
            return ()
        steps = (*self.steps.values(), *self.site(site).steps.values())
        named = (self.llm_model, self.llm_fallback_model, *(step.model for step in steps))
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def spoken(self) -> frozenset[str]:
        """The languages of all sites."""
        return frozenset(lang for site in self.sites.values() for lang in site.languages)

    def site(self, name: str) -> SiteSettings:
        """Raises: UnknownSite."""
        super().site(name)
        return self.sites[name]
