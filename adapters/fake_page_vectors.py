"""In-memory sibling of adapters.elastic.page_vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipelines.query.log.ports import SitePage, SitePages
from pipelines.runtime.embedder import Matrix32
from schemas.keys import page_key


@dataclass
class FakePageVectors:
    """Keeps pages and their vectors of one model; implements `PageReader`."""

    kept: dict[str, tuple[SitePage, Matrix32, frozenset[str] | None]] = field(default_factory=dict)

    def put(self, site: str, page: SitePage, chunks: Matrix32, groups: Sequence[str] | None = None) -> None:
        """`groups`: who may find the page; None: everybody."""
        self.kept[page_key(site, page.lang, page.page_id)] = page, chunks, None if groups is None else frozenset(groups)

    async def vectors(self, site: str, model: str, dims: int, groups: Iterable[str] | None, most: int) -> SitePages:
        mine = None if groups is None else set(groups)
        own = [one for key, one in sorted(self.kept.items()) if key.startswith(f"{site}:")]
        seen = [one for one in own if mine is None or one[2] is None or one[2] & mine]
        middles = [chunks.sum(axis=0) for _, chunks, _ in seen[:most]]
        rows = [middle / np.linalg.norm(middle) for middle in middles]
        return SitePages(
            tuple(page for page, _, _ in seen[:most]),
            np.stack(rows).astype(np.float32) if rows else np.empty((0, dims), dtype=np.float32),
            len(own) - len(seen),
            len(seen) > most,
        )
