"""An index of which only pages with some labels are searched and read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipelines.query.search.ports import Candidates, ChunkKey, Hit, SearchIndex
from schemas.ingest import Vector32
from schemas.labels import have_labels
from schemas.page import FieldName


class LabelledIndex(SearchIndex):
    """A page is in it if it has, of each key, one of the values."""

    def __init__(self, index: SearchIndex, labels: Mapping[str, Iterable[str]]) -> None:
        self._index = index
        self._labels = labels

    async def candidates(self, site: str, text: str, vector: Vector32 | None, **how: Any) -> Candidates:
        return await self._index.candidates(site, text, vector, **how, labels=self._labels)

    async def page(self, site: str, page_id: str, *, groups: Iterable[str] = ()) -> list[Hit]:
        return self._own(await self._index.page(site, page_id, groups=groups))

    async def chunks(self, index: str, addresses: Sequence[ChunkKey]) -> list[Hit]:
        return self._own(await self._index.chunks(index, addresses))

    async def field(self, index: str, page_key: str, field: FieldName) -> list[Hit]:
        return self._own(await self._index.field(index, page_key, field))

    def _own(self, hits: Iterable[Hit]) -> list[Hit]:
        return [hit for hit in hits if have_labels(hit.labels, self._labels)]
