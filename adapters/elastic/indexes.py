"""Indexes of a site: `pagewire-{site}-{generation}`; the alias `pagewire-{site}` names the live one.

    pagewire-town ───────────────┐ live: visitors search it
    pagewire-town-000001         │            pagewire-town-000001.write
    pagewire-town-000002 ◀───────┘            pagewire-town-000002.write ◀── all writes to generation 2

Writes name their generation and go through its own alias. So they never reach another index when a rebuild is
promoted, and never recreate a deleted index. Small sites can share an index (tenancy.py). Then the generation's name is
an alias as well, which is used like the name of an index.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from cachetools import TTLCache
from elasticsearch import AsyncElasticsearch, BadRequestError, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.reading import Shared
from adapters.elastic.tenancy import PREFIX, PROPERTIES, Tenancy, held_until, is_shared, only
from pipelines.runtime.embedder import is_sparse
from pipelines.runtime.indexes import WRITE_SUFFIX, IndexGone, IndexInfo, IndexUnfit, alias, index_name
from text.words import ANALYSIS

MAPPINGS = Path(__file__).resolve().parents[2] / "infra" / "elasticsearch"
RECEIPTS = "pagewire.receipts"  # no site id contains a dot
REBUILDS = "pagewire.rebuilds"
CONVERSATIONS = "pagewire.conversations"
EXAMPLES = "pagewire.examples"
PARTS = "pagewire.parts"
OUTCOMES = "pagewire.outcomes"
KEYS = "pagewire.keys"
AUDIT_LOG = "pagewire.audit-log"
TEXTS = "pagewire.texts"
EVALUATIONS = "pagewire.evaluations"
PLACES = "pagewire.places"
STATES = "pagewire.states"
HANDOVERS = "pagewire.handovers"
# The indexes for all sites, with their mappings in infra/elasticsearch.
SYSTEM = {
    RECEIPTS: "002_receipts.json",
    REBUILDS: "003_rebuilds.json",
    CONVERSATIONS: "004_conversations.json",
    EXAMPLES: "005_examples.json",
    PARTS: "006_parts.json",
    OUTCOMES: "007_outcomes.json",
    KEYS: "008_keys.json",
    AUDIT_LOG: "009_audit_log.json",
    TEXTS: "010_texts.json",
    EVALUATIONS: "011_evaluations.json",
    PLACES: "012_places.json",
    STATES: "013_states.json",
    HANDOVERS: "014_handovers.json",
}
ADDED_TO_SYSTEM = {OUTCOMES: ("labelled_by", "corrections")}  # fields that came after the index
INFO_TTL = 2.0  # seconds until a reader notices by itself that another index was promoted
RECENT = 60.0  # seconds for which a search takes an older look, while the next one is under way
# Of what is in an index; counts up when older software must not touch it. Of one site's, of shared ones, and of those
# with sparse vectors, which older software would not write.
OWN_FORMAT, SHARED_FORMAT, FORMAT = 2, 3, 4
NO_AUTO_CREATE = "pagewire-no-auto-create"  # an index template
GENERATION = re.compile(r"-\d{6}$")
SWAP_TIMEOUT = "5s"
ALLOCATED = "10s"  # until an index that somebody else is making can be asked
# Fields of a site's index that came after the first release.
ADDED = (
    "units", "reader", "path", "labels", "page_kind", "published_at", "changed_at",
    "headings", "folded_title", "folded_headings",
)  # fmt: skip
# What is read of an index: not its mapping, which is long. An identity each has, also one that is not of our making.
IDENTITY = ["*.mappings._meta", *(f"*.mappings.properties.{name}.type" for name in ADDED), "*.settings.index.uuid"]
REFRESH = "1s"  # of an index that is searched; one that is being built refreshes when asked


def added_mapping() -> dict[str, Any]:
    """What an index of an earlier version lacks; it may be added at any time."""
    properties: dict[str, Any] = mapping("001_site.json")["mappings"]["properties"]
    return {name: properties[name] for name in ADDED}


@dataclass(frozen=True)
class LiveIndex:
    """One site in a survey of all sites."""

    info: IndexInfo | IndexUnfit | None  # an error where the index is unfit; None: no index is live
    others: tuple[str, ...]  # its indexes that are not live


@cache
def mapping(file: str) -> dict[str, Any]:
    """A numbered mapping file of infra/elasticsearch."""
    loaded: dict[str, Any] = json.loads((MAPPINGS / file).read_text(encoding="utf-8"))
    return loaded


@dataclass
class _Found:
    """The indexes behind the names of one site."""

    live: list[str] = field(default_factory=list)  # concrete indexes
    generations: dict[str, str] = field(default_factory=dict)  # the concrete index of each, own or shared
    held: dict[str, datetime] = field(default_factory=dict)  # by generation in a shared index: end of its hold


class ElasticIndexes:
    """Creates indexes and knows which one is live. One per process."""

    def __init__(
        self,
        es: AsyncElasticsearch,
        shares: Callable[[str], bool],
        tenancy: Tenancy,
        *,
        shards: int,
        replicas: int,
    ) -> None:
        """
        Args:
            shares: whether new generations of a site go into an index of many sites.
            shards: of an index of one site, and of those for all sites.
        """
        self._es = es
        self.shares = shares
        self._tenancy = tenancy
        self._size = {"number_of_shards": shards, "number_of_replicas": replicas}
        self._known: TTLCache[str, IndexInfo] = TTLCache(inf, INFO_TTL)
        self._recent: TTLCache[str, IndexInfo] = TTLCache(inf, RECENT)
        self._renewed: dict[str, asyncio.Task[IndexInfo | None]] = {}  # reads in the background
        self._looks: WeakValueDictionary[str, Shared[IndexInfo | None]] = WeakValueDictionary()  # running reads
        self._listings: WeakValueDictionary[str, Shared[list[IndexInfo]]] = WeakValueDictionary()

    def target(self, site: str) -> str:
        """The name for searches of the live index."""
        return alias(site)

    async def live(self, site: str) -> IndexInfo | None:
        """The index behind the site's alias; None when there is none. At most `INFO_TTL` old.

        Raises:
            IndexUnfit: the alias is not what it must be. ElasticsearchDown.
        """
        return self._known.get(site) or await self.now(site)

    async def recent(self, site: str) -> IndexInfo | None:
        """As `live`, at most `RECENT` old: for searches, whose hits tell when another index was promoted since.

        A look that is older than `INFO_TTL` is renewed meanwhile, so that no visitor waits for it.
        """
        if (info := self._known.get(site) or self._recent.get(site)) is None:
            return await self.now(site)
        if site not in self._known and site not in self._renewed:
            renewed = self._renewed[site] = asyncio.create_task(self.now(site), name="renew-index-info")
            renewed.add_done_callback(partial(self._done, site))
        return info

    def _done(self, site: str, renewed: asyncio.Task[IndexInfo | None]) -> None:
        del self._renewed[site]
        if not renewed.cancelled() and renewed.exception() is not None:  # the next search says it
            self._forget(site)

    def _forget(self, site: str) -> None:
        self._known.pop(site, None)
        self._recent.pop(site, None)

    async def now(self, site: str) -> IndexInfo | None:
        """As `live`, by a read that begins after this call. Concurrent callers share one read."""
        try:
            info = await self._looks.setdefault(site, Shared(partial(self._read, site))).result()
        except IndexUnfit:
            self._forget(site)
            raise
        if info is None:  # not cached: the first save of a site creates the index
            self._forget(site)
        else:
            self._known[site] = self._recent[site] = info
        return info

    async def _read(self, site: str) -> IndexInfo | None:
        with explained(f"looking up the index of site {site}"):
            try:
                bodies = await self._get(alias(site), f"{alias(site)}*")
            except NotFoundError:
                return None
        return _live(site, _by_site(bodies)[alias(site)], bodies)

    async def _get(self, names: str, aliases: str = "*") -> dict[str, Any]:
        """Identity and matching aliases of these indexes, by concrete index."""
        answer = await self._es.indices.get(
            index=names,
            features=["aliases", "mappings", "settings"],
            filter_path=[*IDENTITY, f"*.aliases.{aliases}"],
            allow_no_indices=True,
        )
        return dict(answer.body)

    async def survey(self, sites: Iterable[str]) -> dict[str, LiveIndex]:
        """The indexes of each of these sites, by one request for all. Raises: ElasticsearchDown."""
        with explained("looking up the indexes of all sites"):
            bodies = await self._get(alias("*"))
        found = _by_site(bodies)
        return {site: _surveyed(site, found[alias(site)], bodies) for site in sites}

    async def generations(self, site: str) -> list[IndexInfo]:
        """All indexes of a site, the oldest first, by a read that begins after this call. Concurrent callers share one.

        Raises:
            IndexUnfit, ElasticsearchDown.
        """
        return await self._listings.setdefault(site, Shared(partial(self._list, site))).result()

    async def _list(self, site: str) -> list[IndexInfo]:
        with explained(f"listing the indexes of site {site}"):
            bodies = await self._get(f"{alias(site)}-*", f"{alias(site)}-*")
        found = _by_site(bodies)[alias(site)]
        return [_info(site, name, found, bodies) for name in sorted(found.generations)]

    async def ensure(self, site: str, *, embedder: str, model: str, dims: int, chunker: str) -> IndexInfo:
        """The live index, created with this model if the site never had one. Safe to call concurrently.

        Raises:
            IndexGone: the site had pages. A new, empty index would hide their loss.
        """
        if info := await self.live(site):
            return info
        await self.explain_absence(site)
        await self.create(site, 1, embedder, model, dims, chunker, live=True, shared=self.shares(site))
        info = await self.now(site)
        if info is None:
            raise IndexUnfit(f"index {index_name(site, 1)} was created and has gone again")
        return info

    async def explain_absence(self, site: str) -> None:
        """Raise why a site without a live index has none. Returns if it never had one.

        Raises:
            IndexUnfit: it has indexes, but none is live. IndexGone: its pages were searchable before.
        """
        if others := await self.generations(site):
            if await self.now(site) is not None:
                return  # created meanwhile
            raise not_live(site, [info.name for info in others])
        with explained(f"looking for receipts of site {site}"):
            try:
                await self._es.indices.refresh(index=RECEIPTS)  # to count those of the last second as well
                answer = await self._es.count(
                    index=RECEIPTS,
                    query={"bool": {"filter": [{"term": {"site": site}}, {"terms": {"state": ["searchable"]}}]}},
                )
            except NotFoundError:
                return
        if answer["count"]:
            raise is_gone(site, answer["count"])

    async def create(
        self,
        site: str,
        generation: int,
        embedder: str,
        model: str,
        dims: int,
        chunker: str,
        *,
        source: str = "cms.changes",
        live: bool = False,
        shared: bool = False,
    ) -> None:
        """Create an index, or a generation in a shared one. Does nothing if it exists."""
        name = index_name(site, generation)
        base = mapping("001_site.json")
        making = {
            "format": FORMAT if is_sparse(model) else SHARED_FORMAT if shared else OWN_FORMAT,
            "embedder": embedder,
            "model": model,
            "dims": dims,
            "chunker": chunker,
            "analysis": ANALYSIS,
        }
        properties = base["mappings"]["properties"] | {
            # Set explicitly, because the default changes between versions.
            "embedding": {
                "type": "dense_vector",
                "dims": dims,
                "index": True,
                "similarity": "cosine",
                "index_options": {"type": "int8_hnsw"},
            }
        }
        if is_sparse(model):
            properties["sparse"] = {"type": "sparse_vector"}
        settings = base["settings"]["index"] | self._size
        meta = making | {"created": datetime.now(UTC).isoformat(timespec="seconds")}
        if shared:
            there = {info.name: info.concrete for info in await self.generations(site)}
            if name in there:
                return
            concrete = self._tenancy.index_for(site, generation, making, there.values())
            await self._create(
                concrete,
                settings={"index": settings | {"number_of_shards": 1}},
                mappings=base["mappings"] | {"properties": properties | PROPERTIES, "_meta": meta},
                aliases={},
            )
            await self._tenancy.admit(site, name, concrete, live=live)
            return
        aliases: dict[str, Any] = {name + WRITE_SUFFIX: {}} | ({alias(site): {}} if live else {})
        refresh = {"refresh_interval": REFRESH if live else "-1"}
        await self._create(
            name,
            settings={"index": settings | refresh},
            mappings=base["mappings"] | {"properties": properties, "_meta": meta | {"source": source}},
            aliases=aliases,
        )

    async def hold(self, info: IndexInfo, seconds: float) -> None:
        """Stop receipts for this index for so many seconds at most, since it is about to be replaced."""
        await self._hold(info, datetime.now(UTC) + timedelta(seconds=seconds))

    async def release(self, info: IndexInfo) -> None:
        """End a `hold`."""
        await self._hold(info, None)

    async def _hold(self, info: IndexInfo, until: datetime | None) -> None:
        if info.shared:
            await self._tenancy.hold(info, until)
        else:
            await self._update_meta(info, {"held_until": until and until.isoformat()})

    async def _update_meta(self, info: IndexInfo, values: Mapping[str, Any]) -> None:
        with explained(f"marking index {info.name}"):
            answer = await self._es.indices.get_mapping(index=info.name)
            meta = answer[info.name]["mappings"].get("_meta", {}) | values
            await self._es.indices.put_mapping(index=info.name, meta=meta)

    async def searchable(self, info: IndexInfo) -> None:
        """Prepare a built index for searches: refresh it now, and automatically from now on."""
        with explained(f"refreshing {info.name}"):
            await self._es.indices.put_settings(index=info.concrete, settings={"index": {"refresh_interval": REFRESH}})
            await self._es.indices.refresh(index=info.concrete)

    async def swap(self, site: str, new: IndexInfo) -> None:
        """Point the alias to `new` alone, atomically."""
        filtered = {"filter": only(new.name)}
        # A pattern must match at least one index.
        others = {f"{PREFIX}*" if info.shared else f"{alias(site)}-*" for info in await self.generations(site)}
        with explained(f"promoting {new.name}"):
            await self._es.indices.update_aliases(
                master_timeout=SWAP_TIMEOUT,  # a late swap is worse than none: pipelines/operate/rebuild/rebuild.py
                actions=[
                    *({"remove": {"index": each, "alias": alias(site), "must_exist": False}} for each in others),
                    {"add": {"index": new.concrete, "alias": alias(site)} | (filtered if new.shared else {})},
                ],
            )
        self._forget(site)

    async def discard(self, info: IndexInfo) -> None:
        """Delete an index that is not live.

        Raises:
            IndexUnfit: it is live.
        """
        live = await self.now(info.site)
        if live is not None and live.name == info.name:
            raise IndexUnfit(f"{info.name} is live; it is not deleted")
        if info.shared:
            await self._tenancy.put_out(info)
            return
        with explained(f"deleting {info.name}"):
            await self._es.indices.delete(index=info.name, ignore_unavailable=True)

    async def ensure_system(self, name: str) -> None:
        """Create one of the indexes in `SYSTEM`, if it does not exist."""
        # A write would create a missing index, without a mapping. A template forbids it.
        with explained("forbidding indexes without a mapping"):
            await self._es.indices.put_index_template(
                name=NO_AUTO_CREATE,
                index_patterns=["pagewire-*", f"{PREFIX}*", *SYSTEM],
                allow_auto_create=False,
                priority=500,
            )
        base = mapping(SYSTEM[name])
        await self._create(
            name,
            settings={"index": base["settings"]["index"] | self._size},
            mappings=base["mappings"],
            aliases={},
        )
        if added := ADDED_TO_SYSTEM.get(name):
            properties = base["mappings"]["properties"]
            with explained(f"adding to the mapping of {name}"):
                await self._es.indices.put_mapping(index=name, properties={each: properties[each] for each in added})

    async def _create(
        self, name: str, *, settings: dict[str, Any], mappings: dict[str, Any], aliases: dict[str, Any]
    ) -> None:
        with explained(f"creating index {name}"):
            try:
                await self._es.indices.create(index=name, settings=settings, mappings=mappings, aliases=aliases)
            except BadRequestError as err:
                if err.error != "resource_already_exists_exception":
                    raise
                # Another process creates it and waits until it is allocated; we must wait as well. The status does not
                # help: an index under creation counts as yellow.
                await self._es.options(ignore_status=408).cluster.health(
                    index=name, wait_for_active_shards=1, timeout=ALLOCATED
                )


def not_live(site: str, others: Sequence[str]) -> IndexUnfit:
    """The error for a site with indexes of which none is live."""
    return IndexUnfit(
        f"site {site} has {', '.join(others)}, but its alias {alias(site)} points nowhere; "
        f"`pagewire index rebuild {site} --from changes --promote` makes a live one"
    )


def is_gone(site: str, searchable: int) -> IndexGone:
    """The error for a site without an index that had so many searchable pages."""
    return IndexGone(
        f"the index of site {site} is gone, {searchable:,} pages were in it; the log still has them: "
        f"`pagewire index rebuild {site} --from embeddings --promote`"
    )


def _by_site(bodies: Mapping[str, Any]) -> defaultdict[str, _Found]:
    """The sites' indexes, by alias of the site."""
    by_site: defaultdict[str, _Found] = defaultdict(_Found)
    for concrete, body in sorted(bodies.items()):
        shared = is_shared(concrete)
        if not shared and GENERATION.search(concrete):
            by_site[_site_alias(concrete)].generations[concrete] = concrete
        elif not shared:  # a foreign index with a site's name
            by_site[concrete].generations[concrete] = concrete
            by_site[concrete].live.append(concrete)
        for name in body.get("aliases", {}):
            if name.endswith(WRITE_SUFFIX):
                continue
            if shared and (held := held_until(name)):
                generation, until = held
                by_site[_site_alias(generation)].held[generation] = until
            elif shared and GENERATION.search(name):
                by_site[_site_alias(name)].generations[name] = concrete
            else:
                by_site[name].live.append(concrete)
    return by_site


def _site_alias(generation: str) -> str:
    return generation[: -len("-000001")]


def _surveyed(site: str, found: _Found, bodies: Mapping[str, Any]) -> LiveIndex:
    others = tuple(name for name, concrete in sorted(found.generations.items()) if concrete not in found.live)
    try:
        return LiveIndex(_live(site, found, bodies), others)
    except IndexUnfit as err:
        return LiveIndex(err, others)


def _live(site: str, found: _Found, bodies: Mapping[str, Any]) -> IndexInfo | None:
    """The index behind the site's alias. Raises: IndexUnfit."""
    if not found.live:
        return None
    if len(found.live) > 1:
        raise IndexUnfit(f"alias {alias(site)} points to {len(found.live)} indexes: {', '.join(found.live)}")
    names = [name for name, concrete in found.generations.items() if concrete in found.live]
    if not names:
        raise IndexUnfit(f"alias {alias(site)} points to {found.live[0]}, where no generation of the site is")
    return _info(site, names[0], found, bodies)


def _info(site: str, name: str, found: _Found, bodies: Mapping[str, Any]) -> IndexInfo:
    concrete = found.generations[name]
    shared = concrete if concrete != name else None
    body = bodies[concrete]
    meta = body.get("mappings", {}).get("_meta", {})
    if meta.get("format", FORMAT) > FORMAT:
        raise IndexUnfit(
            f"index {name} was written by a newer version (format {meta['format']}, this one knows {FORMAT}); "
            "update this installation"
        )
    try:
        until = meta.get("held_until")
        return IndexInfo(
            name=name,
            site=site,
            embedder=meta["embedder"],
            model=meta["model"],
            dims=meta["dims"],
            chunker=meta["chunker"],
            held_until=datetime.fromisoformat(until) if until else found.held.get(name),
            # A shared index has the time of its first site.
            created_at=datetime.fromisoformat(created) if (created := meta.get("created")) and not shared else None,
            mapped=body["mappings"].get("properties", {}).keys() >= {*ADDED},
            analysis=meta.get("analysis", ""),
            shared=shared,
        )
    except KeyError as err:
        raise IndexUnfit(f"index {name} does not say what it holds (no {err} in _meta): not made by Pagewire") from err
