"""The base of all groups of settings, and the groups that all rooms share, such as the sites.

Each group is defined next to the code that it configures, and a room receives its own group only.
`wiring.settings.Settings` inherits all groups, flat, so a setting has one name everywhere: in the code, in
pagewire.yaml and in the environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from pipelines.runtime.errors import UnknownSite, some_of
from schemas.base import GivenLang, Lang, SiteId
from schemas.flow import FlowParts
from schemas.ingest import Chunker
from schemas.privacy import QuestionLogging

# The steps that call a model, with a prompt each.
StepName = Literal[
    "rephrase", "answer", "courtesy", "translate", "decide", "think", "self-ask", "react", "tools", "judge", "title"
]
# Steps that write an answer: if a model spends all tokens on thinking, they are repeated with more tokens.
ROOMY: frozenset[StepName] = frozenset({"answer", "courtesy"})
StrategyName = Literal["plain", "retrieval-gate", "self-ask", "react", "chain-of-thought", "tools"]

# Whether calls use the tools of the server's API: tried and remembered, always, or never.
ToolCalling = Literal["auto", "native", "text"]


# The judge that checks, in addition to the rules, whether the sources support a model's sentence.
JudgeName = Literal["none", "model", "reranker"]


# Sites that metrics tell apart by the label `site`; where there are more, the label is empty. Each site costs some ten
# series, in Prometheus and in every process.
LABELLED_SITES = 500


class SettingsGroup(BaseModel):
    """Frozen; refuses unknown settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _not_empty(written: object) -> object:
    if written == "":  # as a path it is the current folder
        raise ValueError("is empty")
    return written


def _at_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("there is no such home folder") from None


HOST_NAME = re.compile(r"([A-Za-z0-9_-]+\.)*[0-9-]*[A-Za-z_][A-Za-z0-9_-]*")  # the last part is no number

# A path on this machine. `~` is expanded here, because YAML and Docker's .env do not.
LocalPath = Annotated[Path, BeforeValidator(_not_empty), AfterValidator(_at_home)]


class RetentionSettings(SettingsGroup):
    """How long visitors' questions and answers are kept, in days."""

    conversations: int = Field(
        default=90,
        ge=1,
        description="Days after its last question that a conversation is deleted. A visitor who stays away for longer "
        "than a month cannot reach theirs any more.",
    )
    outcomes: int = Field(
        default=365,
        ge=1,
        description="Days that the question log keeps a question, with its feedback. The default lets a month be "
        "compared with that of the year before.",
    )


class SamplingSettings(SettingsGroup):
    """How many of a site's answers the stage `judge` judges."""

    share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the answers, chosen by their ids: `0.05` is one in twenty. `0`: none. It needs a model.",
    )
    daily: int = Field(
        default=100,
        ge=1,
        description="Answers of a day (UTC, of the question) that are judged at most, the first ones of the share. "
        "Each is about three calls of the model; every tenth is judged twice, and counts twice.",
    )


class StepSettings(SettingsGroup):
    """How one step calls its model. Unset fields are those of all sites, and there those of `PAGEWIRE_LLM_*`."""

    model: str | None = Field(default=None, min_length=1, description="A model of the same server.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="0 says the same to the same question.")
    max_tokens: int | None = Field(default=None, ge=20, description="Tokens it may write, those it thinks apart.")
    thinking_tokens: int | None = Field(
        default=None, ge=0, description="Tokens on top of `max_tokens`, for a model that thinks first."
    )

    def over(self, other: StepSettings) -> StepSettings:
        """These settings; the other's for unset fields."""
        return other.model_copy(update={name: value for name, value in self if value is not None})


Steps = dict[StepName, StepSettings]


class Site(FlowParts, SettingsGroup):
    """One website, as the stages see it."""

    languages: tuple[GivenLang, ...] = Field(default=("en",), min_length=1, description="The first is the default.")
    title: str = Field(default="", description="Shown to visitors; default: the site's id.")
    strategy: StrategyName = Field(
        default="plain", description="How a model comes to an answer (docs/howto/answers.md); without one it quotes."
    )
    steps: Steps = Field(
        default_factory=dict,
        description="How its steps ask their models, each by its name: see below. They go before `steps` of all sites.",
    )
    daily_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens that its models may read and write in a day (UTC), in all processes together. After them "
        "answers quote the pages until the next day. Default: no limit.",
    )
    question_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens for one question, all its calls in a worker process together. After them it is answered by "
        "quoting the pages. Default: no limit.",
    )
    prompts: LocalPath | None = Field(
        default=None, description="Folder with prompts and sentences of its own, named as those in `prompts/`."
    )
    datasets: LocalPath | None = Field(
        default=None,
        description="Folder with datasets (docs/howto/evaluate.md) that evaluations can be ordered of in the console.",
    )
    judging: SamplingSettings = Field(
        default=SamplingSettings(), description="How many of its answers are judged while it runs, see below."
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

    log_questions: QuestionLogging = Field(
        default="on",
        description="Whether the question log keeps the outcome of its questions (docs/howto/questions.md): `on`, "
        "`without-text` (languages, outcomes, pages and figures, but no words of visitors), or `off`. Like `retention` "
        "it can be changed while the system runs (docs/privacy.md).",
    )
    log_prompts: bool = Field(
        default=False,
        description="Whether the question log also keeps, with `log_questions: on`, what models read and wrote for an "
        "answer, and which of their sentences were doubted (docs/howto/questions.md). It can be changed while the "
        "system runs, too.",
    )
    retention: RetentionSettings = Field(
        default=RetentionSettings(), description="How long what its visitors said is kept, see below."
    )

    @property
    def hands_over(self) -> bool:
        """Whether visitors may leave a message for a person."""
        return False

    @field_validator("timezone")
    @classmethod
    def _timezone_known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError("no such time zone here; names are those of IANA") from None
        return value

    def reached_by(self, lang: str) -> str:
        """The contact text, in a language or in the site's own; empty without one."""
        own = self.languages[0]
        tried = (lang, lang.partition("-")[0], own, own.partition("-")[0])
        return next((self.contact[each] for each in tried if each in self.contact), "")

    @field_validator("log_questions", mode="before")
    @classmethod
    def _read_by_yaml(cls, value: Any) -> Any:
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else value

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
            sites = f"pagewire.yaml has: {some_of(self.sites)}"
            if "sites" not in self.model_fields_set:
                sites = f"no pagewire.yaml here names any, so there is only the sample: {some_of(self.sites)}"
            raise UnknownSite(f"unknown site {name!r}; {sites}", name, self.sites) from None

    def label(self, site: str) -> str:
        """The label of a site in metrics."""
        return site if len(self.sites) <= LABELLED_SITES else ""

    @property
    def labels(self) -> frozenset[str]:
        """The labels of all sites."""
        return frozenset(map(self.label, self.sites))


class HomeSettings(SettingsGroup):
    """The folder of our files on this machine."""

    home: LocalPath = Field(default=Path(".pagewire"), description="Folder of all local state.")


class ListenSettings(SettingsGroup):
    """The address on which this process listens."""

    host: str = Field(default="127.0.0.1", description="Address of the gateway, and of a worker's metrics.")

    @field_validator("host")
    @classmethod
    def _address_alone(cls, value: str) -> str:
        host = value.strip().removeprefix("[").removesuffix("]")
        if not HOST_NAME.fullmatch(host):
            try:
                ip_address(host)
            except ValueError:
                raise ValueError(
                    "must be an address or a name of this machine alone, without scheme and port"
                ) from None
        return host


OVERLAP = 0.2  # share of each neighbour that is embedded too


class ChunkerSettings(SettingsGroup):
    """The chunker of new indexes."""

    chunk_mode: Literal["content", "fixed"] = Field(
        default="content",
        description="Where cores end: `content` at the text's own borders, `fixed` every `chunk_size` characters.",
    )
    chunk_size: int = Field(
        default=512, ge=32, le=20_000, description="Longest core in characters; see docs/decisions."
    )

    @property
    def chunker(self) -> Chunker:
        return Chunker(mode=self.chunk_mode, size=self.chunk_size, overlap=OVERLAP)
