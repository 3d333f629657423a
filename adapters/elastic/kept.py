"""Backup and restore of data that only Elasticsearch has: pipelines.operate.backup.ports.BackupIndex.

Each index has a rule of what wins when a document that is to be put back is there already: the newer conversation, the
newer example; of a question both, for its outcome, its rating and its erasure come one by one; the version
of a text that is there, which nothing overwrites.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from elasticsearch import AsyncElasticsearch, NotFoundError

from adapters.elastic.client import DocumentRefused, ElasticsearchDown, explained, refusal
from adapters.elastic.indexes import CONVERSATIONS, EXAMPLES, OUTCOMES, TEXTS, ElasticIndexes
from adapters.elastic.outcomes import ERASED
from adapters.elastic.reading import batches, point_in_time
from pipelines.operate.backup.manifest import BackupDocument, PartName, PutBack

BATCH = 100  # documents read at once: a conversation of a hundred questions is some 200 kB
REQUEST_TIMEOUT = 60.0  # seconds
TRIES = 5  # to write documents that others write at the same time

Source = Mapping[str, Any]
# The document to write, from the existing one and the backup's; None: the existing one stays.
Rule = Callable[[Source, Source], Source | None]


def newer_conversation(there: Source, kept: Source) -> Source | None:
    """The one with the later last question. If equal, the existing one, which may have newer feedback or titles."""
    return kept if _at(kept["updated"]) > _at(there["updated"]) else None


def newer_example(there: Source, kept: Source) -> Source | None:
    return kept if _at(kept["added_at"]) > _at(there["added_at"]) else None


def version_there(there: Source, kept: Source) -> Source | None:
    return None


def whole_question(there: Source, kept: Source) -> Source | None:
    """What is there, with what it lacks; its newest rating; and no words of it when either was erased."""
    outcome = _filled(there.get("outcome") or {}, kept.get("outcome") or {})
    merged = _filled(there, kept) | ({"outcome": outcome} if outcome else {})
    newest = kept if _at(kept.get("rated_at")) > _at(there.get("rated_at")) else there
    merged |= {name: newest[name] for name in ("rating", "comment", "rated_at") if name in newest}
    if there.get("forgotten") or kept.get("forgotten"):
        merged |= ERASED | {"outcome": {**outcome, **ERASED["outcome"]}}
    return merged if merged != there else None


def _filled(there: Source, kept: Source) -> dict[str, Any]:
    return {**there, **kept, **{name: value for name, value in there.items() if value is not None}}


def _at(time: str | None) -> datetime:
    return datetime.fromisoformat(time) if time else datetime.min.replace(tzinfo=UTC)


class KeptIndex:
    """One index."""

    def __init__(
        self,
        es: AsyncElasticsearch,
        indexes: ElasticIndexes,
        index: str,
        rule: Rule,
        barred: Callable[[Sequence[BackupDocument]], Awaitable[set[str]]] | None = None,
    ) -> None:
        """`barred` returns the ids of documents that must not be restored."""
        self._es = es.options(request_timeout=REQUEST_TIMEOUT)
        self._indexes = indexes
        self._index = index
        self._rule = rule
        self._barred = barred
        self._there = False

    async def count(self, sites: Collection[str] | None) -> int:
        """Raises: ElasticsearchDown."""
        with explained(f"counting documents of {self._index}"):
            try:
                return int((await self._es.count(index=self._index, query=_of(sites)))["count"])
            except NotFoundError:  # nothing was ever put into it
                return 0

    async def read(self, sites: Collection[str] | None) -> AsyncGenerator[Sequence[BackupDocument], None]:
        """Raises: ElasticsearchDown."""
        with explained(f"looking for {self._index}"):
            try:
                await self._es.indices.refresh(index=self._index)
            except NotFoundError:  # nothing was ever put into it
                return
        gone = ElasticsearchDown(f"{self._index} was deleted while it was read, or the reader paused for too long")
        async with point_in_time(self._es, self._index, absent=gone) as point:
            found = batches(
                self._es,
                f"reading {self._index}",
                BATCH,
                absent=gone,
                point=point,
                query=_of(sites),
                track_total_hits=False,
                allow_partial_search_results=False,
            )
            async with aclosing(found):
                async for hits in found:
                    yield [BackupDocument(hit["_id"], hit["_source"]) for hit in hits]

    async def put_back(self, documents: Sequence[BackupDocument]) -> PutBack:
        """Raises: DocumentRefused, ElasticsearchDown."""
        if not self._there:
            await self._indexes.ensure_system(self._index)
            self._there = True
        barred = await self._barred(documents) if self._barred else set()
        left = [one for one in documents if one.id not in barred]
        wanted, restored = len(left), 0
        for _ in range(TRIES):
            operations, written = await self._plan(left)
            left = await self._write(operations, written)
            restored += len(written) - len(left)
            if not left:
                return PutBack(restored, wanted - restored, len(barred))
        raise ElasticsearchDown(f"{len(left)} documents of {self._index} are written by others all the time; try again")

    async def _plan(self, documents: Sequence[BackupDocument]) -> tuple[list[dict[str, Any]], list[BackupDocument]]:
        """Operations of a bulk, and the documents that they write."""
        operations: list[dict[str, Any]] = []
        written: list[BackupDocument] = []
        for one, found in zip(documents, await _found(self._es, self._index, documents), strict=True):
            if not found.get("found"):
                operations += [{"create": {"_id": one.id}}, one.source]  # type: ignore[list-item]
            elif (source := self._rule(found["_source"], one.source)) is not None:
                place = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
                operations += [{"index": {"_id": one.id, **place}}, source]  # type: ignore[list-item]
            else:
                continue
            written.append(one)
        return operations, written

    async def _write(self, operations: list[dict[str, Any]], written: Sequence[BackupDocument]) -> list[BackupDocument]:
        """Returns the documents that others have written meanwhile. Raises: DocumentRefused, ElasticsearchDown."""
        if not operations:
            return []
        with explained(f"restoring documents of {self._index}"):
            answer = await self._es.bulk(index=self._index, operations=operations)
        again = []
        for one, item in zip(written, answer["items"], strict=True):
            done = next(iter(item.values()))
            if done["status"] == 409:
                again.append(one)
            elif done["status"] >= 400:
                error = done.get("error") or {}
                said = f"{error.get('type')}: {error.get('reason')}"
                kind = refusal(done["status"], said) or DocumentRefused
                raise kind(f"Elasticsearch takes no document {one.id} of {self._index} ({done['status']}): {said}")
        return again


async def _found(
    es: AsyncElasticsearch, index: str, documents: Sequence[BackupDocument], **more: Any
) -> Sequence[Mapping[str, Any]]:
    if not documents:
        return []
    with explained(f"reading {len(documents)} documents of {index}"):
        answer = await es.mget(index=index, ids=[one.id for one in documents], **more)
    found: list[Mapping[str, Any]] = answer["docs"]
    return found


def _of(sites: Collection[str] | None) -> dict[str, Any]:
    return {"match_all": {}} if sites is None else {"terms": {"site": sorted(sites)}}


def kept_indexes(es: AsyncElasticsearch, indexes: ElasticIndexes) -> dict[PartName, KeptIndex]:
    """Indexes whose data cannot be rebuilt, by their part of a backup."""

    async def deleted(conversations: Sequence[BackupDocument]) -> set[str]:
        """Conversations that visitors have deleted, whose questions are erased in the question log."""
        await indexes.ensure_system(OUTCOMES)
        asked = {f"{one.site}:{request}": one.id for one in conversations for request in one.source["requests"]}
        questions = [BackupDocument(id, {}) for id in asked]
        found = await _found(es, OUTCOMES, questions, source_includes=["forgotten"])
        return {asked[one["_id"]] for one in found if one.get("found") and one["_source"].get("forgotten")}

    return {
        "conversations": KeptIndex(es, indexes, CONVERSATIONS, newer_conversation, deleted),
        "questions": KeptIndex(es, indexes, OUTCOMES, whole_question),
        "examples": KeptIndex(es, indexes, EXAMPLES, newer_example),
        "texts": KeptIndex(es, indexes, TEXTS, version_there),
    }
