"""Where published runs are kept; the adapter and its in-memory sibling both fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pipelines.runtime.errors import Permanent
from schemas.evaluation import ListedRun, PublishedRun

MAX_RUNS = 500  # of a site, that are listed


class UnknownRun(Permanent):
    """The site has no published run of this id: it was taken away, or is too old."""

    code = "unknown-run"


class RunStore(Protocol):
    """Keeps published runs (adapters.elastic.evaluations). All raise Retryable."""

    async def put(self, run: PublishedRun) -> None:
        """Keep it, in place of the one of its id; readers see it at once."""
        ...

    async def of_site(self, site: str, dataset: str | None = None) -> Sequence[ListedRun]:
        """The newest first, at most `MAX_RUNS`; of one dataset, by its name, or all."""
        ...

    async def get(self, site: str, id: str) -> PublishedRun | None: ...

    async def remove(self, site: str, id: str) -> bool:
        """False: there is none."""
        ...

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Delete those that began earlier than their site's time. Returns: how many, by site."""
        ...
