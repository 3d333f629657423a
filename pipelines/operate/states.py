"""States: small values that all processes share while the system runs, each with a kind and a name.

chat            a site           whether its chat is switched off
connector-run   site/connector   its last run, and the outcome
last-use        a key            time of its last use
audit-run       a site           its last audit, with progress and owner
evaluation-run  a site           its last evaluation, likewise
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from schemas.base import Wire

Kind = Literal["chat", "connector-run", "last-use", "audit-run", "evaluation-run"]


@dataclass(frozen=True)
class State:
    """A stored value and its version."""

    name: str
    value: Mapping[str, Any]
    version: tuple[int, int]


class States(Protocol):
    """Stores states (adapters.elastic.system_index). All methods raise Retryable."""

    async def all(self, kind: Kind) -> Sequence[State]:
        """All states of a kind, at most a second old."""
        ...

    async def get(self, kind: Kind, name: str) -> State | None:
        """The current state."""
        ...

    async def put(self, kind: Kind, name: str, value: Wire) -> None:
        """Replace the state. `all` shows it at once."""
        ...

    async def replace(self, kind: Kind, name: str, value: Wire, before: State | None) -> State | None:
        """Replace the version that was read (None: none). Returns None if the stored version is another one."""
        ...
