"""Pages put straight into a live index, through the pure stages: what the benchmarks ask is what visitors search.

pages ─chunked─▶ Embedding ─kept vectors─▶ parts ─index_part─▶ Elasticsearch
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from adapters.elastic.bundle import Elastic
from bench.vectors import KeptVectors
from pipelines.ingest.embed import Embedding
from pipelines.ingest.embedding_plan import plan
from pipelines.ingest.handlers import chunked
from pipelines.ingest.index import index_part
from pipelines.ingest.unit_plan import plan_units
from pipelines.runtime.embedder import Embedders
from schemas.page import PageChange, PageDocument
from wiring.settings import Settings


class OneModel:
    """The same model for every site."""

    def __init__(self, model: KeptVectors) -> None:
        self._model = model

    async def for_site(self, site: str) -> KeptVectors:
        return self._model

    async def for_new(self, site: str) -> KeptVectors:
        return self._model


async def publish(
    elastic: Elastic, site: str, pages: Sequence[PageDocument], model: KeptVectors, settings: Settings
) -> None:
    """Return when all of it is searchable. Raises: Retryable."""
    made = [chunked(_change(site, page), settings.chunker, 0, number) for number, page in enumerate(pages)]
    read = [each.text for page in made for each in plan(page, model.fingerprint)]
    read += [each.sense for page in made for own in plan_units(page) for each in own]
    await model.passages(read)  # all at once: one bar, one look
    embedding = Embedding(cast(Embedders, OneModel(model)), elastic.pages)
    for page in made:
        for part in await embedding.embed_with(model, page):
            await index_part(part, elastic.pages, lambda: datetime.now(UTC))


def _change(site: str, page: PageDocument) -> PageChange:
    return PageChange(
        op="upsert",
        site=site,
        lang=page.lang,
        page_id=page.id,
        revision=1,
        accepted_at=datetime.now(UTC),
        source="bench",
        page=page,
    )
