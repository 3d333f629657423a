"""Rebuild: a new index of a site, made from a topic while the old one answers and takes saves; and back again.

    topic ─▶ fill ─▶ candidate ─▶ audit ─▶ verified ─▶ promote ─▶ live ─▶ previous (one is kept) ─▶ rollback
                        ▲ follows the topic all the time        │
                                                                └ hold the old one: nobody gets a receipt from it
                                                                  follow to the topic's end
                                                                  swap the alias
    The index stage, which finds that it wrote to an index that is held or no longer live, does its work again. So a
    receipt always speaks of what visitors search, and a page deleted before the swap is deleted after it.

Each step can be killed and repeated. A lease keeps two processes from working on the indexes of one site.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Protocol

import structlog

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import IndexInfo
from adapters.embedders.registry import Models
from adapters.kafka_log import LogReader
from adapters.kafka_scan import LogScan
from pipelines.ingest.fill import Filler, Target
from pipelines.ingest.reuse import Embedding, PageModel
from pipelines.runtime.errors import Permanent, Retryable, SettingsError
from pipelines.runtime.guard import RetryPolicy
from pipelines.runtime.settings import Settings
from schemas.ingest import Chunker
from schemas.rebuild import Rebuild, RebuildFailure, RebuildSource
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, Topic

log = structlog.get_logger(__name__)

TOPIC: Mapping[RebuildSource, Topic] = {"changes": CHANGES, "chunks": CHUNKS, "embeddings": EMBEDDINGS}
# Pages that are to be embedded take seconds each; a batch is what is done again after a kill.
BATCH: Mapping[RebuildSource, int] = {"changes": 8, "chunks": 8, "embeddings": 200}
KEEP_EVERY = 5.0  # seconds between two notes of where the rebuild is
HOLD = 30.0  # seconds the old index is held at most; a promotion takes one or two
SWAP_BEFORE = 20.0  # seconds of them after which it is too late to swap: clocks differ a little
FOLLOW_EVERY = 1.0  # seconds
NEAR = 50  # records behind the end of the topic: near enough to hold the old index


class Unfinished(Permanent):
    """Another rebuild of the site was begun and not finished."""

    code = "unfinished-rebuild"


class NotVerified(Permanent):
    """The candidate was not found right, or nobody has looked."""

    code = "not-verified"


class NothingThere(Permanent):
    """There is no index to promote or to roll back to."""

    code = "nothing-there"


class TooSlow(Retryable):
    """The topic grows as fast as the candidate follows it."""

    code = "cannot-keep-up"


@dataclass(frozen=True)
class Progress:
    """Where the filling stands. `done` and `total` count records of the topic, those of other sites included."""

    done: int
    total: int
    rebuild: Rebuild


Report = Callable[[Progress], None]


class Quiet(Protocol):
    """Whether the ingest stages have done all there is (pipelines.status)."""

    async def idle(self) -> bool: ...


class Rebuilder:
    """Works on the generations of one site. Hold the lease (`Rebuilds.lease`) meanwhile."""

    def __init__(self, site: str, settings: Settings, elastic: Elastic, models: Models, quiet: Quiet) -> None:
        """Raises: UnknownSite."""
        settings.site(site)
        self._site = site
        self._settings = settings
        self._elastic = elastic
        self._models = models
        self._quiet = quiet

    async def begin(
        self, source: RebuildSource, *, embedder: str | None = None, chunker: Chunker | None = None, fresh: bool = False
    ) -> Rebuild:
        """The candidate to fill: the unfinished one if it was to become the same, else a new one.

        Args:
            embedder: Default: the configured one; with `embeddings`, that of the live index.
            chunker: Default: the configured one; with `chunks` and `embeddings`, that of the live index.
            fresh: Delete an unfinished one first.

        Raises:
            Unfinished: there is one that was to become something else.
            SettingsError: the source cannot give what is asked for.
        """
        wanted = await self._wanted(source, embedder, chunker)
        known = await self._elastic.rebuilds.of_site(self._site)
        live = await self._elastic.indexes.now(self._site)
        for rebuild in known:
            if rebuild.state in ("live", "previous") or (live and rebuild.index == live.name):
                continue
            if fresh:
                await self.discard(rebuild)
            elif _alike(rebuild, wanted):
                return rebuild
            else:
                raise Unfinished(
                    f"generation {rebuild.generation} of site {self._site} (from {rebuild.source}, {rebuild.model}, "
                    f"{rebuild.chunker}) is not finished; go on with the same options, or delete it with --fresh"
                )
        existing = [info.generation for info in await self._elastic.indexes.generations(self._site)]
        generation = max([0, *existing, *(rebuild.generation for rebuild in known)]) + 1
        rebuild = wanted.model_copy(
            update={"generation": generation, "index": f"pagewire-{self._site}-{generation:06d}"}
        )
        # First the note, then the index: a kill in between leaves a note, from which the index is made.
        await self._elastic.rebuilds.put(rebuild)
        return rebuild

    async def fill(self, rebuild: Rebuild, report: Report) -> Rebuild:
        """Fill the candidate up to the end of its topic."""
        async with self._following(rebuild, report) as follow:
            await follow.near()
            return await follow.keep()

    async def verify(self, rebuild: Rebuild, audit: Callable[[str], Awaitable[bool]], report: Report) -> Rebuild:
        """Audit the candidate while it goes on following its topic; `audit` says whether it is clean.

        Raises:
            NotVerified.
        """
        info = await self._info(rebuild)
        await self._elastic.indexes.searchable(info)
        async with self._following(rebuild, report) as follow:
            following = asyncio.create_task(follow.on_and_on(), name=f"follow-{rebuild.index}")
            try:
                clean = await audit(rebuild.index)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            if not clean:
                raise NotVerified(f"{rebuild.index} is not what the log says; it is kept for a look, not promoted")
            return await follow.keep(state="verified")

    async def promote(self, rebuild: Rebuild, report: Report) -> Rebuild:
        """Make the candidate live; the one before stays for a rollback, older ones go.

        Raises:
            NotVerified. TooSlow: saves come faster than the candidate takes them; nothing has changed.
        """
        if rebuild.state not in ("verified", "previous"):
            raise NotVerified(
                f"{rebuild.index} was not verified; `pagewire rebuild {self._site} --from {rebuild.source}` goes on"
            )
        new = await self._info(rebuild)
        old = await self._elastic.indexes.now(self._site)
        async with self._following(rebuild, report) as follow:
            rest = None
            if old is None or old.name != new.name:  # else a promotion was killed after the swap
                await self._elastic.indexes.searchable(new)
                await follow.near()
                rest = await self._shown_by_all() if old else None
                await self._swap(old, new, follow)
            # What was written to the old index meanwhile has no receipt yet and is being done again by the index stage;
            # clocks that differ too much could have let something through.
            await follow.to_end()
            live = await follow.keep(state="live", promoted_at=datetime.now(UTC))
        if old is not None and old.name != new.name:
            await self._demote(old, rest)
        return live

    async def rollback(self, report: Report) -> Rebuild:
        """Make the previous index live again, after bringing it up to date.

        Raises:
            NothingThere.
        """
        for rebuild in reversed(await self._elastic.rebuilds.of_site(self._site)):
            if rebuild.state == "previous":
                return await self.promote(rebuild, report)
        raise NothingThere(f"site {self._site} has no previous index to roll back to")

    async def candidate(self) -> Rebuild:
        """The generation that was built and is not live. Raises: NothingThere."""
        for rebuild in reversed(await self._elastic.rebuilds.of_site(self._site)):
            if rebuild.state in ("building", "verified"):
                return rebuild
        raise NothingThere(f"site {self._site} has no candidate; `pagewire rebuild {self._site}` makes one")

    async def discard(self, rebuild: Rebuild) -> None:
        """Delete a generation that is not live. Raises: IndexUnfit: it is."""
        for info in await self._elastic.indexes.generations(self._site):
            if info.name == rebuild.index:
                await self._elastic.indexes.discard(info)
        await self._elastic.rebuilds.forget(rebuild)

    async def _swap(self, old: IndexInfo | None, new: IndexInfo, follow: _Follow) -> None:
        indexes = self._elastic.indexes
        began = monotonic()
        try:
            if old is not None:
                await indexes.hold(old, HOLD)
            await follow.to_end()
            await indexes.searchable(new)
            if monotonic() - began > SWAP_BEFORE:
                raise TooSlow(f"{new.name} did not catch up within {SWAP_BEFORE:.0f} s; promote it at a quieter time")
            await indexes.swap(self._site, new)
        except BaseException:
            if old is not None:
                await indexes.release(old)  # also when it is no longer live: it may be again
            raise
        if old is not None:
            await indexes.release(old)

    async def _shown_by_all(self) -> dict[int, int] | None:
        """Offsets of cms.changes before which everything is in the live index; None when that is not known."""
        async with LogScan(self._settings, CHANGES) as scan:
            ends = await scan.ends()
        return ends if await self._quiet.idle() else None

    async def _demote(self, old: IndexInfo, shown: dict[int, int] | None) -> None:
        known = {rebuild.index: rebuild for rebuild in await self._elastic.rebuilds.of_site(self._site)}
        now = datetime.now(UTC)
        before = known.get(old.name) or Rebuild(
            site=self._site,
            generation=old.generation,
            index=old.name,
            source="changes",
            embedder=old.embedder,
            model=old.model,
            dims=old.dims,
            chunker=old.chunker,
            created_at=now,
            updated_at=now,
        )
        # From here on it is behind; a rollback reads what it missed from the changes.
        update = {"state": "previous", "source": "changes", "offsets": shown or {}, "updated_at": now}
        await self._elastic.rebuilds.put(before.model_copy(update=update))
        for rebuild in known.values():
            if rebuild.state == "previous" and rebuild.index != old.name:
                await self.discard(rebuild)

    async def _wanted(self, source: RebuildSource, embedder: str | None, chunker: Chunker | None) -> Rebuild:
        live = await self._elastic.indexes.now(self._site)
        if source != "changes":
            if live is not None and chunker not in (None, live.cut):
                raise SettingsError(f"--from {source}: chunks are cut already; another chunker needs --from changes")
            chunker = live.cut if live else chunker
        if source == "embeddings" and live is not None:
            if embedder not in (None, live.embedder):
                raise SettingsError(
                    f"--from embeddings: they are of {live.embedder}; another model needs --from chunks"
                )
            spec, model, dims = live.embedder, live.model, live.dims
        else:
            made = await self._models.by_name(embedder or self._settings.embedder)
            spec, model, dims = made.spec, made.fingerprint, made.dims
        now = datetime.now(UTC)
        return Rebuild(
            site=self._site,
            generation=1,
            index="",
            source=source,
            embedder=spec,
            model=model,
            dims=dims,
            chunker=(chunker or self._settings.chunker).fingerprint,
            created_at=now,
            updated_at=now,
        )

    async def _info(self, rebuild: Rebuild) -> IndexInfo:
        for info in await self._elastic.indexes.generations(self._site):
            if info.name == rebuild.index:
                return info
        raise NothingThere(f"index {rebuild.index} is gone; begin again with --fresh")

    @asynccontextmanager
    async def _following(self, rebuild: Rebuild, report: Report) -> AsyncIterator[_Follow]:
        await self._elastic.indexes.create(
            self._site,
            rebuild.generation,
            rebuild.embedder,
            rebuild.model,
            rebuild.dims,
            rebuild.chunker,
            source=TOPIC[rebuild.source].name,
        )
        info = await self._info(rebuild)

        async def model() -> PageModel:
            made = await self._models.by_name(rebuild.embedder)
            if made.fingerprint != rebuild.model:
                raise SettingsError(
                    f"{rebuild.index} is for {rebuild.model}, but {rebuild.embedder} is {made.fingerprint}"
                )
            return made

        target = Target(self._site, rebuild.embedder, rebuild.model, rebuild.dims, info.cut, model)
        async with (
            LogReader(self._settings, CHANGES) as changes,
            LogScan(self._settings, TOPIC[rebuild.source]) as scan,
        ):
            filler = Filler(
                rebuild.source,
                target,
                self._elastic.pages.at(info),
                self._elastic.pages,
                Embedding(self._models, self._elastic.pages),
                changes,
                RetryPolicy(self._settings.tries, self._settings.retry_for),
            )
            yield _Follow(rebuild, scan, filler, self._elastic.rebuilds.put, report)


class _Follow:
    """Reads the topic from where the rebuild stands."""

    def __init__(
        self,
        rebuild: Rebuild,
        scan: LogScan,
        filler: Filler,
        put: Callable[[Rebuild], Awaitable[None]],
        report: Report,
    ) -> None:
        self._rebuild = rebuild
        self._scan = scan
        self._filler = filler
        self._put = put
        self._report = report
        self._offsets = dict(rebuild.offsets)
        self._kept = monotonic()

    async def near(self) -> None:
        """Follow until the end is near."""
        while await self.behind() > NEAR or not self._offsets:
            await self.to_end()

    async def on_and_on(self) -> None:
        """Follow until cancelled."""
        while True:
            await self.to_end()
            await asyncio.sleep(FOLLOW_EVERY)

    async def behind(self) -> int:
        """Records that are left."""
        begins, ends = await self._scan.begins(), await self._scan.ends()
        return sum(max(0, end - max(begins[p], self._offsets.get(p, 0))) for p, end in ends.items())

    async def to_end(self) -> None:
        """Follow to where the topic ends now."""
        begins, ends = await self._scan.begins(), await self._scan.ends()
        total = sum(ends[p] - begins[p] for p in ends)
        writing: asyncio.Task[None] | None = None
        reached = dict(self._offsets)
        source = self._rebuild.source
        try:
            async for records in self._scan.read(since=self._offsets, until=ends, batch=BATCH[source]):
                pages = await self._filler.decode(records)  # while the batch before is being written
                if writing is not None:
                    await writing
                    await self._reached(reached, begins, total)
                reached = reached | {record.partition: record.offset + 1 for record in records}
                writing = asyncio.create_task(self._filler.write(pages), name=f"fill-{self._rebuild.index}")
            if writing is not None:
                await writing
        finally:
            if writing is not None and not writing.done():
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
        await self._reached(ends, begins, total)

    async def keep(self, **update: object) -> Rebuild:
        """Note where the rebuild is."""
        tally = self._filler.take()
        before = self._rebuild
        self._rebuild = before.model_copy(
            update={
                "offsets": dict(self._offsets),
                "pages": before.pages + tally.pages,
                "chunks": before.chunks + tally.chunks,
                "embedded": before.embedded + tally.embedded,
                "remade": before.remade + tally.remade,
                "failures": before.failures + tally.failures,
                "failed": (*before.failed, *(RebuildFailure(page_key=k, reason=r) for k, r in tally.failed))[:20],
                "updated_at": datetime.now(UTC),
                **update,
            }
        )
        await self._put(self._rebuild)
        self._kept = monotonic()
        return self._rebuild

    async def _reached(self, offsets: Mapping[int, int], begins: Mapping[int, int], total: int) -> None:
        self._offsets = dict(offsets)
        if monotonic() - self._kept > KEEP_EVERY:
            await self.keep()
        done = sum(max(0, offset - begins.get(p, 0)) for p, offset in self._offsets.items())
        self._report(Progress(done, total, self._rebuild))


def _alike(a: Rebuild, b: Rebuild) -> bool:
    return (a.source, a.model, a.chunker) == (b.source, b.model, b.chunker)
