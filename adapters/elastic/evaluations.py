"""Published runs of evaluations: one document each, in one index for all sites."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.expiry import expire, older
from adapters.elastic.indexes import EVALUATIONS, ElasticIndexes
from pipelines.evaluate.publication import MAX_RUNS
from schemas.evaluation import ListedRun, PublishedRun


class ElasticRuns:
    """Reads and writes `pagewire.evaluations`: pipelines.evaluate.publication.RunStore."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes

    async def put(self, run: PublishedRun) -> None:
        """Raises: ElasticsearchDown, ElasticsearchRefused."""
        await self._indexes.ensure_system(EVALUATIONS)
        kept = run.dumped()
        results = kept.pop("results")
        document = {"site": run.site, "dataset": run.dataset, "begun": run.begun, "run": kept, "results": results}
        with explained(f"keeping a run of site {run.site}"):
            await self._es.index(index=EVALUATIONS, id=_id(run.site, run.id), document=document, refresh=True)

    async def of_site(self, site: str, dataset: str | None = None) -> list[ListedRun]:
        """Raises: ElasticsearchDown."""
        filters: list[dict[str, Any]] = [{"term": {"site": site}}]
        if dataset is not None:
            filters.append({"term": {"dataset": dataset}})
        with explained(f"reading the runs of site {site}"):
            try:
                answer = await self._es.search(
                    index=EVALUATIONS,
                    query={"bool": {"filter": filters}},
                    sort=[{"begun": "desc"}],
                    size=MAX_RUNS,
                    source_includes=["run"],
                )
            except NotFoundError:  # there are no runs yet
                return []
        return [ListedRun.stored(hit["_source"]["run"]) for hit in answer["hits"]["hits"]]

    async def get(self, site: str, id: str) -> PublishedRun | None:
        """Raises: ElasticsearchDown."""
        with explained(f"reading a run of site {site}"):
            try:
                found = await self._es.get(index=EVALUATIONS, id=_id(site, id))
            except NotFoundError:
                return None
        return PublishedRun.stored(found["_source"]["run"] | {"results": found["_source"]["results"]})

    async def remove(self, site: str, id: str) -> bool:
        """Raises: ElasticsearchDown."""
        with explained(f"removing a run of site {site}"):
            try:
                await self._es.delete(index=EVALUATIONS, id=_id(site, id), refresh=True)
            except NotFoundError:
                return False
        return True

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Raises: ElasticsearchDown."""
        return await expire(self._es, EVALUATIONS, older("begun", before))


def _id(site: str, id: str) -> str:
    return f"{site}:{id}"
