"""Indexes of a site: `pagewire-{site}-{generation}` behind the alias `pagewire-{site}` (CONTRACT 6)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

from elasticsearch import AsyncElasticsearch, BadRequestError, NotFoundError

from adapters.elastic.client import explained
from pipelines.runtime.errors import Permanent

MAPPINGS = Path(__file__).resolve().parents[2] / "infra" / "elasticsearch"
RECEIPTS = "pagewire.receipts"  # a dot, which no site id has
INFO_TTL = 2.0  # seconds until a worker notices that another index was promoted


class NoIndex(Permanent):
    """The site has no index yet: nothing was imported."""

    code = "no-index"


@dataclass(frozen=True)
class IndexInfo:
    """What an index holds, from `_meta` of its mapping."""

    name: str
    embedder: str  # as in settings.embedder: how to get the model
    model: str  # its fingerprint
    dims: int
    chunker: str  # fingerprint


@cache
def mapping(file: str) -> dict[str, Any]:
    """A numbered mapping file of infra/elasticsearch."""
    loaded: dict[str, Any] = json.loads((MAPPINGS / file).read_text(encoding="utf-8"))
    return loaded


def alias(site: str) -> str:
    return f"pagewire-{site}"


def index_name(site: str, generation: int) -> str:
    return f"pagewire-{site}-{generation:06d}"


class Indexes:
    """Creates indexes and knows which one is live. One per process."""

    def __init__(self, es: AsyncElasticsearch, *, shards: int = 1, replicas: int = 0) -> None:
        self._es = es
        self._size = {"number_of_shards": shards, "number_of_replicas": replicas}
        self._known: dict[str, tuple[float, IndexInfo]] = {}

    async def live(self, site: str) -> IndexInfo | None:
        """The index behind the site's alias; None when there is none. At most `INFO_TTL` old."""
        seen = self._known.get(site)
        if seen and monotonic() - seen[0] < INFO_TTL:
            return seen[1]
        info = await self._read(site)
        if info is not None:  # that there is none is not remembered: the first save of a site makes one
            self._known[site] = (monotonic(), info)
        return info

    async def _read(self, site: str) -> IndexInfo | None:
        with explained(f"looking up the index of site {site}"):
            try:
                answer = await self._es.indices.get_mapping(index=alias(site))
            except NotFoundError:
                return None
        name, body = max(answer.body.items())
        meta = body["mappings"].get("_meta", {})
        return IndexInfo(name, meta["embedder"], meta["model"], meta["dims"], meta["chunker"])

    async def ensure(self, site: str, *, embedder: str, model: str, dims: int, chunker: str) -> IndexInfo:
        """The live index, created with this model when the site has none. Safe to race."""
        if info := await self.live(site):
            return info
        await self.create(index_name(site, 1), embedder, model, dims, chunker, aliases={alias(site): {}})
        info = await self.live(site)
        if info is None:
            raise NoIndex(f"index {index_name(site, 1)} exists without its alias {alias(site)}; add the alias")
        return info

    async def create(
        self, name: str, embedder: str, model: str, dims: int, chunker: str, aliases: dict[str, Any]
    ) -> None:
        """Create one index; nothing happens when it is there."""
        base = mapping("001_site.json")
        properties = base["mappings"]["properties"] | {
            # Stated because the default changes between versions (DESIGN 5).
            "embedding": {
                "type": "dense_vector",
                "dims": dims,
                "index": True,
                "similarity": "cosine",
                "index_options": {"type": "int8_hnsw"},
            }
        }
        meta = {
            "embedder": embedder,
            "model": model,
            "dims": dims,
            "chunker": chunker,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "source": "cms.changes",
        }
        await self._create(
            name,
            settings={"index": base["settings"]["index"] | self._size},
            mappings=base["mappings"] | {"properties": properties, "_meta": meta},
            aliases=aliases,
        )

    async def ensure_receipts(self) -> None:
        """The one index of all sites' receipts."""
        base = mapping("002_receipts.json")
        await self._create(
            RECEIPTS,
            settings={"index": base["settings"]["index"] | self._size},
            mappings=base["mappings"],
            aliases={},
        )

    async def _create(
        self, name: str, *, settings: dict[str, Any], mappings: dict[str, Any], aliases: dict[str, Any]
    ) -> None:
        with explained(f"creating index {name}"):
            try:
                await self._es.indices.create(index=name, settings=settings, mappings=mappings, aliases=aliases)
            except BadRequestError as err:
                if err.error != "resource_already_exists_exception":
                    raise
