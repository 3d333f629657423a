"""What all groups of settings have in common, and the group that every room asks: which sites there are.

Each group stands next to what it sets, and a room takes its own group alone. `wiring.settings.Settings` is all of them
in one, flat: so a setting has one name wherever it is read, in pagewire.yaml and in the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pipelines.runtime.errors import UnknownSite
from schemas.base import Lang, SiteId

StrategyName = Literal["plain", "retrieval-gate", "self-ask", "react", "chain-of-thought", "tools"]


class SettingsGroup(BaseModel):
    """Frozen, and refuses what it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Site(SettingsGroup):
    """One website, as the stages know it."""

    languages: tuple[Lang, ...] = Field(default=("en",), min_length=1, description="The first is the default.")
    title: str = Field(default="", description="Shown to visitors; default: the site's id.")
    strategy: StrategyName = Field(
        default="plain", description="How a model comes to an answer (docs/howto/answers.md); without one it quotes."
    )
    context_chars: int | None = Field(
        default=None, ge=200, description="Characters of sources that its answers may read; default: of all sites."
    )
    answer_tokens: int | None = Field(
        default=None, ge=50, description="Tokens a model may write for its answers; default: of all sites."
    )
    prompts: Path | None = Field(
        default=None, description="Folder with prompts and sentences of its own, named as those in `prompts/`."
    )
    timezone: str = Field(
        default="UTC", description="Where the site is, `Europe/Berlin`: what today and now mean in its answers."
    )
    contact: dict[Lang, str] = Field(
        default_factory=dict,
        description="How to reach somebody, as Markdown, by language: said when no page answers a question. In a "
        "language that is not there, the text of the site's first language is said.",
    )
    glossary: dict[str, dict[Lang, str | tuple[str, ...]]] = Field(
        default_factory=dict,
        description="Terms that are never translated freely: term -> language -> what it is called there, or several "
        "names, of which the first is said and all are understood; in other languages it stays as it is. A question "
        "that has one of the names is searched by the term as well.",
    )

    @field_validator("timezone")
    @classmethod
    def _timezone_known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError("no such time zone here; names are those of IANA, such as Europe/Berlin") from None
        return value

    def reached_by(self, lang: str) -> str:
        """How to reach somebody, in a language or in the site's own; empty where it does not say."""
        own = self.languages[0]
        tried = (lang, lang.partition("-")[0], own, own.partition("-")[0])
        return next((self.contact[each] for each in tried if each in self.contact), "")

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)


class SitesSettings(SettingsGroup):
    """The websites."""

    sites: Mapping[SiteId, Site] = Field(default_factory=dict)

    def site(self, name: str) -> Site:
        """Raises: UnknownSite."""
        try:
            return self.sites[name]
        except KeyError:
            known = ", ".join(sorted(self.sites))
            raise UnknownSite(f"unknown site {name!r}; pagewire.yaml has: {known}") from None


class HomeSettings(SettingsGroup):
    """Where this machine keeps what is ours."""

    home: Path = Field(default=Path(".pagewire"), description="Folder of all local state.")


class ListenSettings(SettingsGroup):
    """Where this process listens."""

    host: str = Field(default="127.0.0.1", description="Address of the gateway, and of a worker's metrics.")


class RetrySettings(SettingsGroup):
    """How long a message is tried, by a stage as by a rebuild."""

    tries: int = Field(
        default=6, ge=1, description="Tries before an unexplained error (or a timeout) is a dead letter."
    )
    retry_for: float = Field(
        default=900.0,
        ge=0,
        description="Seconds a message is retried while a service is away, before it is a dead letter.",
    )
