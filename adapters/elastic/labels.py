"""People's labels, in their questions' documents, so that they expire or are erased with the question.

They are in `outcome`, which is not indexed. The field `labelled_by` has the names of the labellers, and is indexed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from elasticsearch import AsyncElasticsearch, ConflictError, NotFoundError

from adapters.elastic.client import ElasticsearchDown, explained
from adapters.elastic.indexes import OUTCOMES, Indexes
from adapters.elastic.outcomes import LABELS, VERDICT, document_id, logged, newest
from pipelines.evaluate.labelling.ports import MAX_EARLIER, Candidate, JudgedAnswer, Labelled, UnknownQuestion
from schemas.label import AnswerLabel
from schemas.outcome import LoggedQuestion, Verdict

BATCH = 500  # questions read at once
FEW_FIELDS = 2_000  # ... with only some of their fields
TRIES = 5  # to write documents that others write at the same time
LABELABLE = ("answered", "page", "refused")
OF_CANDIDATES = ("request_id", "asked_in", "became", "rating", "labelled_by", "outcome.answer")


class ElasticLabels:
    """A part of `pagewire.outcomes`: pipelines.evaluate.labelling.ports.LabelStore. One per process."""

    def __init__(self, es: AsyncElasticsearch, indexes: Indexes) -> None:
        self._es = es
        self._indexes = indexes
        self._there = False

    async def candidates(self, site: str, since: datetime, most: int) -> list[Candidate]:
        """Raises: ElasticsearchDown."""
        filters: list[dict[str, Any]] = [
            {"range": {"asked_at": {"gte": since.isoformat()}}},
            {"terms": {"became": LABELABLE}},
            {"exists": {"field": "question"}},
        ]
        found = await self._read(site, filters, most, batch=FEW_FIELDS, source_includes=OF_CANDIDATES)
        return [
            Candidate(
                request_id=source["request_id"],
                lang=source["asked_in"],
                became=source["became"],
                disliked=source.get("rating") == "down",
                raters=tuple(source.get("labelled_by") or ()),
            )
            for source in found
            if (source.get("outcome") or {}).get("answer")
        ]

    async def of_site(self, site: str, most: int) -> list[Labelled]:
        """Raises: ElasticsearchDown."""
        labelled: dict[str, Any] = {"exists": {"field": "labelled_by"}}
        found = await self._read(site, [labelled], most, source_excludes=["outcome.vector"])
        return [each for each in map(_labelled, found) if each.labels]

    async def judged(self, site: str, since: datetime, most: int) -> list[JudgedAnswer]:
        """Raises: ElasticsearchDown."""
        asked: dict[str, Any] = {"range": {"asked_at": {"gte": since.isoformat()}}}
        wanted = ("request_id", "asked_in", f"outcome.{VERDICT}")
        found = await self._read(site, [asked], most, batch=FEW_FIELDS, source_includes=wanted)
        return [
            JudgedAnswer.of(source["request_id"], source["asked_in"], Verdict.stored(verdict))
            for source in found
            if (verdict := (source.get("outcome") or {}).get(VERDICT))
        ]

    async def get(self, site: str, request_id: str) -> Labelled | None:
        """Raises: ElasticsearchDown."""
        with explained("reading a question's labels"):
            try:
                found = await self._es.get(index=OUTCOMES, id=document_id(site, request_id))
            except NotFoundError:
                return None
        source = found["_source"]
        return _labelled(source) if "asked_at" in source else None

    async def earlier(self, question: LoggedQuestion) -> list[str]:
        """Raises: ElasticsearchDown."""
        before = {"range": {"asked_at": {"lt": question.outcome.asked_at.isoformat()}}}
        of_it: dict[str, Any] = {"term": {"conversation": question.conversation}}
        found = await self._read(
            question.site, [of_it, before, {"exists": {"field": "question"}}], MAX_EARLIER, source_includes=["question"]
        )
        return [source["question"] for source in reversed(found)]

    async def change(self, site: str, request_id: str, rule: Callable[[Labelled], Labelled]) -> Labelled:
        """Raises: UnknownQuestion, ElasticsearchDown."""
        if not self._there:
            await self._indexes.ensure_system(OUTCOMES)
            self._there = True
        unknown = UnknownQuestion(f"the log of site {site} has no question {request_id}")
        for _ in range(TRIES):
            with explained("labelling a question"):
                try:
                    found = await self._es.get(index=OUTCOMES, id=document_id(site, request_id))
                except NotFoundError:
                    raise unknown from None
            if "asked_at" not in found["_source"] or found["_source"].get("forgotten"):
                raise unknown
            made = rule(_labelled(found["_source"]))
            with explained("labelling a question"):
                try:
                    # An erasure or expiry meanwhile is a conflict as well, so that labels never survive it.
                    await self._es.update(
                        index=OUTCOMES,
                        id=document_id(site, request_id),
                        doc=_document(made),
                        if_seq_no=found["_seq_no"],
                        if_primary_term=found["_primary_term"],
                        refresh=True,  # the next read of the queue must see it
                    )
                except ConflictError:
                    continue
                except NotFoundError:
                    raise unknown from None
            return made
        raise ElasticsearchDown(f"the question {request_id} is written by others all the time; try again")

    async def _read(
        self, site: str, filters: list[dict[str, Any]], most: int, *, batch: int = BATCH, **more: Any
    ) -> list[dict[str, Any]]:
        """Questions that are not erased, the newest first."""
        query = {
            "bool": {
                "filter": [{"term": {"site": site}}, {"exists": {"field": "asked_at"}}, *filters],
                "must_not": [{"term": {"forgotten": True}}],
            }
        }
        return [source async for source in newest(self._es, site, query, most, batch, **more)]


def _labelled(source: dict[str, Any]) -> Labelled:
    kept = (source.get("outcome") or {}).get(LABELS) or {}
    if source.get("forgotten"):  # older versions did not erase labels
        kept = {}
    settled = kept.get("settled")
    return Labelled(
        question=logged(source),
        labels=tuple(AnswerLabel.stored(label) for label in kept.get("given") or ()),
        settled=AnswerLabel.stored(settled) if settled else None,
    )


def _document(made: Labelled) -> dict[str, Any]:
    kept = {
        "given": [label.dumped() for label in made.labels],
        "settled": made.settled.dumped() if made.settled else None,
    }
    return {"outcome": {LABELS: kept}, "labelled_by": [label.rater for label in made.labels]}
