"""Keys created at run time: one document each, in one index for all sites.

A document's id is the key's name, so only one of two concurrent requests creates a key of that name.
"""

from __future__ import annotations

from typing import Any

import structlog
from pydantic import ValidationError

from adapters.elastic.indexes import KEYS
from adapters.elastic.system_index import SystemIndex
from pipelines.operate.access_keys import MAX_KEYS
from schemas.access_key import KeptKey
from schemas.base import problems

log = structlog.get_logger(__name__)


class ElasticKeys(SystemIndex):
    """A pipelines.operate.access_keys.KeyStore."""

    index = KEYS

    async def all(self) -> list[KeptKey]:
        """The oldest first. Raises: ElasticsearchDown."""
        hits = await self._hits("reading the keys", sort=["created_at"], size=MAX_KEYS)
        read = [_read(hit["_id"], hit["_source"]["key"]) for hit in hits]
        return [key for key in read if key is not None]

    async def add(self, key: KeptKey) -> bool:
        """Readers see the key at once. False: the name exists already. Raises: ElasticsearchDown."""
        document = {"created_at": key.created_at, "key": key.dumped()}
        return await self._create("keeping a key", key.name, document)

    async def remove(self, name: str) -> bool:
        """False: there is none. Raises: ElasticsearchDown."""
        return await self._delete("revoking a key", name)


def _read(name: str, kept: Any) -> KeptKey | None:
    """None: this version cannot read the key. It gives no access here, and the other keys still work."""
    try:
        return KeptKey.stored(kept)
    except ValidationError as err:
        log.warning("a key cannot be read, and is not good here", name=name, problems=problems(err))
        return None
