"""The indexes for all sites: their base class, and the stores of keys, states, worked examples, published runs of
evaluations and the audit log, with one document each.

The first write creates an index; until then it is empty.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeVar

import structlog
from elasticsearch import AsyncElasticsearch, ConflictError, NotFoundError
from pydantic import ValidationError

from adapters.elastic.client import explained
from adapters.elastic.expiry import expire, older
from adapters.elastic.indexes import AUDIT_LOG, EVALUATIONS, EXAMPLES, KEYS, STATES, ElasticIndexes
from adapters.elastic.reading import Hit, answer_of, batches
from pipelines.evaluate.publication import MAX_RUNS
from pipelines.operate.access_keys import MAX_KEYS
from pipelines.operate.states import Kind, State
from schemas.access_key import KeptKey
from schemas.audit_log import AuditEntry, AuditFilter, AuditLogPage
from schemas.base import Wire, problems
from schemas.evaluation import ListedRun, PublishedRun
from schemas.example import WorkedExample
from schemas.head import Token

T = TypeVar("T")


class SystemIndex:
    """One per process. All methods raise ElasticsearchDown; `doing` begins its message."""

    index: ClassVar[str]

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes
        self._there = False

    async def _ensure(self) -> None:
        if not self._there:
            await self._indexes.ensure_system(self.index)
            self._there = True

    async def _get(self, doing: str, id: str) -> Hit | None:
        """The document with its version, read in real time; None: there is none."""
        with explained(doing):
            try:
                return (await self._es.get(index=self.index, id=id)).body  # type: ignore[no-any-return]
            except NotFoundError:
                return None

    async def _answer(self, doing: str, **search: Any) -> dict[str, Any]:
        return await answer_of(self._es, doing, index=self.index, **search)

    async def _hits(self, doing: str, **search: Any) -> list[Hit]:
        hits: list[Hit] = (await self._answer(doing, **search))["hits"]["hits"]
        return hits

    async def _create(self, doing: str, id: str, document: dict[str, Any]) -> bool:
        """Readers see the document at once. False: the id exists already."""
        return await self._write(doing, id, document, op_type="create") is not None

    async def _replace(
        self, doing: str, id: str, document: dict[str, Any], before: Token | None, *, refresh: bool = True
    ) -> Token | None:
        """Write the document if the stored one still has this version (None: if there is none). Returns its version;
        None: the stored one has another version.
        """
        place = {"op_type": "create"} if before is None else {"if_seq_no": before[0], "if_primary_term": before[1]}
        return await self._write(doing, id, document, refresh=refresh, **place)

    async def _write(
        self, doing: str, id: str, document: dict[str, Any], *, refresh: bool = True, **place: Any
    ) -> Token | None:
        async def write() -> Token | None:
            try:
                written = await self._es.index(index=self.index, id=id, document=document, refresh=refresh, **place)
            except ConflictError:
                return None
            return version_of(written.body)

        return await self._made(doing, write)

    async def _made(self, doing: str, write: Callable[[], Awaitable[T]]) -> T:
        """Write. An index that was deleted since the last write is made again."""
        known = self._there
        await self._ensure()
        with explained(doing):
            try:
                return await write()
            except NotFoundError:
                if not known:
                    raise
                self._there = False
                await self._ensure()
                return await write()

    async def _delete(self, doing: str, id: str) -> bool:
        """Readers see it at once. False: there is none."""
        with explained(doing):
            try:
                await self._es.delete(index=self.index, id=id, refresh=True)
            except NotFoundError:
                return False
        return True


def version_of(hit: Mapping[str, Any]) -> Token:
    """The version of a document, in the answer of its write, or read with it."""
    return hit["_seq_no"], hit["_primary_term"]


def _of_site(site: str, id: str) -> str:
    """The id of a site's document in an index for all sites."""
    return f"{site}:{id}"


log = structlog.get_logger(__name__)


class ElasticKeys(SystemIndex):
    """A pipelines.operate.access_keys.KeyStore."""

    index = KEYS

    async def all(self) -> list[KeptKey]:
        """The oldest first. Raises: ElasticsearchDown."""
        hits = await self._hits("reading the keys", sort=["created_at"], size=MAX_KEYS)
        read = [_key_or_none(hit["_id"], hit["_source"]["key"]) for hit in hits]
        return [key for key in read if key is not None]

    async def add(self, key: KeptKey) -> bool:
        """Readers see the key at once. False: the name exists already. Raises: ElasticsearchDown."""
        document = {"created_at": key.created_at, "key": key.dumped()}
        return await self._create("keeping a key", key.name, document)

    async def remove(self, name: str) -> bool:
        """False: there is none. Raises: ElasticsearchDown."""
        return await self._delete("revoking a key", name)


def _key_or_none(name: str, kept: Any) -> KeptKey | None:
    """None: this version cannot read the key. It gives no access here, and the other keys still work."""
    try:
        return KeptKey.stored(kept)
    except ValidationError as err:
        log.warning("a key cannot be read, and is not good here", name=name, problems=problems(err))
        return None


AT_ONCE = 1_000  # states in an answer


class ElasticStates(SystemIndex):
    """A pipelines.operate.states.States."""

    index = STATES

    async def all(self, kind: Kind) -> list[State]:
        """Raises: ElasticsearchDown."""
        every = batches(
            self._es,
            f"reading what is kept of {kind}",
            AT_ONCE,
            absent=None,  # there are no states yet
            index=STATES,
            query={"term": {"kind": kind}},
            sort=["name"],
            seq_no_primary_term=True,
        )
        return [_state(hit) async for hits in every for hit in hits]

    async def get(self, kind: Kind, name: str) -> State | None:
        """Raises: ElasticsearchDown."""
        found = await self._get(f"reading {kind} {name}", _state_id(kind, name))
        return _state(found) if found else None

    async def put(self, kind: Kind, name: str, value: Wire) -> None:
        """Raises: ElasticsearchDown."""
        await self._write(f"keeping {kind} {name}", _state_id(kind, name), _document(kind, name, value))

    async def replace(self, kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        """Raises: ElasticsearchDown."""
        document, version = _document(kind, name, value), before.version if before else None
        written = await self._replace(f"keeping {kind} {name}", _state_id(kind, name), document, version)
        return State(name, document["state"], written) if written else None


def _state_id(kind: Kind, name: str) -> str:
    return f"{kind}/{name}"


def _document(kind: Kind, name: str, value: Wire) -> dict[str, Any]:
    return {"kind": kind, "name": name, "state": value.dumped()}


def _state(found: dict[str, Any]) -> State:
    return State(found["_source"]["name"], found["_source"]["state"], version_of(found))


MAX_OF_SITE = 1_000


class ElasticExamples(SystemIndex):
    """A pipelines.query.examples.ExampleStore."""

    index = EXAMPLES

    async def of_site(self, site: str) -> list[WorkedExample]:
        """The oldest first, at most a thousand. Raises: ElasticsearchDown."""
        doing, query = f"reading the examples of site {site}", {"term": {"site": site}}
        hits = await self._hits(doing, query=query, sort=["added_at"], size=MAX_OF_SITE)
        return [WorkedExample.stored(hit["_source"]["example"]) for hit in hits]

    async def put(self, example: WorkedExample) -> None:
        """Add an example, or replace the one with its id. Readers see it at once. Raises: ElasticsearchDown."""
        # Without defaults, so that older versions, which only know examples of rewritings, can still read these.
        kept = example.model_dump(mode="json", exclude_defaults=True)
        document = {"site": example.site, "added_at": example.added_at, "example": kept}
        await self._write(f"keeping an example of site {example.site}", _of_site(example.site, example.id), document)

    async def remove(self, site: str, id: str) -> bool:
        """False: there is none. Raises: ElasticsearchDown."""
        return await self._delete(f"removing an example of site {site}", _of_site(site, id))


class ElasticRuns(SystemIndex):
    """A pipelines.evaluate.publication.RunStore."""

    index = EVALUATIONS

    async def put(self, run: PublishedRun) -> None:
        """Raises: ElasticsearchDown, ElasticsearchRefused."""
        kept = run.dumped()
        results = kept.pop("results")
        document = {"site": run.site, "dataset": run.dataset, "begun": run.begun, "run": kept, "results": results}
        await self._write(f"keeping a run of site {run.site}", _of_site(run.site, run.id), document)

    async def of_site(self, site: str, dataset: str | None = None) -> list[ListedRun]:
        """Raises: ElasticsearchDown."""
        filters: list[dict[str, Any]] = [{"term": {"site": site}}]
        if dataset is not None:
            filters.append({"term": {"dataset": dataset}})
        hits = await self._hits(
            f"reading the runs of site {site}",
            query={"bool": {"filter": filters}},
            sort=[{"begun": "desc"}],
            size=MAX_RUNS,
            source_includes=["run"],
        )
        return [ListedRun.stored(hit["_source"]["run"]) for hit in hits]

    async def get(self, site: str, id: str) -> PublishedRun | None:
        """Raises: ElasticsearchDown."""
        if (found := await self._get(f"reading a run of site {site}", _of_site(site, id))) is None:
            return None
        return PublishedRun.stored(found["_source"]["run"] | {"results": found["_source"]["results"]})

    async def remove(self, site: str, id: str) -> bool:
        """Raises: ElasticsearchDown."""
        return await self._delete(f"removing a run of site {site}", _of_site(site, id))

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Raises: ElasticsearchDown."""
        return await expire(self._es, EVALUATIONS, older("begun", before))


class ElasticAuditLog(SystemIndex):
    """A pipelines.operate.audit_log.AuditStore."""

    index = AUDIT_LOG

    async def put(self, entry: AuditEntry) -> None:
        """Readers see the entry within a second. Raises: ElasticsearchDown."""
        searched = entry.model_dump(mode="json", include={"id", "at", "who", "action", "site"})
        document = searched | {"entry": entry.dumped()}
        await self._write("writing the audit log", entry.id, document, refresh=False, op_type="create")

    async def find(self, wanted: AuditFilter, limit: int, after: str | None = None) -> AuditLogPage:
        """The newest first. Raises: ElasticsearchDown."""
        hits = await self._hits(
            "reading the audit log",
            query=_entries_query(wanted),
            sort=[{"id": "desc"}],
            size=limit + 1,  # one more, to know whether there is a next page
            search_after=[after] if after else None,
        )
        entries = [AuditEntry.stored(hit["_source"]["entry"]) for hit in hits]
        more = len(entries) > limit
        return AuditLogPage(entries=tuple(entries[:limit]), next=entries[limit - 1].id if more else None)

    async def expire(self, before: datetime) -> int:
        """Delete older entries. Returns their number. Raises: ElasticsearchDown."""
        return (await expire(self._es, AUDIT_LOG, {"range": {"at": {"lt": before.isoformat()}}})).total()


def _entries_query(wanted: AuditFilter) -> dict[str, Any]:
    filters: list[dict[str, Any]] = [
        {"term": {name: value}} for name in ("who", "action", "site") if (value := getattr(wanted, name)) is not None
    ]
    period = {"gte": wanted.since, "lt": wanted.until}
    if limits := {name: at.isoformat() for name, at in period.items() if at is not None}:
        filters.append({"range": {"at": limits}})
    return {"bool": {"filter": filters}}
