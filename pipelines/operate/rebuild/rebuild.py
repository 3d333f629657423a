"""Rebuild: makes a new index of a site from a topic while the old one stays in use; promotes it, and rolls back.

    topic ─▶ fill ─▶ candidate ─▶ audit ─▶ verified ─▶ promote ─▶ live ─▶ previous (one is kept) ─▶ rollback
                        ▲ follows the topic all the time        │
                                                                └ hold the old one: no receipts from it
                                                                  follow to the topic's end
                                                                  swap the alias
    If the index stage finds that it wrote to a held index, or to one that is no longer live, it repeats its work. So a
    receipt is always about the live index, and a page deleted before the swap is deleted after it.

By workers: the pages to fill are sent to them (orders.py); the few later ones are built here.

Each step can be killed and repeated. A lease keeps two processes from working on the indexes of one site.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from pipelines.ingest.documents.attachments import Attachments
from pipelines.ingest.embed import Embedding
from pipelines.operate.rebuild.catch_up import CatchUp, Report, indexed
from pipelines.operate.rebuild.generations import GenerationStore, History, history, unnoted
from pipelines.operate.rebuild.index_builder import IndexBuilder
from pipelines.operate.rebuild.orders import WorkerOrders
from pipelines.operate.rebuild.page_builder import BuildTarget
from pipelines.runtime.bus import Bus
from pipelines.runtime.embedder import Embedders
from pipelines.runtime.errors import PagewireError, Permanent, SettingsError
from pipelines.runtime.indexes import IndexInfo, index_name
from pipelines.runtime.retry import RetryPolicy
from schemas.ingest import Chunker
from schemas.rebuild import GateReport, KeptGateReport, Rebuild, RebuildSource
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, Topic

log = structlog.get_logger(__name__)

TOPIC: Mapping[RebuildSource, Topic] = {"changes": CHANGES, "chunks": CHUNKS, "embeddings": EMBEDDINGS}
HOLD = 30.0  # seconds the old index is held at most; a promotion takes one or two
SWAP_BEFORE = 20.0  # seconds of HOLD after which it is too late to swap: clocks differ a little


class Unfinished(Permanent):
    """Another rebuild of the site is not finished."""

    code = "unfinished-rebuild"


class NotVerified(Permanent):
    """The candidate was not verified, or has differences."""

    code = "not-verified"


class NothingThere(Permanent):
    """There is no index to promote, to roll back to, or to discard."""

    code = "no-such-generation"


class StillLive(Permanent):
    """The index is live."""

    code = "generation-live"


class TooSlow(Permanent):
    """The candidate does not catch up with the topic."""

    code = "cannot-keep-up"


@dataclass(frozen=True)
class Defaults:
    """The default embedder and chunker of a new index, and how long each record is retried."""

    embedder: str
    chunker: Chunker
    retry: RetryPolicy


@dataclass(eq=False)
class Rebuilder:
    """Changes the generations of one site. Hold the lease (`Rebuilds.lease`) meanwhile."""

    site: str
    defaults: Defaults
    store: GenerationStore
    embedders: Embedders
    bus: Bus
    attachments: Callable[[], Attachments]  # makes the reader of attachments, which is closed afterwards
    report: Report = lambda _: None
    # Sends the pages of the index of this name to workers; None: this process builds them.
    orders: Callable[[str], AbstractAsyncContextManager[WorkerOrders]] | None = None

    async def begin(
        self, source: RebuildSource, *, embedder: str | None = None, chunker: Chunker | None = None, fresh: bool = False
    ) -> Rebuild:
        """The candidate to fill: the unfinished one if its options are the same, else a new one.

        If its promotion was killed after the swap, the promotion is finished; its state shows it.

        Args:
            embedder: Default: the configured one; with `embeddings`, that of the live index.
            chunker: Default: the configured one; with `chunks` and `embeddings`, that of the live index.
            fresh: Delete an unfinished one first.

        Raises:
            Unfinished: there is one with other options.
            SettingsError: the source does not allow these options.
        """
        if self.orders is not None and source != "changes":
            raise SettingsError(f"--by workers sends them changes: it needs --from changes, not --from {source}")
        known = await history(self.store, self.site)
        wanted = await self._wanted(known, source, embedder, chunker)
        if known.half_promoted is not None:
            finished = await self._finish_promotion(known.half_promoted)
            if _alike(finished, wanted) and not fresh:
                return finished
        for rebuild in known.rebuilds:
            if rebuild.state not in ("building", "verified"):
                continue
            if fresh:
                await self._delete(rebuild, known)
            elif _alike(rebuild, wanted):
                return rebuild if rebuild.index in known.indexes else await self._create(rebuild)
            else:
                raise Unfinished(
                    f"generation {rebuild.generation} of site {self.site} (from {rebuild.source}, {rebuild.model}, "
                    f"{rebuild.chunker}) is not finished; go on with the same options, or delete it with --fresh"
                )
        # 1 is the index that a site's first save makes.
        numbers = [1, await self.store.rebuilds.last_generation(self.site)]
        generation = max(numbers + [info.generation for info in known.indexes.values()]) + 1
        return await self._create(
            wanted.model_copy(update={"generation": generation, "index": index_name(self.site, generation)})
        )

    async def is_as_wanted(
        self, source: RebuildSource, *, embedder: str | None = None, chunker: Chunker | None = None
    ) -> bool:
        """Whether the live index has the model, the chunker and the kind of index that `begin` would use.

        Raises: SettingsError.
        """
        known = await history(self.store, self.site)
        wanted = await self._wanted(known, source, embedder, chunker)
        if known.live is None or known.half_promoted is not None:
            return False
        there = (known.live.model, known.live.chunker, known.live.shared is not None)
        return there == (wanted.model, wanted.chunker, wanted.shared)

    async def fill(self, rebuild: Rebuild) -> Rebuild:
        """Fill the candidate up to the end of its topic.

        Raises: WorkersAway, OrderRefused: with orders only. Retryable, as `CatchUp.to_end`.
        """
        ordered = self.orders(rebuild.index) if self.orders is not None else nullcontext()
        async with ordered as orders, self._following(rebuild, orders) as follow:
            await follow.near()
            return await follow.note()

    async def verify(self, rebuild: Rebuild, audit: Callable[[str], Awaitable[bool]]) -> Rebuild:
        """Audit the candidate while it goes on following its topic.

        Args:
            audit: compares the index of this name with the log.

        Raises: NotVerified.
        """
        async with self._following(rebuild) as follow:
            await self.store.indexes.searchable(await self._info(rebuild))
            following = asyncio.create_task(follow.on_and_on(), name=f"follow-{rebuild.index}")
            auditing = asyncio.ensure_future(audit(rebuild.index))
            try:
                await asyncio.wait((following, auditing), return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()
                clean = await auditing
            finally:
                following.cancel()
                auditing.cancel()
                await asyncio.gather(following, auditing, return_exceptions=True)
            if not clean:
                raise NotVerified(
                    f"{rebuild.index} is not what the log says; it is kept for a look and not promoted "
                    f"(the same command tries again, --fresh begins anew)"
                )
            return await follow.note(state="verified")

    async def judged(self, rebuild: Rebuild, found: GateReport, against: str) -> Rebuild:
        """Store the quality gate's result with a candidate, for the operator who decides on it.

        Args:
            against: the index it was compared with.
        """
        report = KeptGateReport(**found.model_dump(), against=against, at=datetime.now(UTC))
        kept = rebuild.model_copy(update={"gate": report})
        await self.store.rebuilds.put(kept)
        return kept

    async def promote(self, generation: int | None = None) -> Rebuild:
        """Make a verified candidate live; the previous index stays for a rollback, older ones are deleted.

        Args:
            generation: Default: the candidate.

        Raises: NotVerified, NothingThere. TooSlow: saves come faster than the candidate follows; nothing was changed.
        """
        known = await history(self.store, self.site)
        half = known.half_promoted
        if half is not None and generation in (None, half.generation):
            finished = await self._finish_promotion(half)
            if half.state == "verified" or generation is not None:
                return finished
        rebuild = self._promotable(known, generation)
        if rebuild.state == "building":
            raise NotVerified(
                f"{rebuild.index} was not verified; `pagewire index rebuild {self.site} --from {rebuild.source}` "
                "with the options it was begun with goes on"
            )
        return await self._make_live(rebuild, await self.store.indexes.now(self.site))

    async def rollback(self) -> Rebuild:
        """Make the previous index live again, after bringing it up to date.

        Raises: NothingThere. TooSlow, as `promote`.
        """
        known = await history(self.store, self.site)
        if (half := known.half_promoted) is not None:
            finished = await self._finish_promotion(half)
            if half.state == "previous":
                return finished  # of a killed rollback
        for rebuild in reversed(known.rebuilds):
            if rebuild.state == "previous" and rebuild.index in known.indexes:
                return await self._make_live(rebuild, known.live)
        raise NothingThere(f"site {self.site} has no previous index to roll back to")

    async def discard(self, generation: int) -> Rebuild:
        """Delete a generation. Raises: StillLive, NothingThere."""
        known = await history(self.store, self.site)
        rebuild = self._numbered(known, generation)
        if rebuild.state == "live":
            raise StillLive(f"generation {generation} of site {self.site} is live; it is not deleted")
        await self._delete(rebuild, known)
        return rebuild

    def _promotable(self, known: History, generation: int | None) -> Rebuild:
        if generation is not None:
            rebuild = self._numbered(known, generation)
            if rebuild.state == "live":
                raise StillLive(f"generation {generation} of site {self.site} is live already")
            return rebuild
        for rebuild in reversed(known.rebuilds):
            if rebuild.state in ("building", "verified"):
                return rebuild
        there = ", ".join(f"{rebuild.generation} ({rebuild.state})" for rebuild in known.rebuilds) or "none"
        raise NothingThere(
            f"site {self.site} has no candidate; generations: {there}. "
            f"`pagewire index rebuild {self.site} --from changes` makes one"
        )

    def _numbered(self, known: History, generation: int) -> Rebuild:
        for rebuild in known.rebuilds:
            if rebuild.generation == generation:
                return rebuild
        numbers = ", ".join(str(rebuild.generation) for rebuild in known.rebuilds) or "none"
        raise NothingThere(f"site {self.site} has no generation {generation}; it has: {numbers}")

    async def _make_live(self, new: Rebuild, old: IndexInfo | None) -> Rebuild:
        async with self._following(new) as follow:
            info = await self._info(new)
            await self.store.indexes.searchable(info)
            await follow.near()
            if old is not None:
                await self._note_replaced(old)
            await self._swap(old, info, follow)
            return await self._end_promotion(follow)

    async def _swap(self, old: IndexInfo | None, new: IndexInfo, follow: CatchUp) -> None:
        indexes = self.store.indexes
        try:
            async with asyncio.timeout(SWAP_BEFORE):
                if old is not None:
                    await indexes.hold(old, HOLD)
                await follow.to_end()
                await indexes.searchable(new)
            await indexes.swap(self.site, new)
        except TimeoutError as err:
            raise TooSlow(
                f"{new.name} did not catch up within {SWAP_BEFORE:.0f} s; promote it at a quieter time"
            ) from err
        finally:
            if old is not None:
                await indexes.release(old)  # also after the swap: it may be live again later

    async def _finish_promotion(self, half: Rebuild) -> Rebuild:
        """Finish a promotion that was killed after its swap."""
        async with self._following(half) as follow:
            return await self._end_promotion(follow)

    async def _end_promotion(self, follow: CatchUp) -> Rebuild:
        # Changes written to the old index meanwhile have no receipt yet, and the index stage repeats them, unless
        # clocks differ too much. So follow the topic once more.
        await follow.to_end()
        known = await history(self.store, self.site)
        others = [r for r in known.noted if r.state in ("live", "previous") and not known.is_live(r)]
        replaced = [rebuild for rebuild in others if rebuild.state == "live" and rebuild.index in known.indexes]
        for rebuild in others:
            if rebuild.index not in known.indexes or (replaced and rebuild not in replaced):
                await self._delete(rebuild, known)
        for rebuild in replaced:
            await self.store.rebuilds.put(rebuild.model_copy(update={"state": "previous"}))
        return await follow.note(state="live", promoted_at=datetime.now(UTC))

    async def _note_replaced(self, old: IndexInfo) -> None:
        """Note the live index before the swap: afterwards it falls behind, and a rollback reads the missed changes."""
        known = await history(self.store, self.site)
        before = next((rebuild for rebuild in known.noted if known.is_live(rebuild)), None) or unnoted(old)
        update = {"state": "live", "follows": "changes", "offsets": await indexed(self.bus) or {}}
        await self.store.rebuilds.put(before.model_copy(update=update))

    async def _delete(self, rebuild: Rebuild, known: History) -> None:
        if rebuild.index in known.indexes:
            await self.store.indexes.discard(known.indexes[rebuild.index])
        await self.store.rebuilds.forget(rebuild)

    async def _wanted(
        self, known: History, source: RebuildSource, embedder: str | None, chunker: Chunker | None
    ) -> Rebuild:
        # If the live index is lost, its note has its options.
        lost = next((rebuild for rebuild in reversed(known.noted) if rebuild.state == "live"), None)
        base = known.live or lost
        if source != "changes" and base is not None:
            cut = Chunker.of(base.chunker)
            if chunker not in (None, cut):
                raise SettingsError(f"--from {source}: chunks are cut already; another chunker needs --from changes")
            chunker = cut
        if source == "embeddings" and base is not None:
            if embedder not in (None, base.embedder):
                raise SettingsError(
                    f"--from embeddings: they are of {base.embedder}; another model needs --from chunks"
                )
            spec, model, dims = base.embedder, base.model, base.dims
        else:
            made = await self.embedders.by_name(embedder or self.defaults.embedder)
            spec, model, dims = made.spec, made.fingerprint, made.dims
        now = datetime.now(UTC)
        return Rebuild(
            site=self.site,
            generation=1,
            index="",
            source=source,
            follows=source,
            embedder=spec,
            model=model,
            dims=dims,
            chunker=(chunker or self.defaults.chunker).fingerprint,
            shared=self.store.indexes.shares(self.site),
            created_at=now,
            updated_at=now,
        )

    async def _create(self, rebuild: Rebuild) -> Rebuild:
        """Write the note, then make the index: after a kill in between, the index is made from the note."""
        blank: dict[str, object] = {"state": "building", "offsets": {}, "done": 0, "pages": 0, "chunks": 0}
        tally: dict[str, object] = {"embedded": 0, "remade": 0, "failures": 0, "failed": (), "gate": None}
        rebuild = rebuild.model_copy(update=blank | tally)
        await self.store.rebuilds.put(rebuild)
        await self.store.indexes.create(
            self.site,
            rebuild.generation,
            rebuild.embedder,
            rebuild.model,
            rebuild.dims,
            rebuild.chunker,
            source=TOPIC[rebuild.source].name,
            shared=rebuild.shared,
        )
        return rebuild

    async def _info(self, rebuild: Rebuild) -> IndexInfo:
        for info in await self.store.indexes.generations(self.site):
            if info.name == rebuild.index:
                return info
        raise NothingThere(f"index {rebuild.index} is gone; `pagewire index discard {self.site} {rebuild.generation}`")

    @asynccontextmanager
    async def _following(self, rebuild: Rebuild, orders: WorkerOrders | None = None) -> AsyncIterator[CatchUp]:
        """Store the offsets in any case, if Elasticsearch answers."""
        info = await self._info(rebuild)
        target = BuildTarget.of(info, self.embedders)
        async with (
            self.bus.reader(CHANGES) as changes,
            self.bus.scan(TOPIC[rebuild.follows]) as scan,
            aclosing(self.attachments()) as attachments,
        ):
            builder = IndexBuilder(
                rebuild.follows,
                target,
                self.store.pages.at(info),
                self.store.pages,
                Embedding(self.embedders, self.store.pages),
                changes,
                attachments.read,
                self.defaults.retry,
                orders,
            )
            follow = CatchUp(rebuild, scan, builder, self.store.rebuilds.put, self.report)
            try:
                yield follow
            except BaseException:
                with suppress(PagewireError):
                    await follow.note()
                raise


def _alike(a: Rebuild, b: Rebuild) -> bool:
    return (a.source, a.model, a.chunker, a.shared) == (b.source, b.model, b.chunker, b.shared)
