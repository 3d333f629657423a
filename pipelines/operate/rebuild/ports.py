"""What a rebuild needs of Elasticsearch, of the log and of models; adapters.elastic.bundle.Elastic and others fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipelines.ingest.ports import KnownPages, PageStore
from pipelines.runtime.embedder import Embedder, SiteEmbedders
from pipelines.runtime.indexes import IndexInfo
from schemas.rebuild import Rebuild


class Indexes(Protocol):
    """Makes, swaps and deletes the indexes of sites (adapters.elastic.indexes.Indexes). All raise Retryable."""

    async def now(self, site: str) -> IndexInfo | None:
        """The live one, by a look that begins now; None when there is none. Raises: IndexUnfit."""
        ...

    async def generations(self, site: str) -> list[IndexInfo]:
        """All indexes of a site, the oldest first. Raises: IndexUnfit."""
        ...

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
        """Create one index, or let it into one that is shared; nothing happens when it is there."""
        ...

    def shares(self, site: str) -> bool:
        """Whether new indexes of the site are to be parts of those of many sites."""
        ...

    async def hold(self, info: IndexInfo, seconds: float) -> None:
        """Keep the index stage from giving receipts for this index, for so long at most: it is about to be replaced."""
        ...

    async def release(self, info: IndexInfo) -> None:
        """End a `hold`."""
        ...

    async def searchable(self, info: IndexInfo) -> None:
        """Let an index that was built be searched: refreshed now, and by itself from now on."""
        ...

    async def swap(self, site: str, new: IndexInfo) -> None:
        """Make `new` the live one, in one step."""
        ...

    async def discard(self, info: IndexInfo) -> None:
        """Delete an index. Raises: IndexUnfit: it is live."""
        ...


class RebuildNotes(Protocol):
    """What is noted of rebuilds (adapters.elastic.rebuilds.Rebuilds). All raise Retryable."""

    async def of_site(self, site: str) -> list[Rebuild]:
        """The oldest generation first."""
        ...

    async def last_generation(self, site: str) -> int:
        """The highest number ever given; 0 when none was."""
        ...

    async def sizes(self, site: str) -> Mapping[str, tuple[int, int]]:
        """Documents and bytes of each index of the site."""
        ...

    async def contents(self, site: str, names: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        """Pages that are not deleted and chunks, of these indexes of the site; not of those that are gone."""
        ...

    async def put(self, rebuild: Rebuild) -> None: ...

    async def forget(self, rebuild: Rebuild) -> None: ...


class RebuildPages(KnownPages, Protocol):
    """Pages of the live indexes, and any index to write to (adapters.elastic.pages.Pages)."""

    def at(self, info: IndexInfo) -> PageStore: ...


class GenerationStore(Protocol):
    """All of it, over one connection (adapters.elastic.bundle.Elastic)."""

    @property
    def indexes(self) -> Indexes: ...

    @property
    def rebuilds(self) -> RebuildNotes: ...

    @property
    def pages(self) -> RebuildPages: ...


class NamedEmbedders(SiteEmbedders, Protocol):
    """Embedders of sites, and any other by its name (adapters.embedders.registry.Models)."""

    async def by_name(self, spec: str) -> Embedder:
        """The one that `spec` names, started. Raises: SettingsError, Permanent."""
        ...


class Watermark(Protocol):
    """Tells what the ingest stages are done with (pipelines.operate.rebuild.watermark)."""

    async def passed(self) -> dict[int, int] | None:
        """Offsets of cms.changes before which everything is in the live index; None when that is not known."""
        ...
