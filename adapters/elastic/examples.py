"""Operators' worked examples: one document each, in one index for all sites."""

from __future__ import annotations

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import explained
from adapters.elastic.indexes import EXAMPLES, ElasticIndexes
from schemas.example import WorkedExample

MAX_OF_SITE = 1_000


class ElasticExamples:
    """Reads and writes `pagewire.examples`: pipelines.query.examples.ExampleStore."""

    def __init__(self, es: AsyncElasticsearch, indexes: ElasticIndexes) -> None:
        self._es = es
        self._indexes = indexes

    async def of_site(self, site: str) -> list[WorkedExample]:
        """The oldest first, at most a thousand. Raises: ElasticsearchDown."""
        with explained(f"reading the examples of site {site}"):
            try:
                answer = await self._es.search(
                    index=EXAMPLES, query={"term": {"site": site}}, sort=["added_at"], size=MAX_OF_SITE
                )
            except NotFoundError:  # there are no examples yet
                return []
        return [WorkedExample.stored(hit["_source"]["example"]) for hit in answer["hits"]["hits"]]

    async def put(self, example: WorkedExample) -> None:
        """Add an example, or replace the one with its id. Readers see it at once. Raises: ElasticsearchDown."""
        await self._indexes.ensure_system(EXAMPLES)
        # Without defaults, so that older versions, which only know examples of rewritings, can still read these.
        kept = example.model_dump(mode="json", exclude_defaults=True)
        document = {"site": example.site, "added_at": example.added_at, "example": kept}
        with explained(f"keeping an example of site {example.site}"):
            await self._es.index(index=EXAMPLES, id=_id(example.site, example.id), document=document, refresh=True)

    async def remove(self, site: str, id: str) -> bool:
        """False: there is none. Raises: ElasticsearchDown."""
        with explained(f"removing an example of site {site}"):
            try:
                await self._es.delete(index=EXAMPLES, id=_id(site, id), refresh=True)
            except NotFoundError:
                return False
        return True


def _id(site: str, id: str) -> str:
    return f"{site}:{id}"
