"""Published runs of evaluations: one document each, in one index for all sites."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adapters.elastic.expiry import expire, older
from adapters.elastic.indexes import EVALUATIONS
from adapters.elastic.system_index import SystemIndex
from pipelines.evaluate.publication import MAX_RUNS
from schemas.evaluation import ListedRun, PublishedRun


class ElasticRuns(SystemIndex):
    """A pipelines.evaluate.publication.RunStore."""

    index = EVALUATIONS

    async def put(self, run: PublishedRun) -> None:
        """Raises: ElasticsearchDown, ElasticsearchRefused."""
        kept = run.dumped()
        results = kept.pop("results")
        document = {"site": run.site, "dataset": run.dataset, "begun": run.begun, "run": kept, "results": results}
        await self._write(f"keeping a run of site {run.site}", _id(run.site, run.id), document)

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
        if (found := await self._get(f"reading a run of site {site}", _id(site, id))) is None:
            return None
        return PublishedRun.stored(found["_source"]["run"] | {"results": found["_source"]["results"]})

    async def remove(self, site: str, id: str) -> bool:
        """Raises: ElasticsearchDown."""
        return await self._delete(f"removing a run of site {site}", _id(site, id))

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Raises: ElasticsearchDown."""
        return await expire(self._es, EVALUATIONS, older("begun", before))


def _id(site: str, id: str) -> str:
    return f"{site}:{id}"
