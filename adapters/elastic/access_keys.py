"""Keys created at run time: one document each, in one index for all sites.

A document's id is the key's name, so only one of two concurrent requests creates a key of that name.
"""

from __future__ import annotations

from typing import Any

import structlog
from elasticsearch import AsyncElasticsearch, ConflictError, NotFoundError
from pydantic import ValidationError

from adapters.elastic.client import explained
from adapters.elastic.indexes import KEYS, ElasticIndexes
from pipelines.operate.access_keys import MAX_KEYS
from schemas.access_key import KeptKey
from schemas.base import problems

log = structlog.get_logger(__name__)


class ElasticKeys:
    """Reads and writes `pagewire.keys`: a pipelines.operate.access_keys.KeyStore."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes

    async def all(self) -> list[KeptKey]:
        """The oldest first. Raises: ElasticsearchDown."""
        with explained("reading the keys"):
            try:
                answer = await self._es.search(index=KEYS, sort=["created_at"], size=MAX_KEYS)
            except NotFoundError:  # there are no keys yet
                return []
        read = [_read(hit["_id"], hit["_source"]["key"]) for hit in answer["hits"]["hits"]]
        return [key for key in read if key is not None]

    async def add(self, key: KeptKey) -> bool:
        """Readers see the key at once. False: the name exists already. Raises: ElasticsearchDown."""
        await self._indexes.ensure_system(KEYS)
        document = {"created_at": key.created_at, "key": key.dumped()}
        with explained("keeping a key"):
            try:
                await self._es.create(index=KEYS, id=key.name, document=document, refresh=True)
            except ConflictError:
                return False
        return True

    async def remove(self, name: str) -> bool:
        """False: there is none. Raises: ElasticsearchDown."""
        with explained("revoking a key"):
            try:
                await self._es.delete(index=KEYS, id=name, refresh=True)
            except NotFoundError:
                return False
        return True


def _read(name: str, kept: Any) -> KeptKey | None:
    """None: this version cannot read the key. It gives no access here, and the other keys still work."""
    try:
        return KeptKey.stored(kept)
    except ValidationError as err:
        log.warning("a key cannot be read, and is not good here", name=name, problems=problems(err))
        return None
