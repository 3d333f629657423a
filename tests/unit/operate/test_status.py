"""What `status` says is wrong: parked sites, and a service that refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from adapters.elastic.client import ElasticsearchDenied
from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.operate.status import StatusIndex, StatusReader
from pipelines.runtime.bus import Bus
from pipelines.runtime.record import Record
from pipelines.runtime.stage import StageGroup
from schemas.http import SiteStatus, SystemStatus
from schemas.letters import OpenLetterCount
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, PAUSES, Topic
from schemas.worker import CUTS_KEY, PauseNote
from tests import skipping_time


@dataclass(frozen=True)
class NoLag:
    lag: int = 0
    members: int = 1


@dataclass
class Kafka:
    """A broker with all topics, in which nothing waits; six changes were deleted."""

    at: int = 7  # of the chunk stage in cms.changes
    notes: Sequence[tuple[str, PauseNote]] = ()

    @asynccontextmanager
    async def view(self) -> AsyncIterator[Kafka]:
        yield self

    @asynccontextmanager
    async def reader(self, topic: Topic) -> AsyncIterator[Kafka]:
        yield self

    def name(self, topic: Topic) -> str:
        return f"t.{topic.name}"

    async def of_key(self, key: str, since_ms: int) -> list[Record]:
        wanted = [note for of, note in self.notes if of == key and note.at.timestamp() * 1000 >= since_ms]
        return [Record(PAUSES.name, 0, at, key.encode(), note.encode()) for at, note in enumerate(wanted)]

    async def spans(self, topics: Iterable[Topic]) -> dict[Topic, dict[int, tuple[int, int]]]:
        return {topic: {0: (7 if topic is CHANGES else 0, 9)} for topic in topics}

    async def short_of_copies(self, topics: Iterable[Topic]) -> list[str]:
        return []

    async def short_of_partitions(self, topics: Iterable[Topic]) -> list[str]:
        return []

    async def partitions(self, topics: Iterable[Topic]) -> dict[Topic, set[int]]:
        return {topic: {0} for topic in topics}

    async def committed(self, group: StageGroup) -> dict[tuple[Topic, int], int]:
        return {(CHANGES, 0): self.at, (CHUNKS, 0): 0} if group == StageGroup("chunk", "save") else {}

    async def lags(self, groups: Sequence[StageGroup]) -> dict[StageGroup, NoLag]:
        return {group: NoLag() for group in groups}


class KnownLetters:
    async def look(self) -> None:
        """They are known."""

    def counts(self) -> list[OpenLetterCount]:
        def parked(topic: Topic, stage: str, code: str, count: int) -> OpenLetterCount:
            return OpenLetterCount(topic=topic.name, stage=stage, code=code, count=count, site="town", parked=True)

        dead = OpenLetterCount(topic=CHUNKS.name, stage="embed", code="refused", count=2)
        return [dead, parked(CHUNKS, "embed", "model-mismatch", 3), parked(EMBEDDINGS, "index", "index-gone", 4)]


@dataclass
class Index:
    error: Exception | None = None

    async def site_statuses(self, sites: Sequence[str]) -> list[SiteStatus]:
        if self.error is not None:
            raise self.error
        return [
            SiteStatus(site=site, pages=1, chunks=1, freshness_p50_ms=None, freshness_p95_ms=None, embedder=None)
            for site in sites
        ]


def status(index: Index, kafka: Kafka | None = None, sites: Sequence[str] | None = None) -> SystemStatus:
    reader = StatusReader(
        ("town", "city"), cast(Bus, kafka or Kafka()), cast(StatusIndex, index), cast(OpenLetters, KnownLetters())
    )
    return skipping_time.run(reader.status(sites))


def test_what_is_parked_is_told_with_its_site_and_is_not_dead() -> None:
    found = status(Index())
    counts = {(stage.stage, stage.lane): (stage.dead_letters, stage.parked) for stage in found.stages}
    assert (counts["embed", "save"], counts["index", "save"], counts["embed", "bulk"]) == ((2, 3), (0, 4), (0, 0))
    town, city = found.sites
    assert (town.parked, city.parked, city.problem) == (7, 0, None)
    assert town.problem is not None
    assert "7 messages are parked (embed: model-mismatch, index: index-gone)" in town.problem


def test_only_the_sites_that_are_asked_for_are_looked_at() -> None:
    assert [site.site for site in status(Index(), sites=["city"]).sites] == ["city"]
    assert status(Index(), sites=["city"]).stages == status(Index()).stages


def test_a_service_that_refuses_our_key_is_told_by_its_name() -> None:
    found = status(Index(ElasticsearchDenied("answered 401; is PAGEWIRE_ELASTICSEARCH_API_KEY right?")))
    assert not found.elasticsearch
    assert any("PAGEWIRE_ELASTICSEARCH_API_KEY" in problem for problem in found.problems)


def test_messages_that_were_deleted_before_a_stage_read_them_are_told_with_what_to_run() -> None:
    assert status(Index()).problems == ()
    (cut,) = status(Index(), Kafka(at=3)).problems
    assert cut.startswith(
        "up to 4 messages of t.cms.changes[0] were deleted before t.pagewire-chunk had read them: what"
    )
    assert "`pagewire reconcile SITE`" in cut


def test_it_is_told_for_a_day_after_the_stage_has_gone_on() -> None:
    def note(hours: float, worker: str = "a") -> tuple[str, PauseNote]:
        at = datetime.now(UTC) - timedelta(hours=hours)
        said = PauseNote(worker=worker, stage="t.pagewire-embed", code="log-cut", reason="cut", since=at, at=at)
        return CUTS_KEY, said

    assert status(Index(), Kafka(notes=[note(25)])).problems == ()
    (cut,) = status(Index(), Kafka(notes=[note(23), note(22, "b")])).problems
    assert cut.startswith("cut (seen at ")
