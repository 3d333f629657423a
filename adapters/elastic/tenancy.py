"""Indexes that many small sites share. Each generation of a site is a tenant, behind filtered aliases:

    pagewire-town ──────────────▶┐ of its documents only those whose `generation` is pagewire-town-000001
    pagewire-town-000001 ───────▶┼─▶ pagewire.shared-3f9a1c02-04 ◀── pagewire-club, pagewire-club-000003, ...
    pagewire-town-000001.write ─▶┘

An index takes what is of one model and one cut. Where a generation goes follows from its site's name and its number, so
that two workers that see the first save come to the same; no two of a site are in one index, since documents are named
after pages. Elasticsearch takes some 1,000 indexes a node, and a site of thirty pages fills none.
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

PREFIX = "pagewire.shared-"  # a dot, which no site id has
HELD = ".held-"
DELETED_AT_ONCE = 1_000  # documents
# What an index of one site does not have.
PROPERTIES = {"generation": {"type": "keyword"}}


class Tenancy:
    """Moves generations of sites into shared indexes and out of them. One per process."""

    def __init__(self, es: AsyncElasticsearch, writer: Writer, shared_indexes: int) -> None:
        self._es = es
        self._writer = writer
        self._number = shared_indexes

    def index_for(self, site: str, generation: int, making: Mapping[str, Any], taken: Collection[str]) -> str:
        """The shared index, there yet or not, for a new generation.

        Two that are made at the same moment, a first save's and a rebuild's, do not see each other: they begin to look
        at different ones.

        Args:
            making: what all that is in the index must have in common.
            taken: where other generations of the site are.

        Raises:
            IndexUnfit: the site has one in each of them.
        """
        kind = blake2b(json.dumps(making, sort_keys=True).encode(), digest_size=4).hexdigest()
        first = place(site, generation, self._number)
        for number in range(self._number):
            name = f"{PREFIX}{kind}-{(first + number) % self._number:02d}"
            if name not in taken:
                return name
        raise IndexUnfit(f"site {site} has a generation in each of {self._number} shared indexes; delete some of them")

    async def admit(self, site: str, name: str, concrete: str, *, live: bool) -> None:
        """Let the generation of this name into a shared index. Safe to race."""
        await self._clear_away(concrete, _of_other_generations(site, name))
        aliases = [name, alias(site)] if live else [name]
        actions = [{"add": {"index": concrete, "alias": one, "filter": only(name)}} for one in aliases]
        with explained(f"letting {name} into {concrete}"):
            await self._es.indices.update_aliases(
                actions=[*actions, {"add": {"index": concrete, "alias": name + WRITE_SUFFIX}}]
            )

    async def put_out(self, info: IndexInfo) -> None:
        """Take a generation out of its shared index. Killed half-way it is still listed, and can be put out again."""
        with explained(f"deleting {info.name}"):
            await self._remove(info.concrete, info.write_alias)
            await self._remove(info.concrete, f"{info.name}{HELD}*")
            await self._clear_away(info.concrete, only(info.name))
            await self._remove(info.concrete, info.name)

    async def hold(self, info: IndexInfo, until: datetime | None) -> None:
        """As an alias, whose name says until when: what an index says of itself is nobody's own here. None: no more."""
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
        """Of an alias, or of all that fit a pattern; none may be left."""
        with suppress(NotFoundError):
            await self._es.indices.delete_alias(index=concrete, name=names)

    async def _clear_away(self, concrete: str, query: Mapping[str, Any]) -> None:
        """Delete these documents; those of a generation that was put out may have been written while it was."""
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
    """The number of the shared index, of so many of a kind, where a site's generation goes if it can."""
    return (int.from_bytes(blake2b(site.encode(), digest_size=8).digest(), "big") + generation) % indexes


def only(name: str) -> dict[str, Any]:
    """The filter that lets through what is of this generation."""
    return {"term": {"generation": name}}


def is_shared(concrete: str) -> bool:
    """Whether the index of this name is one of many sites."""
    return concrete.startswith(PREFIX)


def held_until(name: str) -> tuple[str, datetime] | None:
    """What an alias says: which generation is held until when; None: it is no such alias."""
    generation, mark, seconds = name.partition(HELD)
    return (generation, datetime.fromtimestamp(int(seconds), UTC)) if mark else None


def _of_other_generations(site: str, name: str) -> dict[str, Any]:
    ours = {"regexp": {"generation": f"{alias(site)}-[0-9]{{6}}"}}  # `town` is not `town-hall`
    return {"bool": {"filter": [ours], "must_not": [only(name)]}}
