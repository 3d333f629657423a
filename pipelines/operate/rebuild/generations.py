"""Generations of a site's index: the stored notes, corrected by the existing indexes and the alias.

The alias decides which one is live. After a killed promotion the notes may differ: the old index is noted as live until
the promotion ends, and the new one is noted as live at the very end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pipelines.operate.rebuild.ports import GenerationStore
from pipelines.runtime.indexes import IndexInfo
from schemas.rebuild import Generation, Rebuild


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
