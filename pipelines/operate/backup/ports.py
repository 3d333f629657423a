"""The stores of backup and restore: protocols that adapters.elastic.kept and the tests' fakes implement."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


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

        Raises:
            Permanent: a document that Elasticsearch does not take.
        """


@dataclass(frozen=True)
class BackupProgress:
    """Progress of one step of a backup or restore: records, documents, or bytes."""

    step: str
    done: int
    total: int
