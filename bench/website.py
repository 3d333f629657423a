"""Pages put straight into a live index, through the pure stages: what the benchmarks ask is what visitors search.

pages ─chunked─▶ plan ─kept vectors─▶ parts ─index_part─▶ Elasticsearch
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from adapters.elastic.bundle import Elastic
from bench.vectors import KeptVectors
from pipelines.ingest.embedding_plan import parts, plan
from pipelines.ingest.handlers import chunked
from pipelines.ingest.index import index_part
from schemas.ingest import EmbeddedChunk
from schemas.page import PageChange, PageDocument
from wiring.settings import Settings


class OneModel:
    """The same model for every site."""

    def __init__(self, model: KeptVectors) -> None:
        self._model = model

    async def for_site(self, site: str) -> KeptVectors:
        return self._model


async def publish(
    elastic: Elastic, site: str, pages: Sequence[PageDocument], model: KeptVectors, settings: Settings
) -> None:
    """Return when all of it is searchable. Raises: Retryable."""
    made = [chunked(_change(site, page), settings.chunker, 0, number) for number, page in enumerate(pages)]
    planned = [plan(page, model.fingerprint) for page in made]
    await model.passages([each.text for chunks in planned for each in chunks])  # all at once: one bar, one look
    for page, chunks in zip(made, planned, strict=True):
        vectors = await model.passages([each.text for each in chunks])
        embedded = [
            EmbeddedChunk(**each.chunk.model_dump(), embed_hash=each.embed_hash, vector=vector)
            for each, vector in zip(chunks, vectors, strict=True)
        ]
        for part in parts(
            page, embedded, embedder=model.spec, model=model.fingerprint, dims=model.dims, embedded=len(embedded)
        ):
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
