"""The original retriever: the best hits of each field by vector, each with its neighbours, without fusion.

    question ─▶ kNN in five fields, floors ─▶ hits by cosine ─▶ two chunks before and two after ─▶ one source for each
    question of one or two words ─▶ keywords ─▶ the whole text of the fields with a hit

Units are not ranked, and no page is preferred for its language: the model reads the nearest chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.query.extractive.assessment import same_revision
from pipelines.query.extractive.confidence import FINE, NOTHING, GateInput, figures
from pipelines.query.flow import Flow
from pipelines.query.search.ports import Hit, SearchIndex, Thresholds
from pipelines.query.search.search import Retrieval, Searcher
from pipelines.query.search.widen import fit, passages
from schemas.query import Gate, Grade, Rephrased, Source


@dataclass(frozen=True)
class Original:
    """The result of the original retriever."""

    found: Retrieval
    sources: tuple[Source, ...]
    grade: Grade
    gate: Gate | None


async def original(asked: Rephrased, searcher: Searcher, chunks: SearchIndex, flow: Flow) -> Original:
    """Raises: UnknownSite, Retryable."""
    request = asked.request
    if asked.mode == "keyword":
        found = await searcher.find(
            request.site, asked.question, kind="keyword", size=flow.hits, groups=request.groups, flow=flow
        )
        fields = dict.fromkeys((hit.index, hit.page_key, hit.field) for hit in found.hits)
        whole = [chunk for place in fields for chunk in await chunks.field(*place)]
        sources = passages(found.hits, same_revision(whole, found.hits), flow.context_chars, whole_fields=True)
    else:
        found = await searcher.nearest(request.site, asked.question, flow, groups=request.groups)
        sources = fit(_widened(found.hits, found.near, flow.neighbours), flow.context_chars)
    grade, gate = FINE if sources else NOTHING, None
    if flow.gate and found.model is not None:
        read = GateInput(asked.question, found.candidates.dense, found.hits, [], 0)
        gate = figures(read, found.model.profile.gate.thresholds or Thresholds())
        grade = gate.by_figures
    return Original(found, sources, grade, gate)


def _widened(hits: Sequence[Hit], near: Sequence[Hit], around: int) -> list[Source]:
    """A source for each hit, in the order of the hits: the hit with the chunks before and after it.

    A source of an attachment stays within one place (such as a PDF's page), since its link opens that place.
    """
    there = {chunk.place: chunk for chunk in (*near, *hits)}
    sources = []
    for n, hit in enumerate(hits, 1):
        window = [there.get((hit.page_key, hit.field, ord_)) for ord_ in range(hit.ord - around, hit.ord + around + 1)]
        text = "".join(c.text for c in window if c and (c.revision, c.shown) == (hit.revision, hit.shown)).strip()
        sources.append(hit.source(n, text or hit.text))
    return sources
