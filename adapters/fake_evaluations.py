"""In-memory sibling of adapters.elastic.evaluations; it passes the same contract tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from pipelines.evaluate.publication import MAX_RUNS
from schemas.evaluation import ListedRun, PublishedRun


class FakeRuns:
    """Keeps published runs in a dict."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], PublishedRun] = {}

    async def put(self, run: PublishedRun) -> None:
        self.kept[run.site, run.id] = run

    async def of_site(self, site: str, dataset: str | None = None) -> list[ListedRun]:
        found = [run for (of, _), run in self.kept.items() if of == site and dataset in (None, run.dataset)]
        listed = [ListedRun.model_validate(run.model_dump(exclude={"results"})) for run in found]
        return sorted(listed, key=lambda run: run.begun, reverse=True)[:MAX_RUNS]

    async def get(self, site: str, id: str) -> PublishedRun | None:
        return self.kept.get((site, id))

    async def remove(self, site: str, id: str) -> bool:
        return self.kept.pop((site, id), None) is not None

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        old = [(site, id) for (site, id), run in self.kept.items() if site in before and run.begun < before[site]]
        for place in old:
            del self.kept[place]
        return Counter(site for site, _ in old)
