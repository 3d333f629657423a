"""The base of the stores that have an index for all sites. The first write creates it; until then it is empty."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeVar

from elasticsearch import AsyncElasticsearch, ConflictError, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.indexes import ElasticIndexes
from adapters.elastic.reading import Hit, answer_of
from schemas.head import Token

T = TypeVar("T")


class SystemIndex:
    """One per process. All methods raise ElasticsearchDown; `doing` begins its message."""

    index: ClassVar[str]

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes
        self._there = False

    async def _ensure(self) -> None:
        if not self._there:
            await self._indexes.ensure_system(self.index)
            self._there = True

    async def _get(self, doing: str, id: str) -> Hit | None:
        """The document with its version, read in real time; None: there is none."""
        with explained(doing):
            try:
                return (await self._es.get(index=self.index, id=id)).body  # type: ignore[no-any-return]
            except NotFoundError:
                return None

    async def _answer(self, doing: str, **search: Any) -> dict[str, Any]:
        return await answer_of(self._es, doing, index=self.index, **search)

    async def _hits(self, doing: str, **search: Any) -> list[Hit]:
        hits: list[Hit] = (await self._answer(doing, **search))["hits"]["hits"]
        return hits

    async def _create(self, doing: str, id: str, document: dict[str, Any]) -> bool:
        """Readers see the document at once. False: the id exists already."""
        return await self._write(doing, id, document, op_type="create") is not None

    async def _replace(
        self, doing: str, id: str, document: dict[str, Any], before: Token | None, *, refresh: bool = True
    ) -> Token | None:
        """Write the document if the stored one still has this version (None: if there is none). Returns its version;
        None: the stored one has another version.
        """
        place = {"op_type": "create"} if before is None else {"if_seq_no": before[0], "if_primary_term": before[1]}
        return await self._write(doing, id, document, refresh=refresh, **place)

    async def _write(
        self, doing: str, id: str, document: dict[str, Any], *, refresh: bool = True, **place: Any
    ) -> Token | None:
        async def write() -> Token | None:
            try:
                written = await self._es.index(index=self.index, id=id, document=document, refresh=refresh, **place)
            except ConflictError:
                return None
            return version_of(written.body)

        return await self._made(doing, write)

    async def _made(self, doing: str, write: Callable[[], Awaitable[T]]) -> T:
        """Write. An index that was deleted since the last write is made again."""
        known = self._there
        await self._ensure()
        with explained(doing):
            try:
                return await write()
            except NotFoundError:
                if not known:
                    raise
                self._there = False
                await self._ensure()
                return await write()

    async def _delete(self, doing: str, id: str) -> bool:
        """Readers see it at once. False: there is none."""
        with explained(doing):
            try:
                await self._es.delete(index=self.index, id=id, refresh=True)
            except NotFoundError:
                return False
        return True


def version_of(hit: Mapping[str, Any]) -> Token:
    """The version of a document, in the answer of its write, or read with it."""
    return hit["_seq_no"], hit["_primary_term"]
