"""What `pagewire eval gaps` prints."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cli import question_log
from pipelines.query.log.gaps import Period
from schemas.gaps import GapCounts, GapPage, GapQuestion, GapReport, QuestionGroup
from tests.asking import NOON

PERIOD = Period.of_days(30, NOON)
POOL = GapPage(page_id="pool", lang="en", title="Pool", url="https://town.example/p", distance=0.164, found=7, cited=1)


def sample(text: str) -> GapQuestion:
    return GapQuestion(
        request_id="request-0001", question=text, lang="en", asked_at=NOON, asked=1, became="refused", missed=True
    )


def group(label: str, **more: Any) -> QuestionGroup:
    said: dict[str, Any] = {
        "asked": 9, "asked_before": 12, "missed": 7, "missed_before": 2, "trend": "up", "covered": "near",
        "languages": {"en": 6, "de": 3}, "questions": (sample(label), sample("dogs allowed?")), "pages": (POOL,),
        "last_asked": NOON,
    }  # fmt: skip
    return QuestionGroup(id="request-0001", label=label, **said | more)


def made(*groups: QuestionGroup, **more: Any) -> GapReport:
    counts = GapCounts(asked=1214, missed=41, refused=19, disliked=4, unsure=22, without_words=3)
    said: dict[str, Any] = {"counts": counts, "counts_before": GapCounts(asked=180, missed=35), "total": len(groups)}
    period = {"before": PERIOD.before, "since": PERIOD.since, "until": PERIOD.until, "made_at": NOON}
    return GapReport(site="town", groups=groups, **period | said | more)


def printed(capsys: pytest.CaptureFixture[str], report: GapReport, *, every: bool = False) -> str:
    question_log._print_gaps(report, every=every)
    return capsys.readouterr().out


def test_a_group_is_a_line_with_its_trend_samples_and_pages(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, made(group("May I bring my [dog]?"), total=12))
    first, _, head, *lines = shown.splitlines()
    assert first.startswith("1,214 asked, 41 missed (19 refused, 4 disliked, 22 shown a page) since 2026-04-04")
    assert first.endswith("3 have no words to group them by; 180 and 35 in as many days before")
    assert head.split() == ["missed", "asked", "lang", "question", "near"]
    assert lines[0].split()[:2] == ["7", "9"]
    assert "up from 2" in lines[0]
    assert "en de" in lines[0]
    assert "May I bring my [dog]?" in lines[0]
    assert "pages were shown, but no answer" in lines[0]
    assert "dogs allowed?" in lines[1]
    assert "Pool 0.16 https://town.example/p" in lines[1]
    assert shown.endswith("1 of 12 groups; more with --limit\n")


@pytest.mark.parametrize(
    ("more", "every", "expected"),
    [
        ({"trend": "new", "missed_before": 0}, False, "new"),
        ({"trend": "same", "missed_before": 6}, False, "as before"),
        ({"last_missed": NOON - timedelta(days=2), "closing": True}, False, "up from 2, closing"),
        ({}, True, "down from 12"),
    ],
)
def test_where_a_group_goes(more: dict[str, Any], every: bool, expected: str) -> None:
    assert question_log._trend(group("Dogs?", **more), every=every) == expected


def test_nothing_asked_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    empty = made(counts=GapCounts(), counts_before=GapCounts())
    assert printed(capsys, empty).splitlines()[0].startswith("0 asked, 0 missed since ")
    assert len(printed(capsys, empty).splitlines()) == 1
    assert "the oldest are left out" in printed(capsys, made(cut=True))
