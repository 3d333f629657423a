"""Gap reports: what is counted as missed, what a group is called, what stands near it, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from pipelines.query.log import gaps
from pipelines.query.log.gaps import Period, covered, misses, most_asked, most_missed, pages, report, trend, wordings
from pipelines.query.log.ports import AskedHit, GroupableQuestion
from schemas.gaps import GapReport
from tests.asking import NOON

PERIOD = Period.of_days(30, NOON)


def asked(text: str | None = "Is there a sauna?", *, days: float = 1, id: int = 1, **more: Any) -> GroupableQuestion:
    said: dict[str, Any] = {"became": "refused", "grade": 5, "question": text, "text": text, "lang": "en"}
    return GroupableQuestion(request_id=f"request-{id:04}", asked_at=NOON - timedelta(days=days), **said | more)


def hit(page: str, cosine: float | None, *, cited: bool = False, title: str = "") -> AskedHit:
    return AskedHit(page, "en", title or page.title(), f"/{page}", cosine, cited)


def reported(groups: Sequence[Sequence[GroupableQuestion]], **more: Any) -> GapReport:
    """Of groups that somebody has found."""
    every = [(number, wording) for number, group in enumerate(groups) for wording in wordings(group)]
    vectors = np.eye(max(4, len(groups)), dtype=np.float32)[[number for number, _ in every]]
    numbers = np.array([number for number, _ in every], dtype=np.int64)
    questions = [one for group in groups for one in group]
    return report("town", PERIOD, questions, [each for _, each in every], vectors, numbers, made_at=NOON, **more)


@pytest.mark.parametrize("until", [NOON, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
@pytest.mark.parametrize("days", [1e-9, 30, 366, 3e6])
def test_a_period_of_any_length_has_one_before_it(until: datetime, days: float) -> None:
    period = Period.of_days(days, until)
    assert period.before <= period.since <= period.until
    if days <= 366 and until >= NOON:
        assert period.since - period.before == period.until - period.since == timedelta(days=days)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"refused"}),
        ({"became": "answered"}, set()),
        ({"became": "answered", "rating": "down"}, {"disliked"}),
        ({"became": "answered", "left_out": 1}, {"unfounded"}),
        ({"became": "answered", "left_out": 1, "rating": "up"}, set()),
        ({"became": "page"}, {"unsure"}),
        ({"became": "page", "rating": "up"}, set()),
        ({"became": "page", "rating": "down"}, {"unsure", "disliked"}),
        ({"became": "refused", "rating": "up"}, {"refused"}),
        ({"became": "failed"}, set()),
    ],
)
def test_what_is_missed(more: dict[str, Any], expected: set[str]) -> None:
    assert misses(asked(**more)) == expected


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (0, 0, "same"), (0, 3, "gone"), (3, 0, "new"), (5, 4, "same"), (4, 5, "same"), (5, 3, "up"), (3, 5, "down"),
        (110, 100, "same"), (125, 100, "up"), (80, 100, "down"), (2, 1, "same"),
    ],
)  # fmt: skip
def test_a_trend_needs_a_change_that_counts(now: int, before: int, expected: str) -> None:
    assert trend(now, before) == expected


def test_the_same_words_are_one_wording_whatever_their_case_and_marks() -> None:
    every = [asked("Is there a SAUNA"), asked("is there a sauna?", id=2), asked("Café?", id=3), asked("cafe", id=4)]
    found = wordings([*every, asked(None, id=5), asked("?!", id=6), asked("Cafe?!", id=7), asked("cafe", id=8)])
    assert [(each.text, len(each.questions)) for each in found] == [("Is there a SAUNA", 2), ("cafe", 4), ("?!", 1)]


def test_a_group_is_counted_in_both_periods() -> None:
    sauna = [
        asked(id=1, days=1),
        asked("Sauna?", id=2, days=2, rating="down"),
        asked("sauna", id=3, days=3, became="answered", lang="de"),
        asked(id=4, days=40),
        asked(id=5, days=41, became="answered"),
    ]
    [group] = reported([sauna]).groups
    assert (group.asked, group.asked_before, group.missed, group.missed_before) == (3, 2, 2, 1)
    assert (group.refused, group.disliked, group.unsure, group.trend) == (2, 1, 0, "same")
    assert group.languages == {"en": 2, "de": 1}
    assert (group.last_asked, group.last_missed, group.closing) == (sauna[0].asked_at, sauna[0].asked_at, False)
    [closing] = reported([[asked(days=3), asked(id=2, became="answered")]]).groups
    assert closing.closing


def test_a_report_counts_all_questions_also_those_without_words() -> None:
    made = reported([[asked(), asked(id=2, became="answered")], [asked(None, id=3), asked(id=4, days=31)]])
    assert (made.counts.asked, made.counts.missed, made.counts.refused, made.counts.without_words) == (3, 2, 2, 1)
    assert (made.counts_before.asked, made.counts_before.missed) == (1, 1)
    assert (made.before, made.since, made.until) == (NOON - timedelta(60), NOON - timedelta(30), NOON)


def test_most_missed_and_most_asked_are_two_views_of_one_report() -> None:
    pool = [asked(f"Pool {n}?", id=10 + n, became="answered") for n in range(4)]
    dogs = [asked("Dogs?", id=20), asked("Dogs allowed?", id=21)]
    gone = [asked("Ice rink?", id=30, days=45)]
    made = reported([pool, [asked("Sauna?")], dogs, gone])
    missed, every = most_missed(made, 10), most_asked(made, 10)
    assert [group.missed for group in missed.groups] == [2, 1]
    assert [(group.asked, group.missed) for group in every.groups] == [(4, 0), (2, 2), (1, 1)]
    assert (missed.total, every.total, made.total) == (2, 3, 4)
    one = most_asked(made, 1)
    assert (len(one.groups), one.total) == (1, 3)
    assert made.groups[-1].trend == "gone" or made.groups[-2].trend == "gone"


def test_a_page_that_was_shown_is_missed_less_than_a_refusal() -> None:
    shown = [asked(f"Pool {n}?", id=10 + n, became="page") for n in range(3)]
    made = reported([shown, [asked("Sauna?")]])
    assert [(group.label, group.missed) for group in made.groups] == [("Sauna?", 1), ("Pool 0?", 3)]


def test_few_of_very_many_groups_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "KEPT", 1)
    made = reported(
        [[asked("Pool?", id=1, became="answered"), asked("A pool?", id=2, became="answered")], [asked(id=3)]]
    )
    assert [(group.asked, group.missed) for group in made.groups] == [(1, 1), (2, 0)]
    assert made.total == 2


def test_the_label_is_the_missed_question_nearest_the_middle() -> None:
    texts = ["Any sauna open?", "Where is the sauna?", "sauna prices", "When does the sauna open?"]
    every = [asked(text, id=n, became="answered" if n == 1 else "refused") for n, text in enumerate(texts)]
    vectors = np.array([[1, 0.4, 0], [1, 0, 0], [1, 0, 0.1], [0.6, -0.8, 0]], dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    made = report("town", PERIOD, every, wordings(every), vectors, np.zeros(4, np.int64), made_at=NOON)
    [group] = made.groups
    assert (group.label, group.id) == ("sauna prices", "request-0002")  # nearer to the middle, the second was answered


def test_samples_are_the_missed_wordings_asked_most_first() -> None:
    every = [
        asked("Sauna?", id=1), asked("Sauna opening", id=2), asked("sauna opening", id=3), asked("SAUNA opening", id=4),
        asked("Is the sauna clean?", id=5, became="answered"), *(asked(f"sauna {n}", id=10 + n) for n in range(6)),
    ]  # fmt: skip
    [group] = reported([every]).groups
    assert [(one.question, one.asked) for one in group.questions[:2]] == [("Sauna opening", 3), ("Sauna?", 1)]
    assert len(group.questions) == gaps.SAMPLES
    assert all(one.missed for one in group.questions)


def test_words_tell_a_group_from_the_others() -> None:
    sauna = [asked("Is there a sauna in town?"), asked("sauna prices in town", id=2), asked("the sauna in town", id=3)]
    others = [[asked(f"Is there a {what} in town?", id=10 + n)] for n, what in enumerate(("bar", "rink", "cinema"))]
    made = reported([sauna, *others])
    assert made.groups[0].words[0] == "sauna"
    assert "is" not in made.groups[0].words


def test_pages_near_a_group_by_how_often_and_how_near() -> None:
    found = pages(
        [
            asked(id=1, hits=(hit("pool", 0.7, title="Pools"), hit("pool", 0.8), hit("fees", None), hit("bar", 0.1))),
            asked(id=2, hits=(hit("pool", 0.6, title="Old title"), hit("gym", 0.7, cited=True), hit("gym", 0.6))),
        ]
    )
    assert [(page.page_id, page.distance, page.found, page.cited) for page in found] == [
        ("pool", 0.3, 2, 0),
        ("gym", 0.3, 1, 1),
        ("bar", 0.9, 1, 0),
    ]
    assert (found[0].title, found[0].url) == ("Pools", "/pool")
    assert pages([asked(hits=(hit("fees", None),))])[0].distance is None


def test_pages_and_cover_are_those_of_what_was_missed() -> None:
    missed = asked(id=1, hits=(hit("pool", 0.5),), grade=4)
    fine = asked("Sauna", id=2, became="answered", hits=(hit("sauna", 0.9, cited=True),), grade=0)
    [group] = reported([[fine, missed]]).groups
    assert [page.page_id for page in group.pages] == ["pool"]
    assert group.covered == "near"
    [all_well] = reported([[fine]]).groups
    assert ([page.page_id for page in all_well.pages], all_well.covered) == (["sauna"], None)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([("refused", 5), ("refused", None), ("page", 0)], "nothing"),
        ([("refused", 4), ("page", 0), ("answered", 0)], "near"),
        ([("refused", 5), ("page", 0)], "near"),
        ([("answered", 0), ("answered", 5)], "there"),
        ([("failed", None)], None),
        ([], None),
    ],
)
def test_what_most_visitors_got(got: list[tuple[str, int | None]], expected: str | None) -> None:
    assert covered(asked(id=n, became=became, grade=grade) for n, (became, grade) in enumerate(got)) == expected


def test_no_page_is_named_where_visitors_got_nothing() -> None:
    [group] = reported([[asked(id=1, hits=(hit("pool", 0.5),), grade=5)]]).groups
    assert (group.covered, group.pages) == ("nothing", ())
