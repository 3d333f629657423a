"""Indexes of a site: `pagewire-{site}-{generation}`; the alias `pagewire-{site}` names the live one.

    pagewire-town ───────────────┐ live: what visitors search
    pagewire-town-000001         │            pagewire-town-000001.write
    pagewire-town-000002 ◀───────┘            pagewire-town-000002.write ◀── all writes to generation 2

Writes name the generation they were made for and go through its own alias: they can neither land in another index
when a rebuild is promoted, nor bring back an index that was deleted.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import Any

from cachetools import TTLCache
from elasticsearch import AsyncElasticsearch, BadRequestError, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.sharing import Shared
from pipelines.runtime.indexes import WRITE_SUFFIX, IndexGone, IndexInfo, IndexUnfit, alias, index_name
from text.words import ANALYSIS

MAPPINGS = Path(__file__).resolve().parents[2] / "infra" / "elasticsearch"
RECEIPTS = "pagewire.receipts"  # a dot, which no site id has
REBUILDS = "pagewire.rebuilds"
CONVERSATIONS = "pagewire.conversations"
EXAMPLES = "pagewire.examples"
PARTS = "pagewire.parts"
OUTCOMES = "pagewire.outcomes"
KEYS = "pagewire.keys"
AUDIT_LOG = "pagewire.audit-log"
TEXTS = "pagewire.texts"
EVALUATIONS = "pagewire.evaluations"
ADDED_TO_OUTCOMES = ("labelled_by",)  # fields that came after the index
PLACES = "pagewire.places"
STATES = "pagewire.states"
INFO_TTL = 2.0  # seconds until a reader notices by itself that another index was promoted
FORMAT = 2  # of what is in an index; counts up when older software must not touch it
NO_AUTO_CREATE = "pagewire-no-auto-create"  # the index template that says so
SWAP_TIMEOUT = "5s"
ALLOCATED = "10s"  # until an index that somebody else is making can be asked
# Of all indexes at once: not their mappings, which are long.
SURVEY = ["*.aliases", "*.mappings._meta", "*.mappings.properties.units.type"]
REFRESH = "1s"  # of an index that is searched; one that is being built refreshes when asked


def units_mapping() -> dict[str, Any]:
    """What an index made before there were units lacks; it may be added at any time."""
    properties: dict[str, Any] = mapping("001_site.json")["mappings"]["properties"]
    return {"units": properties["units"]}


@dataclass(frozen=True)
class LiveIndex:
    """What a look at all sites found of one."""

    info: IndexInfo | IndexUnfit | None  # what is wrong, where that is so; None: no index is live
    others: tuple[str, ...]  # its indexes that are not live


@cache
def mapping(file: str) -> dict[str, Any]:
    """A numbered mapping file of infra/elasticsearch."""
    loaded: dict[str, Any] = json.loads((MAPPINGS / file).read_text(encoding="utf-8"))
    return loaded


class Indexes:
    """Creates indexes and knows which one is live. One per process."""

    def __init__(self, es: AsyncElasticsearch, *, shards: int = 1, replicas: int = 0) -> None:
        self._es = es
        self._size = {"number_of_shards": shards, "number_of_replicas": replicas}
        self._known: TTLCache[str, IndexInfo] = TTLCache(inf, INFO_TTL)
        self._looks: dict[str, Shared[IndexInfo | None]] = {}

    def target(self, site: str) -> str:
        """What a search of the live index names."""
        return alias(site)

    async def live(self, site: str) -> IndexInfo | None:
        """The index behind the site's alias; None when there is none. At most `INFO_TTL` old.

        Raises:
            IndexUnfit: the alias is not what it must be. ElasticsearchDown.
        """
        return self._known.get(site) or await self.now(site)

    async def now(self, site: str) -> IndexInfo | None:
        """As `live`, by a look that begins after this call. Callers that come together share one."""
        try:
            info = await self._looks.setdefault(site, Shared(partial(self._read, site))).result()
        except IndexUnfit:
            self._known.pop(site, None)
            raise
        if info is None:  # that there is none is not remembered: the first save of a site makes one
            self._known.pop(site, None)
        else:
            self._known[site] = info
        return info

    async def _read(self, site: str) -> IndexInfo | None:
        with explained(f"looking up the index of site {site}"):
            try:
                answer = await self._es.indices.get_mapping(index=alias(site))
            except NotFoundError:
                return None
        return _only(site, answer.body)

    async def survey(self, sites: Iterable[str]) -> dict[str, LiveIndex]:
        """The indexes of each of these sites, by one request for all. Raises: ElasticsearchDown."""
        with explained("looking up the indexes of all sites"):
            answer = await self._es.indices.get(
                index=alias("*"), features=["aliases", "mappings"], filter_path=SURVEY, allow_no_indices=True
            )
        behind: dict[str, dict[str, Any]] = defaultdict(dict)
        without: dict[str, list[str]] = defaultdict(list)
        for name, body in sorted(answer.body.items()):
            named = [known for known in body.get("aliases", {}) if known != name + WRITE_SUFFIX]
            for known in named:
                behind[known][name] = body
            if not named:
                without[name[: -len("-000001")]].append(name)
        return {site: _live(site, behind[alias(site)], without[alias(site)]) for site in sites}

    async def generations(self, site: str) -> list[IndexInfo]:
        """All indexes of a site, the oldest first. Raises: IndexUnfit, ElasticsearchDown."""
        with explained(f"listing the indexes of site {site}"):
            answer = await self._es.indices.get_mapping(index=f"{alias(site)}-*", allow_no_indices=True)
        ours = re.compile(re.escape(alias(site)) + r"-\d{6}")  # `town` is not `town-hall`
        return [_info(site, name, body) for name, body in sorted(answer.body.items()) if ours.fullmatch(name)]

    async def ensure(self, site: str, *, embedder: str, model: str, dims: int, chunker: str) -> IndexInfo:
        """The live index, created with this model when the site never had one. Safe to race.

        Raises:
            IndexGone: the site had pages; a new, empty index would hide that they are gone.
        """
        if info := await self.live(site):
            return info
        await self.explain_absence(site)
        await self.create(site, 1, embedder, model, dims, chunker, live=True)
        info = await self.now(site)
        if info is None:
            raise IndexUnfit(f"index {index_name(site, 1)} was created and has gone again")
        return info

    async def explain_absence(self, site: str) -> None:
        """Say nothing when a site without a live index never had one.

        Raises:
            IndexUnfit: it has indexes, but none is live. IndexGone: its pages were searchable once.
        """
        if others := await self.generations(site):
            if await self.now(site) is not None:
                return  # created since the look
            raise not_live(site, [info.name for info in others])
        with explained(f"looking for receipts of site {site}"):
            try:
                await self._es.indices.refresh(index=RECEIPTS)  # those of the last second count as well
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
    ) -> None:
        """Create one index; nothing happens when it is there."""
        name = index_name(site, generation)
        base = mapping("001_site.json")
        properties = base["mappings"]["properties"] | {
            # Stated because the default changes between versions.
            "embedding": {
                "type": "dense_vector",
                "dims": dims,
                "index": True,
                "similarity": "cosine",
                "index_options": {"type": "int8_hnsw"},
            }
        }
        meta = {
            "format": FORMAT,
            "embedder": embedder,
            "model": model,
            "dims": dims,
            "chunker": chunker,
            "analysis": ANALYSIS,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "source": source,
        }
        refresh = {"refresh_interval": REFRESH if live else "-1"}
        aliases: dict[str, Any] = {name + WRITE_SUFFIX: {}} | ({alias(site): {}} if live else {})
        await self._create(
            name,
            settings={"index": base["settings"]["index"] | self._size | refresh},
            mappings=base["mappings"] | {"properties": properties, "_meta": meta},
            aliases=aliases,
        )

    async def hold(self, info: IndexInfo, seconds: float) -> None:
        """Keep the index stage from giving receipts for this index, for so long at most: it is about to be replaced."""
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        await self._update_meta(info, {"held_until": until.isoformat()})

    async def release(self, info: IndexInfo) -> None:
        """End a `hold`."""
        await self._update_meta(info, {"held_until": None})

    async def _update_meta(self, info: IndexInfo, values: Mapping[str, Any]) -> None:
        with explained(f"marking index {info.name}"):
            answer = await self._es.indices.get_mapping(index=info.name)
            meta = answer[info.name]["mappings"].get("_meta", {}) | values
            await self._es.indices.put_mapping(index=info.name, meta=meta)

    async def searchable(self, info: IndexInfo) -> None:
        """Let an index that was built be searched: refreshed now, and by itself from now on."""
        with explained(f"refreshing {info.name}"):
            await self._es.indices.put_settings(index=info.name, settings={"index": {"refresh_interval": REFRESH}})
            await self._es.indices.refresh(index=info.name)

    async def swap(self, site: str, new: IndexInfo) -> None:
        """Point the alias at `new` alone, in one step."""
        with explained(f"promoting {new.name}"):
            await self._es.indices.update_aliases(
                master_timeout=SWAP_TIMEOUT,  # late is worse than not at all: see pipelines/operate/rebuild/rebuild.py
                actions=[
                    {"remove": {"index": f"{alias(site)}-*", "alias": alias(site), "must_exist": False}},
                    {"add": {"index": new.name, "alias": alias(site)}},
                ],
            )
        self._known.pop(site, None)

    async def discard(self, info: IndexInfo) -> None:
        """Delete an index that is not live.

        Raises:
            IndexUnfit: it is live.
        """
        live = await self.now(info.site)
        if live is not None and live.name == info.name:
            raise IndexUnfit(f"{info.name} is live; it is not deleted")
        with explained(f"deleting {info.name}"):
            await self._es.indices.delete(index=info.name, ignore_unavailable=True)

    async def ensure_receipts(self) -> None:
        """The one index of all sites' receipts."""
        await self._ensure("002_receipts.json", RECEIPTS)

    async def ensure_rebuilds(self) -> None:
        """The one index of all sites' rebuilds."""
        await self._ensure("003_rebuilds.json", REBUILDS)

    async def ensure_conversations(self) -> None:
        """The one index of all sites' conversations."""
        await self._ensure("004_conversations.json", CONVERSATIONS)

    async def ensure_examples(self) -> None:
        """The one index of all sites' worked examples."""
        await self._ensure("005_examples.json", EXAMPLES)

    async def ensure_parts(self) -> None:
        """The one index of all sites' parts that wait for others."""
        await self._ensure("006_parts.json", PARTS)

    async def ensure_outcomes(self) -> None:
        """The one index of what became of all sites' questions."""
        await self._ensure("007_outcomes.json", OUTCOMES)
        # What an index made before there were labels lacks; it may be added at any time.
        properties = mapping("007_outcomes.json")["mappings"]["properties"]
        with explained(f"adding to the mapping of {OUTCOMES}"):
            await self._es.indices.put_mapping(
                index=OUTCOMES, properties={name: properties[name] for name in ADDED_TO_OUTCOMES}
            )

    async def ensure_keys(self) -> None:
        """The one index of the keys that were made while the system runs."""
        await self._ensure("008_keys.json", KEYS)

    async def ensure_audit_log(self) -> None:
        """The one index of all acts."""
        await self._ensure("009_audit_log.json", AUDIT_LOG)

    async def ensure_texts(self) -> None:
        """The one index of all versions of sites' texts."""
        await self._ensure("010_texts.json", TEXTS)

    async def ensure_evaluations(self) -> None:
        """The one index of all sites' published runs."""
        await self._ensure("011_evaluations.json", EVALUATIONS)

    async def ensure_places(self) -> None:
        """The one index of where the sites' records stand in the topics."""
        await self._ensure("012_places.json", PLACES)

    async def ensure_states(self) -> None:
        """The one index of what all processes must know of each other."""
        await self._ensure("013_states.json", STATES)

    async def _ensure(self, file: str, name: str) -> None:
        # A bulk delete with an external version would create the index it names: none of ours is made like that.
        with explained("forbidding indexes without a mapping"):
            await self._es.indices.put_index_template(
                name=NO_AUTO_CREATE,
                index_patterns=["pagewire-*", RECEIPTS, PARTS, PLACES],
                allow_auto_create=False,
                priority=500,
            )
        base = mapping(file)
        await self._create(
            name,
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
                # Whoever makes it at this moment waits until it can be asked; we must not be faster. Not by its status:
                # one that is being made counts as yellow.
                await self._es.options(ignore_status=408).cluster.health(
                    index=name, wait_for_active_shards=1, timeout=ALLOCATED
                )


def not_live(site: str, others: Sequence[str]) -> IndexUnfit:
    """The site has these indexes, and none is live."""
    return IndexUnfit(
        f"site {site} has {', '.join(others)}, but its alias {alias(site)} points nowhere; "
        f"`pagewire rebuild {site} --from changes --promote` makes a live one"
    )


def is_gone(site: str, searchable: int) -> IndexGone:
    """The site has no index, and so many of its pages could be found once."""
    return IndexGone(
        f"the index of site {site} is gone, {searchable:,} pages were in it; the log still has them: "
        f"`pagewire rebuild {site} --from embeddings --promote`"
    )


def _live(site: str, behind: Mapping[str, Any], others: Sequence[str]) -> LiveIndex:
    try:
        return LiveIndex(_only(site, behind) if behind else None, tuple(others))
    except IndexUnfit as err:
        return LiveIndex(err, tuple(others))


def _only(site: str, behind: Mapping[str, Any]) -> IndexInfo:
    """Of what stands behind the site's alias. Raises: IndexUnfit."""
    if len(behind) > 1:
        raise IndexUnfit(f"alias {alias(site)} points to {len(behind)} indexes: {', '.join(sorted(behind))}")
    [(name, body)] = behind.items()
    return _info(site, name, body)


def _info(site: str, name: str, body: Mapping[str, Any]) -> IndexInfo:
    meta = body["mappings"].get("_meta", {})
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
            held_until=datetime.fromisoformat(until) if until else None,
            created_at=datetime.fromisoformat(created) if (created := meta.get("created")) else None,
            units="units" in body["mappings"].get("properties", {}),
            analysis=meta.get("analysis", ""),
        )
    except KeyError as err:
        raise IndexUnfit(f"index {name} does not say what it holds (no {err} in _meta): not made by Pagewire") from err
