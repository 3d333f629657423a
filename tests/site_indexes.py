"""Indexes that a test's sites leave behind."""

from __future__ import annotations

from contextlib import suppress

from elasticsearch import NotFoundError

from adapters.elastic.bundle import Elastic
from adapters.elastic.settings import SiteIndex
from pipelines.runtime.indexes import IndexInfo, alias

KINDS: tuple[SiteIndex, ...] = ("own", "shared")


async def delete(elastic: Elastic, info: IndexInfo) -> None:
    """As somebody does who knows nothing of us, whether it is live or not."""
    if info.shared:
        await elastic.es.indices.delete_alias(index=info.shared, name=[alias(info.site), f"{info.name}*"])
    else:
        await elastic.es.indices.delete(index=info.name)


async def forget(elastic: Elastic, *sites: str) -> None:
    """Delete all indexes of these sites, of their own or shared, live or not."""
    for site in sites:
        with suppress(NotFoundError):
            await elastic.es.indices.delete_alias(index="_all", name=alias(site))
        for info in await elastic.indexes.generations(site):
            await elastic.indexes.discard(info)
