"""States: small things that all processes must know of each other while the system runs, each of a kind and a name.

chat            a site           whether its chat was switched off
connector-run   site/connector   its last run, and what came of it
last-use        a key            when it was used last
audit-run       a site           its last audit, how far it is, who is at work on it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from schemas.base import Wire

Kind = Literal["chat", "connector-run", "last-use", "audit-run"]


@dataclass(frozen=True)
class State:
    """What is kept under a name, and which version of it was read."""

    name: str
    value: Mapping[str, Any]
    version: tuple[int, int]


class States(Protocol):
    """Where they are kept (adapters.elastic.states). All raise Retryable."""

    async def all(self, kind: Kind) -> Sequence[State]:
        """As they were a second ago at the latest."""
        ...

    async def get(self, kind: Kind, name: str) -> State | None:
        """As it is now."""
        ...

    async def put(self, kind: Kind, name: str, value: Wire) -> None:
        """In the place of what was there. Readers of all see it at once."""
        ...

    async def replace(self, kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        """In the place of what was read before (None: nothing was there). None: it is another by now, and stays."""
        ...
