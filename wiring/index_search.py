"""The search of visitors, on one index and with its model, whether it is live or not."""

from __future__ import annotations

from collections.abc import Sequence

from elasticsearch import AsyncElasticsearch

from adapters.elastic.search import Pinned, SiteSearch
from adapters.embedders.registry import Models
from pipelines.evaluate.quality_gate import DEPTH, Ask, FoundPage
from pipelines.query.rephrase.rewrite import search_mode
from pipelines.query.retrieve.ports import SearchEmbedder
from pipelines.query.retrieve.search import Searcher
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.indexes import IndexInfo
from wiring.settings import Settings

HITS = 5 * DEPTH  # chunks, so that there are ten pages among them


class _OneModel:
    def __init__(self, model: SearchEmbedder) -> None:
        self._model = model

    async def for_site(self, site: str) -> SearchEmbedder:
        return self._model


async def pinned(info: IndexInfo, es: AsyncElasticsearch, models: Models, settings: Settings) -> Ask:
    """Raises: SettingsError: the model of the index is not the one that is there. Permanent, Retryable: no model."""
    model = await models.by_name(info.embedder)
    if model.fingerprint != info.model:
        raise SettingsError(f"index {info.name} is of {info.model}, but {info.embedder} is {model.fingerprint} here")
    searcher = Searcher(SiteSearch(es, Pinned(info)), _OneModel(model), settings)

    async def ask(question: str) -> Sequence[FoundPage]:
        keyword = search_mode(question, settings.short_question_words) == "keyword"
        hits = await searcher.hits(info.site, question, kind="keyword" if keyword else "hybrid", size=HITS)
        return [FoundPage(hit.page_id, hit.lang) for hit in hits]

    return ask
