"""The visitors' search on any index of a site with its model, for quality gates and trials."""

from __future__ import annotations

from collections.abc import Sequence

from elasticsearch import AsyncElasticsearch

from adapters.elastic.bundle import Elastic
from adapters.elastic.search import Pinned, SiteSearch
from adapters.embedders.registry import Models
from pipelines.evaluate.quality_gate import DEPTH, Ask, RankedPage
from pipelines.query.ports import NoTrialIndex
from pipelines.query.rephrase.rewrite import search_mode
from pipelines.query.search.ports import SearchEmbedder, SearchEmbedders, SearchIndex
from pipelines.query.search.search import Searcher
from pipelines.runtime.errors import Permanent, SettingsError
from pipelines.runtime.indexes import IndexInfo, IndexUnfit
from wiring.settings import Settings

HITS = 5 * DEPTH  # chunks, enough for ten pages


class _OneModel:
    def __init__(self, model: SearchEmbedder) -> None:
        self._model = model

    async def for_site(self, site: str) -> SearchEmbedder:
        return self._model


async def pinned(info: IndexInfo, es: AsyncElasticsearch, models: Models, settings: Settings) -> Ask:
    """Raises: SettingsError: the model of the index is not the one that is there. Permanent, Retryable: no model."""
    searcher = Searcher(SiteSearch(es, Pinned(info)), await _model_of(info, models), settings)

    async def ask(question: str) -> Sequence[RankedPage]:
        keyword = search_mode(question, settings.flow_of(info.site).short_question_words) == "keyword"
        hits = await searcher.hits(info.site, question, kind="keyword" if keyword else "hybrid", size=HITS)
        return [RankedPage(hit.page_id, hit.lang) for hit in hits]

    return ask


class SiteIndexes:
    """All indexes of a site, to try one that is not live (its `of` is a pipelines.query.search.ports.OtherIndexes)."""

    def __init__(self, elastic: Elastic, models: Models) -> None:
        self._elastic = elastic
        self._models = models

    async def of(self, site: str, name: str) -> tuple[SearchIndex, SearchEmbedders]:
        """Raises: NoTrialIndex, Retryable."""
        try:
            known = {info.name: info for info in await self._elastic.indexes.generations(site)}
            if name not in known:
                raise NoTrialIndex(f"site {site} has no index {name} any more")
            model = await _model_of(known[name], self._models)
        except (IndexUnfit, Permanent) as err:
            raise err if isinstance(err, NoTrialIndex) else NoTrialIndex(str(err)) from err
        return SiteSearch(self._elastic.es, Pinned(known[name])), model


async def _model_of(info: IndexInfo, models: Models) -> _OneModel:
    """Raises: SettingsError: another one than the index is of. Permanent, Retryable: none."""
    model = await models.by_name(info.embedder)
    if model.fingerprint != info.model:
        raise SettingsError(f"index {info.name} is of {info.model}, but {info.embedder} is {model.fingerprint} here")
    return _OneModel(model)
