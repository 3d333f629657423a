"""What an import says while it waits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from cli.content import waited_for
from schemas.http import SiteStatus, StageStatus, SystemStatus


def stage(name: str, lag: int, members: int = 1, lane: Literal["save", "bulk"] | None = "bulk") -> StageStatus:
    return StageStatus(
        stage=name, lane=lane, topic="a.topic", lag=lag, rate=0.0, members=members, dead_letters=0, parked=0
    )


def status(*stages: StageStatus, kafka: bool = True, problem: str | None = None, paused: str = "") -> SystemStatus:
    site = SiteStatus(
        site="town", pages=1, chunks=2, freshness_p50_ms=None, freshness_p95_ms=None, embedder=None, problem=problem
    )
    problems = (paused,) if paused else ()
    return SystemStatus(
        at=datetime.now(UTC), kafka=kafka, elasticsearch=True, stages=stages, sites=(site,), problems=problems
    )


def test_a_slow_embedder_is_at_work_and_a_stage_without_worker_is_not() -> None:
    assert waited_for(status(stage("chunk", 0), stage("embed", 1_200), stage("index", 3, members=0))) == [
        "embed (bulk) is at work, 1,200 messages are left",
        "index (bulk) has 3 messages left: no `pagewire worker index` runs",
    ]


def test_what_is_away_or_paused_or_parked_comes_first() -> None:
    said = waited_for(status(stage("index", 1), problem="site town: parked", paused="stage index is paused"))
    assert said == ["stage index is paused", "site town: parked", "index (bulk) is at work, 1 messages are left"]
    assert waited_for(status(kafka=False)) == ["Kafka does not answer"]


def test_questions_are_not_waited_for_and_where_nothing_is_left_it_says_where_to_look() -> None:
    assert waited_for(status(stage("answer", 5, lane=None)))[0].startswith("no stage has a message left")
