"""What backup and restore ask of the servers; adapters.elastic.kept answers, and in tests what stands in for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Document:
    """A document that only Elasticsearch has, as it stands there."""

    id: str
    source: Mapping[str, Any]

    @property
    def site(self) -> str:
        return str(self.source.get("site", ""))


@dataclass(frozen=True)
class PutBack:
    """What became of documents that were to be put back."""

    restored: int = 0
    there: int = 0  # the same, or a newer one
    forgotten: int = 0  # deleted by who it is about since the backup was made


class Documents(Protocol):
    """One index of what cannot be made again. All raise Retryable."""

    async def count(self, sites: Collection[str] | None) -> int:
        """Documents of these sites; None: of all."""
        ...

    def read(self, sites: Collection[str] | None) -> AsyncGenerator[Sequence[Document], None]:
        """Everything written before this call, of these sites (None: of all), in batches."""
        ...

    async def put_back(self, documents: Sequence[Document]) -> PutBack:
        """Write those that are not there, and those of which an older one is. May be repeated.

        Raises:
            Permanent: a document that Elasticsearch does not take.
        """
        ...


@dataclass(frozen=True)
class Progress:
    """How far a backup or restore is with one step: records, documents, or bytes."""

    step: str
    done: int
    total: int
