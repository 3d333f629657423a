"""The contents of a backup: the manifest with the checksums of its files, and the lines of these files.

A line is a record of a topic or a document as JSON, and becomes the same bytes again. UTF-8 bytes are written as text,
so that `zcat` and `jq` can read a backup; others in base64.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import orjson
from pydantic import AwareDatetime, Field

from pipelines.runtime.record import Record
from schemas.base import Wire


@dataclass(frozen=True)
class BackupDocument:
    """A document that only Elasticsearch has."""

    id: str
    source: Mapping[str, Any]

    @property
    def site(self) -> str:
        return str(self.source.get("site", ""))


@dataclass(frozen=True)
class PutBack:
    """The outcome of restoring documents."""

    restored: int = 0
    there: int = 0  # the same, or a newer one
    forgotten: int = 0  # deleted by the visitor since the backup was made


class BackupIndex(Protocol):
    """One index with data that cannot be derived. All methods raise Retryable."""

    async def count(self, sites: Collection[str] | None) -> int:
        """How many documents these sites have; None: all sites."""

    def read(self, sites: Collection[str] | None) -> AsyncGenerator[Sequence[BackupDocument], None]:
        """Everything written before this call, of these sites (None: of all), in batches."""

    async def put_back(self, documents: Sequence[BackupDocument]) -> PutBack:
        """Write documents that are missing or older in the index. May be repeated.

        Raises: Permanent: a document that Elasticsearch does not take.
        """


@dataclass(frozen=True)
class BackupProgress:
    """Progress of one step of a backup or restore: records, documents, or bytes."""

    step: str
    done: int
    total: int


FORMAT = 2  # increased when older software must not read it
CHANGES: Final = "changes"

PartName = Literal["changes", "conversations", "questions", "examples", "texts", "switches"]


class BackupFile(Wire):
    """One file of a backup: gzip, a line of JSON for each record."""

    name: PartName
    file: str = Field(pattern=r"^[a-z]+\.ndjson\.gz$", description="Its name, in the backup's folder.")
    records: int = Field(ge=0)
    bytes: int = Field(ge=0, description="Of the file.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of the file: `sha256sum` says the same.")
    sites: dict[str, int] = Field(default_factory=dict, description="Records of each site.")
    until: dict[int, int] | None = Field(
        default=None, description="Of a topic: by partition the first offset that was not read any more."
    )
    unreadable: int = Field(default=0, ge=0, description="Records of the topic that are no changes; left out.")


class IndexFacts(Wire):
    """How a site's live index was made, for information: a restore makes a new one by the settings."""

    embedder: str
    chunker: str = Field(description="The chunker's fingerprint.")


class Manifest(Wire):
    """`manifest.json`. It is written last: a folder without one is no backup."""

    format: int = Field(default=FORMAT, ge=1)
    pagewire: str = Field(description="Version that made the backup.")
    began_at: AwareDatetime = Field(description="Of the pages: every change accepted before this is in it.")
    ended_at: AwareDatetime
    parts: tuple[BackupFile, ...]
    indexes: dict[str, IndexFacts] = Field(default_factory=dict, description="Of the sites that have one.")
    token_mark: str | None = Field(
        default=None,
        description="A fingerprint of the secret that visitor tokens are signed with; null: not known where the "
        "backup was made.",
    )
    notes: tuple[str, ...] = Field(default=(), description="What is not in it, and why.")

    @property
    def sites(self) -> frozenset[str]:
        return frozenset(site for part in self.parts for site in part.sites)

    def part(self, name: PartName) -> BackupFile | None:
        return next((part for part in self.parts if part.name == name), None)


def record_line(record: Record) -> bytes:
    """Key, value, headers and time of a record; its offset means nothing in another topic."""
    return _line(
        {
            "key": _written(record.key),
            "value": _written(record.value),
            "headers": [[name, _written(value)] for name, value in record.headers],
            "timestamp_ms": record.timestamp_ms,
        }
    )


def record_of(line: bytes, topic: str) -> Record:
    """Undo `record_line`. Raises: ValueError: it is none."""
    read = orjson.loads(line)
    try:
        headers = tuple((str(name), _read(value)) for name, value in read["headers"])
        return Record(topic, -1, -1, _read(read["key"]), _read(read["value"]), headers, read["timestamp_ms"])
    except (KeyError, TypeError) as err:
        raise ValueError(f"no record of a topic: {err!r}") from err


def document_line(document: BackupDocument) -> bytes:
    return _line({"id": document.id, "source": document.source})


def document_of(line: bytes) -> BackupDocument:
    """Undo `document_line`. Raises: ValueError: it is none."""
    read = orjson.loads(line)
    try:
        return BackupDocument(str(read["id"]), dict(read["source"]))
    except (KeyError, TypeError) as err:
        raise ValueError(f"no document: {err!r}") from err


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _written(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _read(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)
