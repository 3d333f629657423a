"""Operators' worked examples: one document each, in one index for all sites."""

from __future__ import annotations

from adapters.elastic.indexes import EXAMPLES
from adapters.elastic.system_index import SystemIndex
from schemas.example import WorkedExample

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
        await self._write(f"keeping an example of site {example.site}", _id(example.site, example.id), document)

    async def remove(self, site: str, id: str) -> bool:
        """False: there is none. Raises: ElasticsearchDown."""
        return await self._delete(f"removing an example of site {site}", _id(site, id))


def _id(site: str, id: str) -> str:
    return f"{site}:{id}"
