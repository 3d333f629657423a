"""The question log: a document per question, in one index for all sites.

Outcome, feedback, verdict and erasure each write their own fields of the document, so they may come in any order, and
twice. This is no data stream, since those do not allow updates.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from elasticsearch import AsyncElasticsearch

from adapters.elastic.client import explained
from adapters.elastic.expiry import check, expire, older
from adapters.elastic.indexes import OUTCOMES
from adapters.elastic.reading import batches, buckets_of, sources
from adapters.elastic.system_index import SystemIndex
from pipelines.query.log.frequent import AnsweredQuestion
from pipelines.query.log.ports import AskedHit, BadCursor, GroupableQuestion
from schemas.conversation import Feedback
from schemas.outcome import (
    Forgotten,
    LoggedQuestion,
    Outcome,
    OutcomeEvent,
    QuestionCounts,
    QuestionFilter,
    QuestionList,
    QuestionRow,
    Rated,
    Verdict,
    VerdictEvent,
    cited_pages,
)
from schemas.query import QuestionVector

NEWEST: list[dict[str, Any]] = [{"asked_at": {"order": "desc", "format": "epoch_millis"}}, {"request_id": "asc"}]
WORDS = ("question", "rephrased", "comment")
LABELS = "labels"  # within `outcome`: what raters said of the answer, in logs of before 0.3
# An update merges objects: what else is in `outcome` stays. Words can be read from a vector, and labels repeat them.
ERASED: dict[str, Any] = {
    "forgotten": True,
    "labelled_by": None,
    "outcome": {"vector": None, "asker": "", "answer": None, "calls": [], "doubted": [], "tool_runs": [], LABELS: None},
} | dict.fromkeys(WORDS)
LENGTHY = tuple(
    f"outcome.{name}" for name in ("vector", "answer", "calls", "doubted", "tool_runs", LABELS)
)  # fields that no list shows
# The fields for grouping questions
GROUPED = (
    *("request_id", "asked_at", "asked_in", "question", "rephrased", "became", "rating"),
    *(f"outcome.{name}" for name in ("grade", "left_out", "vector", "corrected")),
    *(f"outcome.hits.{name}" for name in ("page_id", "lang", "title", "url", "cosine", "cited")),
)
# The fields for frequent questions
ANSWERED = (
    *("question", "asked_in", "rating", "outcome.asker", "outcome.restricted", "outcome.stopped", "outcome.left_out"),
    *(f"outcome.hits.{name}" for name in ("page_id", "lang", "cited")),
)
GROUPED_BATCH = 500  # questions read at once: a few milliseconds of parsing
VERDICT = "verdict"
COUNTED = ("became", "rating")
BATCH = 1_000  # documents in a request
MOST_CORRECTIONS = 5_000  # of a site that are counted, also those that were taken back
CONFLICTS = 5  # retries: two workers may write one question while a partition moves


class ElasticOutcomes(SystemIndex):
    """A pipelines.query.log.ports.OutcomeStore and QuestionReader."""

    index = OUTCOMES

    async def put(self, event: OutcomeEvent) -> None:
        """Raises: ElasticsearchDown, ElasticsearchRefused."""
        await self._ensure()
        match event.event:
            case Outcome() as outcome:
                document = _of_outcome(event, outcome)
            case Rated(feedback=feedback):
                document = {
                    "rating": feedback.rating,
                    "comment": feedback.comment,
                    "rated_at": feedback.at.isoformat(),
                    "noted_at": feedback.at.isoformat(),
                }
            case Forgotten() as forgotten:
                await self._forget(event, forgotten)
                return
        if await self.forgotten(event.site, event.request_id):
            document |= ERASED | {"outcome": document.get("outcome", {}) | ERASED["outcome"]}
        await self._update(event.site, event.request_id, document)

    async def put_verdict(self, event: VerdictEvent) -> None:
        """Raises: ElasticsearchDown, ElasticsearchRefused."""
        # In `outcome`, which is not indexed. A later outcome has no such field, and keeps it.
        document = {"outcome": {VERDICT: event.verdict.dumped()}, "noted_at": event.verdict.judged_at.isoformat()}
        await self._update(event.site, event.request_id, document)

    async def forgotten(self, site: str, request_id: str) -> bool:
        """Raises: ElasticsearchDown."""
        return bool((await self._source(site, request_id)).get("forgotten"))

    async def _update(self, site: str, request_id: str, document: dict[str, Any]) -> None:
        update = partial(
            self._es.update,
            index=OUTCOMES,
            id=document_id(site, request_id),
            doc=_whose(site, request_id) | document,
            doc_as_upsert=True,
            retry_on_conflict=CONFLICTS,
        )
        await self._made("logging a question", update)

    async def _forget(self, event: OutcomeEvent, forgotten: Forgotten) -> None:
        """Erase a conversation's questions. Those without an outcome are marked as well, so that it is not kept."""
        noted = {"noted_at": forgotten.at.isoformat()}
        # A bulk request would not make an index again that was deleted.
        await self._made("erasing questions", partial(self._es.indices.refresh, index=OUTCOMES))
        await self._erase(event.site, forgotten.requests, noted)
        while True:
            doing = "looking for a conversation's questions"
            with explained(doing):
                await self._es.indices.refresh(index=OUTCOMES)
            own = [{"term": {"site": event.site}}, {"term": {"conversation": event.conversation}}]
            query = {"bool": {"filter": own, "must_not": [{"term": {"forgotten": True}}]}}
            hits = await self._hits(doing, query=query, size=BATCH, source_includes=["request_id"])
            await self._erase(event.site, (hit["_source"]["request_id"] for hit in hits), {})
            if len(hits) < BATCH:
                return

    async def _erase(self, site: str, requests: Iterable[str], more: dict[str, Any]) -> None:
        operations: list[dict[str, Any]] = []
        for request in requests:
            action = {"_id": document_id(site, request), "retry_on_conflict": CONFLICTS}
            document = _whose(site, request) | ERASED | more
            operations += [{"update": action}, {"doc": document, "doc_as_upsert": True}]
        if operations:
            with explained("erasing questions"):
                answer = await self._es.bulk(index=OUTCOMES, operations=operations)
            check([item["update"] for item in answer["items"]])

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Raises: ElasticsearchDown."""
        # Documents with feedback or an erasure, but without an outcome.
        stray = {"bool": {"filter": [older("noted_at", before)], "must_not": [{"exists": {"field": "asked_at"}}]}}
        query = {"bool": {"should": [older("asked_at", before), stray], "minimum_should_match": 1}}
        return await expire(self._es, OUTCOMES, query)

    async def find(self, site: str, wanted: QuestionFilter, limit: int, after: str | None = None) -> QuestionList:
        """The newest first. Raises: BadCursor. ElasticsearchDown."""
        answer = await self._answer(
            f"reading the questions of site {site}",
            query=_query(site, wanted),
            sort=NEWEST,
            size=limit + 1,  # one more, to know whether there is a next page
            search_after=_place(after) if after else None,
            track_total_hits=True,
            source_excludes=LENGTHY,
            aggregations={name: {"terms": {"field": name}} for name in COUNTED},
        )
        hits = answer["hits"]["hits"]
        listed = hits[:limit]
        counts = {each["key"]: each["doc_count"] for name in COUNTED for each in buckets_of(answer, name)}
        return QuestionList(
            counts=QuestionCounts(
                asked=answer["hits"]["total"]["value"],
                liked=counts.pop("up", 0),
                disliked=counts.pop("down", 0),
                **counts,
            ),
            questions=tuple(QuestionRow.of(logged(hit["_source"])) for hit in listed),
            next=_cursor(listed[-1]["sort"]) if len(hits) > limit and listed else None,
        )

    async def get(self, site: str, request_id: str) -> LoggedQuestion | None:
        """Raises: ElasticsearchDown."""
        source = await self._source(site, request_id)
        return logged(source) if "asked_at" in source else None

    async def asked(self, site: str, since: datetime, until: datetime, most: int) -> list[GroupableQuestion]:
        """Raises: ElasticsearchDown."""
        query = _query(site, QuestionFilter(since=since, until=until))
        query["bool"]["must_not"] = [{"term": {"became": "courtesy"}}]
        questions = newest(self._es, site, query, most, GROUPED_BATCH, source_includes=GROUPED)
        return [_asked(source) async for source in questions]

    async def answered(self, site: str, since: datetime, most: int) -> list[AnsweredQuestion]:
        """Raises: ElasticsearchDown."""
        query = _query(site, QuestionFilter(since=since, became="answered"))
        query["bool"]["filter"].append({"exists": {"field": "question"}})
        questions = newest(self._es, site, query, most, GROUPED_BATCH, source_includes=ANSWERED)
        return [_answered(source) async for source in questions]

    async def corrections_used(self, site: str) -> dict[str, int]:
        """Raises: ElasticsearchDown."""
        answer = await self._answer(
            f"counting the corrections of site {site} that were used",
            size=0,
            query={"term": {"site": site}},
            aggregations={"used": {"terms": {"field": "corrections", "size": MOST_CORRECTIONS}}},
        )
        return {bucket["key"]: bucket["doc_count"] for bucket in buckets_of(answer, "used")}

    async def _source(self, site: str, request_id: str) -> dict[str, Any]:
        found = await self._get("reading a logged question", document_id(site, request_id))
        return found["_source"] if found else {}


def newest(
    es: AsyncElasticsearch, site: str, query: Mapping[str, Any], most: int, batch: int, **more: Any
) -> AsyncGenerator[Any, None]:
    """Documents of a site's questions, the newest first, `batch` read at once. Raises: ElasticsearchDown."""
    return sources(
        batches(
            es,
            f"reading the questions of site {site}",
            batch,
            absent=None,  # there are no questions yet
            most=most,
            index=OUTCOMES,
            query=query,
            sort=NEWEST,
            track_total_hits=False,
            **more,
        )
    )


def document_id(site: str, request_id: str) -> str:
    """The id of a question's document."""
    return f"{site}:{request_id}"


def _whose(site: str, request_id: str) -> dict[str, Any]:
    return {"site": site, "request_id": request_id}


def _of_outcome(event: OutcomeEvent, outcome: Outcome) -> dict[str, Any]:
    """The outcome's fields, with its words in separate fields, which an erasure clears."""
    rest = {name: value for name, value in outcome.dumped().items() if name not in WORDS}
    return {
        "conversation": event.conversation,
        "asked_at": outcome.asked_at.isoformat(),
        "asked_in": outcome.asked_in,
        "lang": outcome.lang,
        "became": outcome.became,
        "pages": cited_pages(outcome),
        "corrections": outcome.corrections,
        "question": outcome.question,
        "rephrased": outcome.rephrased,
        "outcome": rest,
    }


def logged(source: dict[str, Any]) -> LoggedQuestion:
    """The question in a document, without its labels."""
    words = {name: source.get(name) for name in ("question", "rephrased")}
    feedback = None
    if rating := source.get("rating"):
        feedback = Feedback.stored({"rating": rating, "comment": source.get("comment"), "at": source["rated_at"]})
    outcome = dict(source["outcome"])
    verdict = outcome.pop(VERDICT, None)
    outcome.pop(LABELS, None)
    return LoggedQuestion(
        request_id=source["request_id"],
        site=source["site"],
        conversation=source["conversation"],
        outcome=Outcome.stored(outcome | words | {"vector": None}),
        feedback=feedback,
        verdict=Verdict.stored(verdict) if verdict else None,
        erased=bool(source.get("forgotten")),
    )


def _asked(source: dict[str, Any]) -> GroupableQuestion:
    outcome = source.get("outcome") or {}
    vector = outcome.get("vector")
    return GroupableQuestion(
        request_id=source["request_id"],
        asked_at=datetime.fromisoformat(source["asked_at"]),
        lang=source["asked_in"],
        question=source.get("question"),
        text=source.get("rephrased") or source.get("question"),
        became=source["became"],
        grade=outcome.get("grade"),
        left_out=outcome.get("left_out", 0),
        corrected=bool(outcome.get("corrected")),
        rating=source.get("rating"),
        hits=tuple(
            AskedHit(hit["page_id"], hit["lang"], hit["title"], hit["url"], hit.get("cosine"), hit["cited"])
            for hit in outcome.get("hits", ())
        ),
        restricted=outcome.get("restricted"),
        vector=QuestionVector.stored(vector) if vector else None,
    )


def _answered(source: dict[str, Any]) -> AnsweredQuestion:
    outcome = source.get("outcome") or {}
    return AnsweredQuestion(
        question=source["question"],
        lang=source["asked_in"],
        asker=outcome.get("asker", ""),
        pages=frozenset((hit["page_id"], hit["lang"]) for hit in outcome.get("hits", ()) if hit["cited"]),
        restricted=outcome.get("restricted"),
        doubtful=bool(source.get("rating") == "down" or outcome.get("stopped") or outcome.get("left_out")),
    )


def _query(site: str, wanted: QuestionFilter) -> dict[str, Any]:
    filters: list[dict[str, Any]] = [{"term": {"site": site}}, {"exists": {"field": "asked_at"}}]
    period = {"gte": wanted.since, "lt": wanted.until}
    if limits := {name: at.isoformat() for name, at in period.items() if at is not None}:
        filters.append({"range": {"asked_at": limits}})
    if wanted.lang is not None:
        spoken = [{"term": {name: wanted.lang}} for name in ("asked_in", "lang")]
        filters.append({"bool": {"should": spoken, "minimum_should_match": 1}})
    if wanted.became is not None:
        filters.append({"term": {"became": wanted.became}})
    if wanted.feedback == "any":
        filters.append({"exists": {"field": "rating"}})
    elif wanted.feedback is not None:
        filters.append({"term": {"rating": wanted.feedback}})
    if wanted.page is not None:
        filters.append({"term": {"pages": wanted.page}})
    if wanted.text:
        filters.append({"bool": {"should": [_says(wanted.text, name) for name in WORDS], "minimum_should_match": 1}})
    return {"bool": {"filter": filters}}


def _says(text: str, field: str) -> dict[str, Any]:
    """A query for all words of the text. The last word may be a prefix."""
    return {"match_bool_prefix": {field: {"query": text, "operator": "and"}}}


def _cursor(place: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def _place(cursor: str) -> list[Any]:
    try:
        at, request_id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return [int(at), str(request_id)]
    except (ValueError, TypeError, binascii.Error) as err:
        raise BadCursor("`after` must be the `next` of an earlier list") from err
