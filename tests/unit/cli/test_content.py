"""What an import says while it waits, and when it is done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from cli import content
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


def result(**more: Any) -> dict[str, object]:
    return {"site": "town", "sent": 3, "queued": 0, "failed": {}, "notes": {}, **more}


@pytest.mark.parametrize(
    ("found", "told", "summary"),
    [
        (result(), "", "3 pages sent, 0 failed, the rest searchable"),
        (
            result(notes={"town:en:fees": ["fees.pdf is not searchable: it holds [no] text"]}),
            "note town:en:fees: fees.pdf is not searchable: it holds [no] text",
            "3 pages sent, 0 failed, the rest searchable, 1 of them with a note",
        ),
        (
            result(notes={f"town:en:{n}": ["a.pdf: left out: pictures: 1"] for n in range(content.TOLD + 2)}),
            "... and 2 more with a note; --json names them all",
            f"3 pages sent, 0 failed, the rest searchable, {content.TOLD + 2} of them with a note",
        ),
        (
            result(omitted={"https://town.example/a": "noindex"}, failed={"town:en:b": "refused"}),
            "left out https://town.example/a: noindex\nfailed town:en:b: refused",
            "3 pages sent, 1 failed, the rest searchable, 1 addresses left out",
        ),
        (
            result(omitted={f"https://town.example/{n}": "noindex" for n in range(content.SHOWN + 2)}),
            "... and 2 more left out; --json names them all",
            f"3 pages sent, 0 failed, the rest searchable, {content.SHOWN + 2} addresses left out",
        ),
        (
            result(queued=3),
            "",
            "3 pages sent, 3 queued; `pagewire status` shows how many are left in the lane `bulk`",
        ),
    ],
)
def test_an_import_tells_what_is_not_in_the_search(
    capsys: pytest.CaptureFixture[str], found: dict[str, object], told: str, summary: str
) -> None:
    content._print_import(found)
    said = capsys.readouterr()
    assert said.err.endswith(told + "\n" if told else "")
    assert " ".join(said.out.split()) == summary
