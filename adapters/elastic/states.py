"""States: one document each, in one index for all kinds."""

from __future__ import annotations

from typing import Any

from adapters.elastic.indexes import STATES
from adapters.elastic.reading import batches
from adapters.elastic.system_index import SystemIndex, version_of
from pipelines.operate.states import Kind, State
from schemas.base import Wire

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
        found = await self._get(f"reading {kind} {name}", _id(kind, name))
        return _state(found) if found else None

    async def put(self, kind: Kind, name: str, value: Wire) -> None:
        """Raises: ElasticsearchDown."""
        await self._write(f"keeping {kind} {name}", _id(kind, name), _document(kind, name, value))

    async def replace(self, kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        """Raises: ElasticsearchDown."""
        document, version = _document(kind, name, value), before.version if before else None
        written = await self._replace(f"keeping {kind} {name}", _id(kind, name), document, version)
        return State(name, document["state"], written) if written else None


def _id(kind: Kind, name: str) -> str:
    return f"{kind}/{name}"


def _document(kind: Kind, name: str, value: Wire) -> dict[str, Any]:
    return {"kind": kind, "name": name, "state": value.dumped()}


def _state(found: dict[str, Any]) -> State:
    return State(found["_source"]["name"], found["_source"]["state"], version_of(found))
