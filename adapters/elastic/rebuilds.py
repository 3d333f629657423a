"""The states of a site's generations, and the lease by which only one process at a time works on them."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import psutil
import structlog
from elasticsearch import AsyncElasticsearch

from adapters.elastic.client import explained
from adapters.elastic.indexes import REBUILDS, ElasticIndexes
from adapters.elastic.system_index import SystemIndex, version_of
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.indexes import alias
from schemas.head import Token
from schemas.rebuild import Rebuild

log = structlog.get_logger(__name__)

LEASE = 30.0  # seconds; renewed every third of it
STOPPING = "stop"  # in place of a process id: the lease was taken to stop its owner
MAX_GENERATIONS = 10_000  # of a site, deleted ones included


class RebuildRunning(Permanent):
    """Another process works on the site's indexes."""

    code = "rebuild-running"


class LeaseLost(Permanent):
    """Another process has taken the lease, because this one did not renew it in time."""

    code = "lease-lost"


class ElasticRebuilds(SystemIndex):
    """The states and leases of all sites' rebuilds."""

    index = REBUILDS

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        super().__init__(es, indexes)
        self._lost: set[str] = set()  # sites whose lease this process has lost

    async def of_site(self, site: str) -> list[Rebuild]:
        """The stored states, the oldest generation first. Raises: ElasticsearchDown."""
        found = [Rebuild.stored(doc["rebuild"]) for _, doc in await self._documents(site) if "rebuild" in doc]
        return sorted(found, key=lambda rebuild: rebuild.generation)

    async def last_generation(self, site: str) -> int:
        """The highest number ever used. Numbers are not reused, so that late writes never reach a new index."""
        numbers = [int(id[-6:]) for id, doc in await self._documents(site) if "owner" not in doc]
        return max(numbers, default=0)

    async def _documents(self, site: str) -> list[tuple[str, dict[str, Any]]]:
        doing = f"reading the rebuilds of site {site}"
        with explained(doing):
            await self._es.indices.refresh(index=REBUILDS, ignore_unavailable=True)
        hits = await self._hits(doing, query={"term": {"site": site}}, size=MAX_GENERATIONS)
        return [(hit["_id"], hit["_source"]) for hit in hits]

    async def sizes(self, site: str) -> dict[str, tuple[int, int]]:
        """Searchable documents and bytes on disk, by index. In a shared index, the bytes are the site's share by its
        documents.

        Raises:
            ElasticsearchDown.
        """
        with explained(f"measuring the indexes of site {site}"):
            answer = await self._es.indices.stats(index=f"{alias(site)}-*", metric=["docs", "store"])
        sizes = {
            name: (int(stats["primaries"]["docs"]["count"]), int(stats["total"]["store"]["size_in_bytes"]))
            for name, stats in answer["indices"].items()
        }
        for info in await self._indexes.generations(site):
            if info.shared in sizes:
                documents, size = sizes[info.shared]
                with explained(f"counting the documents of {info.name}"):
                    own = int((await self._es.count(index=info.name))["count"])
                sizes[info.name] = own, size * own // max(1, documents)
        return sizes

    async def contents(self, site: str, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Numbers of live pages and searchable chunks, by index. Raises: ElasticsearchDown."""
        if not names:
            return {}
        kinds = {"pages": {"term": {"state": "live"}}, "chunks": {"term": {"kind": "chunk"}}}
        counted = {"kinds": {"filters": {"filters": kinds}}}
        by_name = {
            field: {"terms": {"field": field, "size": len(names)}, "aggs": counted}
            for field in ("_index", "generation")
        }
        with explained(f"counting what the indexes of site {site} hold"):
            answer = await self._es.search(index=list(names), ignore_unavailable=True, size=0, aggs=by_name)
        if "aggregations" not in answer:  # all of them are gone
            return {}
        return {
            one["key"]: (one["kinds"]["buckets"]["pages"]["doc_count"], one["kinds"]["buckets"]["chunks"]["doc_count"])
            for found in answer["aggregations"].values()
            for one in found["buckets"]
        }

    async def put(self, rebuild: Rebuild) -> None:
        """Store the state of a generation. Raises: LeaseLost, ElasticsearchDown."""
        await self._put(rebuild, {"site": rebuild.site, "rebuild": rebuild.dumped()})

    async def forget(self, rebuild: Rebuild) -> None:
        """Delete all but the generation's number. Raises: ElasticsearchDown."""
        await self._put(rebuild, {"site": rebuild.site})

    async def _put(self, rebuild: Rebuild, document: dict[str, Any]) -> None:
        if rebuild.site in self._lost:
            raise LeaseLost(_lost(rebuild.site))
        await self._write(f"keeping the state of {rebuild.index}", rebuild.index, document, refresh=False)

    @asynccontextmanager
    async def lease(self, site: str) -> AsyncIterator[None]:
        """Hold the lease of the site's indexes meanwhile.

        Raises:
            RebuildRunning: another process holds it; the message names it.
            LeaseLost: in the body, if the lease could not be renewed.
        """
        owner = f"{socket.gethostname()}/{os.getpid()}/{psutil.Process().create_time():.0f}"
        place = await self._take(site, owner)
        self._lost.discard(site)
        work = asyncio.current_task()
        assert work
        keeping = asyncio.create_task(self._keep(site, owner, place, work), name=f"lease-{site}")
        try:
            yield
        except asyncio.CancelledError:
            if keeping.done() and not keeping.cancelled() and isinstance(lost := keeping.exception(), LeaseLost):
                work.uncancel()
                raise lost from None
            raise
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await self._give_back(site, owner)

    async def holder(self, site: str) -> str | None:
        """The process that holds the lease; None: no process does. Raises: ElasticsearchDown."""
        held = await self._get(f"looking at the lease of site {site}", _lease_id(site))
        return _named(held["_source"]["owner"]) if held and _holds(held["_source"]) else None

    async def stop(self, site: str, by: str) -> str | None:
        """Stop the process that works on the site's indexes, by taking its lease. It notices within a third of the
        lease, and stops where its work can be resumed. No other process can begin until the lease ends.

        Returns: the stopped process; None: no process was at work, or it has just ended.

        Raises:
            ElasticsearchDown.
        """
        doing = f"stopping the work on the indexes of site {site}"
        held = await self._get(doing, _lease_id(site))
        if held is None or not _holds(held["_source"]):
            return None
        owner = held["_source"]["owner"]
        if not _stopping(owner):
            by_hand = f"{by.replace('/', ' ')}/{STOPPING}/0"
            if await self._claim(doing, site, by_hand, version_of(held)) is None:
                return await self.stop(site, by)  # renewed or given back at the same moment
        return _named(owner)

    async def _take(self, site: str, owner: str) -> Token:
        """Take the lease. Returns its version."""
        doing = f"taking the lease of site {site}"
        held = await self._get(doing, _lease_id(site))
        if held and _holds(source := held["_source"]):
            raise RebuildRunning(
                f"a rebuild of site {site} is under way ({_named(source['owner'])}); "
                f"if that process is gone, its claim ends by {source['until']}"
            )
        taken = await self._claim(doing, site, owner, version_of(held) if held else None)
        if taken is None:
            raise RebuildRunning(f"a rebuild of site {site} has just been started elsewhere")
        return taken

    async def _claim(self, doing: str, site: str, owner: str, before: Token | None) -> Token | None:
        until = (datetime.now(UTC) + timedelta(seconds=LEASE)).isoformat()
        document = {"site": site, "owner": owner, "until": until}
        return await self._replace(doing, _lease_id(site), document, before, refresh=False)

    async def _keep(self, site: str, owner: str, place: Token, work: asyncio.Task[Any]) -> None:
        until = monotonic() + LEASE
        lost = LeaseLost(_lost(site))
        while True:
            await asyncio.sleep(LEASE / 3)
            began = monotonic()
            try:
                place = await self._renewed(site, owner, place)
                until = began + LEASE
            except LeaseLost as err:
                lost = err
                break
            except Permanent:
                break
            except Retryable as err:
                log.warning("lease not renewed", site=site, error=str(err))
                if monotonic() > until:
                    break
        self._lost.add(site)
        work.cancel()
        raise lost

    async def _renewed(self, site: str, owner: str, place: Token) -> Token:
        doing = f"keeping the lease of site {site}"
        if (written := await self._claim(doing, site, owner, place)) is not None:
            return written
        # It may be our own last write, if its response was lost.
        held = await self._get(doing, _lease_id(site))
        if held is None or held["_source"]["owner"] != owner:
            raise LeaseLost(_lost(site, held["_source"]["owner"] if held else ""))
        return version_of(held)

    async def _give_back(self, site: str, owner: str) -> None:
        try:
            doing = f"giving back the lease of site {site}"
            held = await self._get(doing, _lease_id(site))
            if held and held["_source"]["owner"] == owner:
                number, term = version_of(held)
                with explained(doing):
                    await self._es.delete(index=REBUILDS, id=_lease_id(site), if_seq_no=number, if_primary_term=term)
        except (Retryable, Permanent) as err:
            log.warning("lease not given back; it ends by itself", site=site, error=str(err))


def _lease_id(site: str) -> str:
    return f"lease-{site}"


def _stopping(owner: str) -> bool:
    return owner.split("/")[1] == STOPPING


def _lost(site: str, owner: str = "") -> str:
    if owner and _stopping(owner):
        return (
            f"{owner.split('/')[0]} has stopped the work on the indexes of site {site}; begun again, it goes on there"
        )
    return f"another process works on the indexes of site {site} by now; this one stops"


def _named(owner: str) -> str:
    host, pid, _ = owner.split("/")
    if _stopping(owner):
        return f"no process any more: {host} has stopped it, and it ends in a moment"
    return f"process {pid} on {host}"


def _holds(lease: dict[str, Any]) -> bool:
    return datetime.fromisoformat(lease["until"]) > datetime.now(UTC) and not _died_here(lease["owner"])


def _died_here(owner: str) -> bool:
    """Whether the owner was a process of this machine that has ended. Then its lease does not count."""
    host, pid, born = owner.split("/")
    if host != socket.gethostname() or _stopping(owner):
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.0f}" != born
    except psutil.NoSuchProcess:
        return True
