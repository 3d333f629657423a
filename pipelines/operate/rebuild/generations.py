"""Generations of a site's index: the stored notes, corrected by the existing indexes and the alias.

The alias decides which one is live. After a killed promotion the notes may differ: the old index is noted as live until
the promotion ends, and the new one is noted as live at the very end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pipelines.ingest.ports import KnownPages
from pipelines.runtime.indexes import IndexInfo
from schemas.rebuild import Generation, Rebuild


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


@dataclass(frozen=True)
class History:
    """The generations of a site."""

    live: IndexInfo | None
    indexes: Mapping[str, IndexInfo]  # by name
    noted: Sequence[Rebuild]  # the oldest first

    @property
    def rebuilds(self) -> list[Rebuild]:
        """All generations, oldest first, each with its real state."""
        names = {rebuild.index for rebuild in self.noted}
        others = [unnoted(info) for name, info in self.indexes.items() if name not in names]
        return [self._as_it_is(rebuild) for rebuild in sorted([*self.noted, *others], key=lambda r: r.generation)]

    @property
    def half_promoted(self) -> Rebuild | None:
        """The note of an index that a killed promotion has made live."""
        return next((rebuild for rebuild in self.noted if self.is_live(rebuild) and rebuild.state != "live"), None)

    def is_live(self, rebuild: Rebuild) -> bool:
        """Whether it is the live index."""
        return self.live is not None and rebuild.index == self.live.name

    def _as_it_is(self, rebuild: Rebuild) -> Rebuild:
        if self.is_live(rebuild):
            return rebuild.model_copy(update={"state": "live"})
        if rebuild.state == "live":
            return rebuild.model_copy(update={"state": "previous"})
        return rebuild


def unnoted(info: IndexInfo) -> Rebuild:
    """The note of an index that no rebuild made: a site's first one."""
    now = datetime.now(UTC)
    return Rebuild(
        site=info.site,
        generation=info.generation,
        index=info.name,
        source="changes",
        follows="changes",
        embedder=info.embedder,
        model=info.model,
        dims=info.dims,
        chunker=info.chunker,
        shared=info.shared is not None,
        state="previous",
        created_at=info.created_at or now,
        updated_at=info.created_at or now,
    )


async def history(store: GenerationStore, site: str) -> History:
    """Raises: IndexUnfit, ElasticsearchDown."""
    live = await store.indexes.now(site)
    indexes = {info.name: info for info in await store.indexes.generations(site)}
    return History(live, indexes, await store.rebuilds.of_site(site))


async def generations(store: GenerationStore, site: str) -> list[Generation]:
    """Every generation with the size of its index, for display. Raises: IndexUnfit, ElasticsearchDown."""
    known = await history(store, site)
    sizes, contents = await asyncio.gather(
        store.rebuilds.sizes(site), store.rebuilds.contents(site, tuple(known.indexes))
    )
    found = []
    for rebuild in known.rebuilds:
        documents, size = sizes.get(rebuild.index, (0, 0))
        pages, chunks = contents.get(rebuild.index, (0, 0))
        figures = {"documents": documents, "bytes": size, "live_pages": pages, "live_chunks": chunks}
        found.append(Generation.stored(rebuild.dumped() | figures))
    return found
