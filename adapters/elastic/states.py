"""States: one document each, in one index for all kinds."""

from __future__ import annotations

from typing import Any

from elasticsearch import AsyncElasticsearch, ConflictError, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.indexes import STATES, ElasticIndexes
from adapters.elastic.reading import batches
from pipelines.operate.states import Kind, State
from schemas.base import Wire

AT_ONCE = 1_000  # states in an answer


class ElasticStates:
    """Reads and writes `pagewire.states`: a pipelines.operate.states.States. One per process."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes
        self._there = False

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
        with explained(f"reading {kind} {name}"):
            try:
                return _state((await self._es.get(index=STATES, id=_id(kind, name))).body)
            except NotFoundError:
                return None

    async def put(self, kind: Kind, name: str, value: Wire) -> None:
        """Raises: ElasticsearchDown."""
        await self._write(kind, name, value)

    async def replace(self, kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        """Raises: ElasticsearchDown."""
        place: dict[str, Any] = {"op_type": "create"}
        if before is not None:
            place = dict(zip(("if_seq_no", "if_primary_term"), before.version, strict=True))
        return await self._write(kind, name, value, **place)

    async def _write(self, kind: Kind, name: str, value: Wire, **place: Any) -> State | None:
        if not self._there:
            await self._indexes.ensure_system(STATES)
            self._there = True
        dumped = value.dumped()
        document = {"kind": kind, "name": name, "state": dumped}
        with explained(f"keeping {kind} {name}"):
            try:
                kept = await self._es.index(index=STATES, id=_id(kind, name), document=document, refresh=True, **place)
            except ConflictError:
                return None
        return State(name, dumped, (kept["_seq_no"], kept["_primary_term"]))


def _id(kind: Kind, name: str) -> str:
    return f"{kind}/{name}"


def _state(found: dict[str, Any]) -> State:
    kept = found["_source"]
    return State(kept["name"], kept["state"], (found["_seq_no"], found["_primary_term"]))
