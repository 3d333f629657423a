"""Protocols of a rebuild for Elasticsearch, the log and models (adapters.elastic.bundle.Elastic and others)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipelines.ingest.ports import KnownPages
from pipelines.runtime.indexes import IndexInfo
from schemas.rebuild import Rebuild


class Indexes(Protocol):
    """Makes, swaps and deletes the indexes of sites (adapters.elastic.indexes). All methods raise Retryable."""

    async def now(self, site: str) -> IndexInfo | None:
        """The live index, read now without a cache; None: there is none. Raises: IndexUnfit."""

    async def generations(self, site: str) -> list[IndexInfo]:
        """All indexes of a site, the oldest first. Raises: IndexUnfit."""

    async def create(
        self,
        site: str,
        generation: int,
        embedder: str,
        model: str,
        dims: int,
        chunker: str,
        *,
        source: str = "cms.changes",
        live: bool = False,
        shared: bool = False,
    ) -> None:
        """Create an index, or its part of a shared one, unless it exists."""

    def shares(self, site: str) -> bool:
        """Whether new indexes of the site are parts of shared ones."""

    async def hold(self, info: IndexInfo, seconds: float) -> None:
        """Keep the index stage from sending receipts for this index, for so long at most, while it is replaced."""

    async def release(self, info: IndexInfo) -> None:
        """End a `hold`."""

    async def searchable(self, info: IndexInfo) -> None:
        """Make a built index searchable: refresh it now, and automatically from now on."""

    async def swap(self, site: str, new: IndexInfo) -> None:
        """Make `new` the live index, in one step."""

    async def discard(self, info: IndexInfo) -> None:
        """Delete an index. Raises: IndexUnfit: it is live."""


class RebuildNotes(Protocol):
    """Stores notes of rebuilds (adapters.elastic.rebuilds.ElasticRebuilds). All methods raise Retryable."""

    async def of_site(self, site: str) -> list[Rebuild]:
        """The oldest generation first."""

    async def last_generation(self, site: str) -> int:
        """The highest generation so far; 0: none."""

    async def sizes(self, site: str) -> Mapping[str, tuple[int, int]]:
        """Documents and bytes of each index of the site."""

    async def contents(self, site: str, names: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        """Pages (without deleted ones) and chunks of these indexes of the site; missing indexes are left out."""

    async def put(self, rebuild: Rebuild) -> None: ...

    async def forget(self, rebuild: Rebuild) -> None: ...


class GenerationStore(Protocol):
    """All of these, over one connection (adapters.elastic.bundle.Elastic)."""

    @property
    def indexes(self) -> Indexes: ...

    @property
    def rebuilds(self) -> RebuildNotes: ...

    @property
    def pages(self) -> KnownPages: ...
