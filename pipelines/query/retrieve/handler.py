"""The retrieve stage: decode, retrieve, send.

query.rephrased ─▶ retrieve ─▶ query.retrieved"""

from __future__ import annotations

from typing import Any

import structlog

from pipelines.query.giving_up import in_time
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import NoTrialIndex, NoTrialReranker
from pipelines.query.retrieve.corrected import Corrector
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.ports import Reranker, SearchIndex
from pipelines.query.search.search import Searcher
from pipelines.query.settings import QuerySettings
from pipelines.runtime.indexes import IndexUnfit
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Handler, Sender
from schemas.query import Rephrased
from schemas.topics import RETRIEVED

logger = structlog.get_logger(__name__)


def retrieve_handler(
    settings: QuerySettings,
    searcher: Searcher,
    chunks: SearchIndex,
    reranker: Reranker | None = None,
    *,
    writes: bool = False,
    site_prompts: SitePrompts | None = None,
    corrector: Corrector | None = None,
) -> Handler:
    """A handler that sends each question on with its sources.

    Args:
        site_prompts: has the live glossaries.
        corrector: finds editors' corrections; default: none.
    """

    async def handle(record: Record, sender: Sender) -> None:
        asked = Rephrased.decode(record.value)
        in_time(asked.request)
        trial, tuned = asked.request.trial, asked.request.under
        writing = writes and tuned.strategy != "quote"
        reader = reranker if tuned.rerank is not False else None
        if trial is not None and trial.rerank and reader is None:
            raise NoTrialReranker("no reranker is configured here")
        site = asked.request.site
        glossary = site_prompts.of(site).searched_by(settings.site(site)) if site_prompts is not None else None
        how: dict[str, Any] = {"writes": writing, "glossary": glossary, "corrector": corrector}
        if trial is None or trial.index is None:
            found = await retrieve(asked, searcher, chunks, settings, reader, **how)
        else:
            other = await searcher.on(site, trial.index)
            try:
                found = await retrieve(asked, other, chunks, settings, reader, **how)
            except IndexUnfit as err:  # a fault of this index does not concern the site's live index
                raise NoTrialIndex(str(err)) from err
            found = found.model_copy(update={"index": trial.index})
        await sender.send(RETRIEVED, asked.request.conversation_id, found)
        took = {name: round(ms) for name, ms in found.timings_ms.items()}
        logger.info("retrieved", grade=found.grade, sources=len(found.sources), ms=took)

    return handle
