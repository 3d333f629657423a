"""Every setting with its default, unit and source: read once at start, frozen, handed down.

`pagewire.yaml` < environment `PAGEWIRE_*`. A wrong or unknown setting fails at start, by name.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from connectors.cms.settings import Connector, ConnectorName, variables
from pipelines.runtime.errors import SettingsError, UnknownSite
from schemas.base import Lang, SiteId
from schemas.ingest import Chunker
from schemas.page import Group

PREFIX = "PAGEWIRE_"
# Read by the openai client's own names, so that a user's existing environment works.
OPENAI_NAMES = {"OPENAI_API_KEY": "openai_api_key", "OPENAI_BASE_URL": "openai_base_url"}
# Maps and lists have no sensible form in one environment variable.
FILE_ONLY = frozenset({"sites", "keys"})

Scope = Literal["ingest", "chat", "admin"]
StrategyName = Literal["plain", "retrieval-gate", "self-ask", "react", "chain-of-thought", "tools"]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ChatSettings(_Strict):
    """Whether a site's visitors are answered, and how often."""

    enabled: bool = Field(
        default=True,
        description="The kill switch. `false`: no question is answered, whoever asks (403 `chat-off`).",
    )
    daily_questions: int | None = Field(
        default=None,
        ge=1,
        description="Questions that all visitors together may ask in a day (UTC) through one gateway process; after "
        "them 429 `daily-budget`. Programs with a key are not counted. Default: no limit.",
    )


class SiteSettings(_Strict):
    """One website."""

    languages: tuple[Lang, ...] = Field(default=("en",), min_length=1, description="The first is the default.")
    title: str = Field(default="", description="Shown to visitors; default: the site's id.")
    origins: tuple[str, ...] = Field(
        default=(),
        description="Origins whose pages may embed the chat, such as `https://www.example.org`.",
    )
    strategy: StrategyName = Field(
        default="plain", description="How a model comes to an answer (docs/howto/answers.md); without one it quotes."
    )
    prompts: Path | None = Field(
        default=None, description="Folder with prompts and sentences of its own, named as those in `prompts/`."
    )
    timezone: str = Field(
        default="UTC", description="Where the site is, `Europe/Berlin`: what today and now mean in its answers."
    )
    glossary: dict[str, dict[Lang, str]] = Field(
        default_factory=dict,
        description="Terms that are never translated freely: term -> language -> what it is called there; "
        "in other languages it stays as it is.",
    )
    chat: ChatSettings = Field(
        default=ChatSettings(), description="Whether and how often visitors are answered, see below."
    )
    connectors: dict[ConnectorName, Connector] = Field(
        default_factory=dict, description="Where its pages come from: name -> `kind` and what goes with it, see below."
    )

    @field_validator("timezone")
    @classmethod
    def _timezone_known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError("no such time zone here; names are those of IANA, such as Europe/Berlin") from None
        return value

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)


class KeySettings(_Strict):
    """A bearer key, known by its hash alone: `printf %s KEY | sha256sum`."""

    name: str = Field(min_length=1, description="For logs and for you; says whose key it is.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the key, lower-case hex.")
    scopes: tuple[Scope, ...] = Field(min_length=1, description="What the key may do.")
    site: SiteId | None = Field(default=None, description="The one site it is good for; default: all.")
    groups: tuple[Group, ...] = Field(
        default=(), description="Access groups whose pages it may read, and may give to visitors."
    )


class Settings(_Strict):
    """All settings. In the environment: `PAGEWIRE_` + the upper-case name."""

    # Where things are
    home: Path = Field(default=Path(".pagewire"), description="Folder of all local state.")
    host: str = Field(default="127.0.0.1", description="Address the gateway listens on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port of the gateway; 0 takes a free one.")
    kafka: str | None = Field(default=None, description="Bootstrap servers `host:port,...`; default: the local engine.")
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
    admin_key: SecretStr | None = Field(default=None, description="Bootstrap admin key; default: made at first start.")
    sites: dict[SiteId, SiteSettings] = Field(
        default_factory=lambda: {"demo": SiteSettings(languages=("de", "en"), title="Kranichmünde")}
    )

    # Local engine
    engine_kafka_port: int = Field(default=19092, description="Preferred port; a free one is taken when it is busy.")
    engine_es_port: int = Field(default=19200, description="Preferred port; a free one is taken when it is busy.")
    engine_kafka_heap: str = Field(default="320m", description="Java heap of Kafka.")
    engine_es_heap: str = Field(default="640m", description="Java heap of Elasticsearch.")

    # Bus
    topic_prefix: str = Field(default="", pattern=r"^[A-Za-z0-9._-]*$", description="Put before every topic and group.")
    partitions: int = Field(default=4, ge=1, le=1000, description="Partitions of new topics.")
    replication: int = Field(default=1, ge=1, description="Copies of new topics (3 in production).")
    window: int = Field(default=16, ge=1, le=64, description="Messages of a partition that a stage works on at once.")
    try_timeout: float = Field(default=60.0, gt=0, description="Seconds one try at a message may take.")
    tries: int = Field(
        default=6, ge=1, description="Tries before an unexplained error (or a timeout) is a dead letter."
    )
    retry_for: float = Field(
        default=900.0,
        ge=0,
        description="Seconds a message is retried while a service is away, before it is a dead letter.",
    )
    drain_timeout: float = Field(
        default=10.0,
        gt=0,
        le=40,
        description="Seconds work may go on when a worker stops or loses partitions.",
    )
    stall_timeout: float = Field(
        default=120.0,
        gt=0,
        description="Seconds without progress, in spite of waiting messages, until a worker ends itself.",
    )
    static_membership: str | None = Field(
        default=None, description="Stable member name of this process (StatefulSets)."
    )
    nice: int = Field(
        default=0,
        ge=0,
        le=19,
        description="How far a worker's computing threads give way to others, as nice(1) counts; 19: to everybody, at "
        "once. Linux only. `pagewire up` sets 19 for its bulk worker.",
    )
    metrics_port: int | None = Field(default=None, description="Prometheus port of a worker process; default: none.")

    # Ingest
    content_limit: int = Field(default=4 * 1024 * 1024, gt=0, description="Largest `content`, in UTF-8 bytes.")
    chunk_mode: Literal["content", "fixed"] = Field(
        default="content",
        description="Where cores end: `content` at the text's own borders, `fixed` every `chunk_size` characters.",
    )
    chunk_size: int = Field(
        default=512, ge=32, le=20_000, description="Longest core in characters; see docs/decisions."
    )
    chunk_overlap: float = Field(default=0.2, ge=0, lt=1, description="Share of each neighbour embedded too.")
    chunk_titled: bool = Field(default=False, description="Embed the title before each content chunk.")
    embedder: str = Field(default="lite", description="`lite`, `bge-m3` or `openai:MODEL`.")
    bge_model: str = Field(
        default="BAAI/bge-m3", description="Local path, or name in the hub cache, of the bge-m3 weights."
    )

    fetch_allow: tuple[str, ...] = Field(
        default=(),
        description="Hosts, addresses or networks that may be fetched from although they are not public, with commas "
        "between them: `cms.internal,10.1.0.0/16`. Else attachments, feeds and pages come from public addresses only.",
    )
    attachment_limit: int = Field(default=20 * 1024 * 1024, gt=0, description="Largest attachment, in bytes.")
    attachment_text: int = Field(
        default=1_000_000, ge=0, description="Characters that are read of a page's attachments together; 0: none."
    )
    attachment_timeout: float = Field(
        default=60.0, gt=0, le=200, description="Seconds that reading one attachment may take."
    )
    attachment_memory: int = Field(
        default=2_048,
        ge=512,
        description="MiB of memory (address space) of the process that reads attachments.",
    )
    attachment_folder: Path | None = Field(
        default=None, description="Folder of this machine in which `path` attachments may lie; default: none are read."
    )

    # Query
    content_hits: int = Field(default=10, ge=1, le=100, description="Content hits per question.")
    gate: bool = Field(
        default=True,
        description="Answer a question that no page answers with a canned reply and the nearest pages, without asking "
        "the model.",
    )
    gate_threshold: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Least score of a question that can be answered; higher refuses more. Default: the embedder's own, "
        "chosen to refuse few that can (docs/reference/quality.md).",
    )
    reranker: str = Field(
        default="none",
        pattern=r"^(none|bge:\S.*)$",
        description="`none`, or `bge:` and the folder of a bge reranker's weights: reads the best 20 hits again and "
        "keeps `content_hits`. For machines with a GPU.",
    )
    neighbours: int = Field(default=2, ge=0, le=10, description="Chunks before and after a content hit.")
    short_question_words: int = Field(default=3, ge=0, description="Fewer words than this: keyword search.")
    context_chars: int = Field(default=6_000, ge=200, description="Characters of sources an answer may read.")
    history_messages: int = Field(default=15, ge=0, description="Messages of a conversation kept in mind.")
    question_patience: float = Field(
        default=20.0,
        gt=0,
        description="Seconds after which a question is not retried any more while a service is away: "
        "the visitor is told instead.",
    )
    question_timeout: float = Field(
        default=90.0, gt=0, description="Seconds until nobody waits for an answer any more."
    )

    # Model
    llm_model: str | None = Field(default=None, description="Chat model; none: answers quote the pages.")
    openai_api_key: SecretStr | None = Field(default=None, description="Also read from `OPENAI_API_KEY`.")
    openai_base_url: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="Also read from `OPENAI_BASE_URL`."
    )
    llm_timeout: float = Field(default=30.0, gt=0, description="Seconds a model may be silent.")

    # Edge
    keys: tuple[KeySettings, ...] = Field(default=(), description="Further keys; in the file only.")
    token_secret: SecretStr | None = Field(
        default=None,
        min_length=32,
        description="Signs visitor tokens, alike on all gateways of a site; default: made at first start.",
    )
    receipt_timeout: float = Field(default=10.0, gt=0, description="Default of `?wait=searchable&timeout=`, seconds.")
    token_ttl: int = Field(default=3600, gt=0, description="Seconds a visitor token lives.")
    visitor_days: int = Field(
        default=30,
        ge=0,
        description="Days in which a visitor token that is over can still be exchanged for a new one of the same "
        "visitor: who stays away for longer finds no conversations any more.",
    )
    visitor_rate: str = Field(
        default="20/minute",
        pattern=r"^[1-9]\d*/(second|minute|hour|day)$",
        description="Questions per visitor; an address gets five times as many.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_json: bool = Field(default=False, description="Logs as JSON lines.")

    @field_validator("fetch_allow", mode="before")
    @classmethod
    def _from_one_line(cls, value: Any) -> Any:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

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
        return self

    @model_validator(mode="after")
    def _user_with_password(self) -> Self:
        if (self.elasticsearch_user is None) != (self.elasticsearch_password is None):
            raise ValueError("elasticsearch_user and elasticsearch_password: give both or neither")
        return self

    @field_validator("embedder")
    @classmethod
    def _embedder_known(cls, value: str) -> str:
        if value not in ("lite", "bge-m3") and not re.match(r"openai:\S", value):
            raise ValueError("must be lite, bge-m3 or openai:MODEL")
        return value

    @property
    def chunker(self) -> Chunker:
        return Chunker(mode=self.chunk_mode, size=self.chunk_size, overlap=self.chunk_overlap, titled=self.chunk_titled)

    def site(self, name: str) -> SiteSettings:
        """Raises: UnknownSite."""
        try:
            return self.sites[name]
        except KeyError:
            known = ", ".join(sorted(self.sites))
            raise UnknownSite(f"unknown site {name!r}; pagewire.yaml has: {known}") from None


def load(env: Mapping[str, str] | None = None) -> Settings:
    """Read `pagewire.yaml` and the environment.

    Raises:
        SettingsError: naming the setting and what it must be.
    """
    env = os.environ if env is None else env
    path = Path(env.get(PREFIX + "CONFIG") or "pagewire.yaml")
    values: dict[str, Any] = {}
    if path.exists():
        values = _read_yaml(path)
    elif env.get(PREFIX + "CONFIG"):
        raise SettingsError(f"PAGEWIRE_CONFIG: no such file: {path}")
    named = _fill_in(values, env, path)
    for name, value in env.items():
        if name in OPENAI_NAMES and value:
            values.setdefault(OPENAI_NAMES[name], value)
        if not name.startswith(PREFIX) or name == PREFIX + "CONFIG":
            continue
        key = name.removeprefix(PREFIX).lower()
        if key in FILE_ONLY:
            raise SettingsError(f"{name}: {key} are set in {path}, they do not fit into one variable")
        if key not in Settings.model_fields:
            if name in named:
                continue
            close = _close(key)
            raise SettingsError(f"{name}: no such setting" + (f"; did you mean {_variable(close)}?" if close else ""))
        if value:
            values[key] = value
    try:
        return Settings.model_validate(values)
    except ValidationError as err:
        raise SettingsError("; ".join(_problem(e, path) for e in err.errors(include_url=False))) from None


def _fill_in(values: dict[str, Any], env: Mapping[str, str], path: Path) -> set[str]:
    """Put in the secrets that the file names as `${NAME}`; returns the names. Raises: SettingsError."""
    named = set()
    for where, connector, key, variable in variables(values):
        if not env.get(variable):
            raise SettingsError(f"{'.'.join(where)} ({path}): the environment variable {variable} is not set")
        connector[key] = env[variable]
        named.add(variable)
    return named


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as err:
        # Without the words of the parser, which quote the line: it may hold a key.
        mark = err.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SettingsError(f"{path}: not YAML{where}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as err:
        raise SettingsError(f"{path}: cannot be read: {err}") from err
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise SettingsError(f"{path}: must be a mapping such as `sites: {{town: {{languages: [en]}}}}`")
    return {str(key): value for key, value in loaded.items()}


def _problem(error: Any, path: Path) -> str:
    said = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:  # about several settings together: names them itself
        return str(said)
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        close = _close(where)
        return f"{where} ({path}): no such setting" + (f"; did you mean {close}?" if close else "")
    settable = where in Settings.model_fields and where not in FILE_ONLY
    return f"{where} ({f'{_variable(where)} or ' if settable else ''}{path}): {said}"


def _variable(setting: str) -> str:
    return PREFIX + setting.upper()


def _close(name: str) -> str | None:
    return next(iter(difflib.get_close_matches(name, Settings.model_fields, n=1)), None)
