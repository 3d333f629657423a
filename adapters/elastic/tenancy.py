"""Indexes that many small sites share. Each generation of a site is a tenant with filtered aliases:

    pagewire-town ──────────────▶┐ filter: only documents whose `generation` is pagewire-town-000001
    pagewire-town-000001 ───────▶┼─▶ pagewire.shared-3f9a1c02-04 ◀── pagewire-club, pagewire-club-000003, ...
    pagewire-town-000001.write ─▶┘

An index has one model and one chunker. A generation's index follows from its site's name and its number, so that two
workers choose the same one for a first save. Two generations of a site are never in one index, since documents have the
pages' ids. Elasticsearch allows some 1,000 indexes a node, too few for an index for each small site.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from math import ceil
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.writer import Write, Writer
from pipelines.runtime.indexes import WRITE_SUFFIX, IndexInfo, IndexUnfit, alias

PREFIX = "pagewire.shared-"  # no site id contains a dot
SHARED_INDEXES = 8  # of each embedder and chunker, of one shard each; more than a site has generations
HELD = ".held-"
DELETED_AT_ONCE = 1_000  # documents
# Fields that only shared indexes have.
PROPERTIES = {"generation": {"type": "keyword"}}


class Tenancy:
    """Adds generations of sites to shared indexes and removes them. One per process."""

    def __init__(self, es: AsyncElasticsearch, writer: Writer) -> None:
        self._es = es
        self._writer = writer

    def index_for(self, site: str, generation: int, making: Mapping[str, Any], taken: Collection[str]) -> str:
        """The shared index for a new generation; it may not exist yet.

        A first save and a rebuild may create generations at the same time, without seeing each other's. So each number
        starts its search at a different index.

        Args:
            making: the properties that all documents of the index share.
            taken: indexes with other generations of the site.

        Raises:
            IndexUnfit: the site has a generation in each shared index.
        """
        kind = blake2b(json.dumps(making, sort_keys=True).encode(), digest_size=4).hexdigest()
        first = place(site, generation, SHARED_INDEXES)
        for number in range(SHARED_INDEXES):
            name = f"{PREFIX}{kind}-{(first + number) % SHARED_INDEXES:02d}"
            if name not in taken:
                return name
        raise IndexUnfit(f"site {site} has a generation in each of {SHARED_INDEXES} shared indexes; delete some")

    async def admit(self, site: str, name: str, concrete: str, *, live: bool) -> None:
        """Add the generation of this name to a shared index. Safe to call concurrently."""
        await self._delete_documents(concrete, _of_other_generations(site, name))
        aliases = [name, alias(site)] if live else [name]
        actions = [{"add": {"index": concrete, "alias": one, "filter": only(name)}} for one in aliases]
        with explained(f"letting {name} into {concrete}"):
            await self._es.indices.update_aliases(
                actions=[*actions, {"add": {"index": concrete, "alias": name + WRITE_SUFFIX}}]
            )

    async def put_out(self, info: IndexInfo) -> None:
        """Remove a generation from its shared index. If interrupted, it is still listed, and can be removed again."""
        with explained(f"deleting {info.name}"):
            await self._remove(info.concrete, info.write_alias)
            await self._remove(info.concrete, f"{info.name}{HELD}*")
            await self._delete_documents(info.concrete, only(info.name))
            await self._remove(info.concrete, info.name)

    async def hold(self, info: IndexInfo, until: datetime | None) -> None:
        """Hold a generation until a time, by an alias whose name has the time, since metadata belong to the whole
        index. None: end the hold.
        """
        marks = f"{info.name}{HELD}*"
        with explained(f"marking {info.name}"):
            if until is None:
                await self._remove(info.concrete, marks)
                return
            mark = f"{info.name}{HELD}{ceil(until.timestamp())}"
            await self._es.indices.update_aliases(
                actions=[
                    {"remove": {"index": info.concrete, "alias": marks, "must_exist": False}},
                    {"add": {"index": info.concrete, "alias": mark}},
                ]
            )

    async def _remove(self, concrete: str, names: str) -> None:
        """Remove the aliases that match a name or pattern, if there are any."""
        with suppress(NotFoundError):
            await self._es.indices.delete_alias(index=concrete, name=names)

    async def _delete_documents(self, concrete: str, query: Mapping[str, Any]) -> None:
        """Delete these documents. Repeats, since a generation may still be written while it is removed."""
        while True:
            with explained(f"looking for what is to be deleted from {concrete}"):
                await self._es.indices.refresh(index=concrete)
                answer = await self._es.search(
                    index=concrete, query=query, source=False, version=True, size=DELETED_AT_ONCE
                )
            found = answer["hits"]["hits"]
            await self._writer.write(
                [Write(concrete, hit["_id"], hit["_version"], None, aliased=False) for hit in found]
            )
            if len(found) < DELETED_AT_ONCE:
                return


def place(site: str, generation: int, indexes: int) -> int:
    """The number of the preferred shared index for a site's generation, out of `indexes`."""
    return (int.from_bytes(blake2b(site.encode(), digest_size=8).digest(), "big") + generation) % indexes


def only(name: str) -> dict[str, Any]:
    """A filter for the documents of this generation."""
    return {"term": {"generation": name}}


def is_shared(concrete: str) -> bool:
    """Whether this is the name of a shared index."""
    return concrete.startswith(PREFIX)


def held_until(name: str) -> tuple[str, datetime] | None:
    """The generation and end of a hold, from an alias; None: it is no such alias."""
    generation, mark, seconds = name.partition(HELD)
    return (generation, datetime.fromtimestamp(int(seconds), UTC)) if mark else None


def _of_other_generations(site: str, name: str) -> dict[str, Any]:
    ours = {"regexp": {"generation": f"{alias(site)}-[0-9]{{6}}"}}  # does not match `town-hall` for `town`
    return {"bool": {"filter": [ours], "must_not": [only(name)]}}
