"""The quality gate: its figures, and the questions it is given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipelines.evaluate.quality_gate import (
    BadQuestions,
    Case,
    FoundPage,
    Rank,
    compare,
    load_cases,
    paired_interval,
    rank,
    verdict,
)

SAMPLE = Path(__file__).resolve().parents[3] / "sites" / "demo" / "questions.yaml"


def ranks(*pairs: tuple[int | None, int | None]) -> list[Rank]:
    """(live, candidate)"""
    return [Rank(question=f"q{n}", page="p", live=live, candidate=new) for n, (live, new) in enumerate(pairs)]


def found(*pages: str) -> list[FoundPage]:
    return [FoundPage(page, "en") for page in pages]


def test_pages_are_ranked_by_their_first_hit_and_by_language() -> None:
    hits = [FoundPage("a", "en"), FoundPage("a", "en"), FoundPage("b", "de"), FoundPage("b", "en")]
    assert rank(Case(question="q", page="a"), hits) == 1
    assert rank(Case(question="q", page="b"), hits) == 2
    assert rank(Case(question="q", page="b", lang="en"), hits) == 3
    assert rank(Case(question="q", page="b", lang="de", page_lang="en"), hits) == 3
    assert rank(Case(question="q", page="c"), hits) is None
    assert rank(Case(question="q", page="z"), found(*"abcdefghijz")) is None  # eleventh


def test_figures_are_means_over_the_questions() -> None:
    report = verdict(ranks((1, 1), (2, 1), (None, 4), (1, None)))
    hit, mrr = report.measures
    assert (hit.name, hit.live, hit.candidate, hit.difference) == ("hit@1", 0.5, 0.5, 0.0)
    assert (mrr.name, mrr.live, mrr.candidate) == ("MRR@10", 0.625, 0.5625)
    assert (report.questions, report.passed) == (4, True)
    assert [one.question for one in report.worst] == ["q3"]


@pytest.mark.parametrize(
    ("pairs", "passed"),
    [
        ([(1, 1)] * 50, True),  # the same
        ([(2, 1)] * 50, True),  # better
        ([(1, 2)] * 3 + [(2, 1)] * 2 + [(1, 1)] * 45, True),  # worse by chance
        ([(1, 2)] * 12 + [(1, 1)] * 38, False),  # worse
        ([(1, None)], False),
    ],
)
def test_it_fails_only_when_significantly_worse(pairs: list[tuple[int | None, int | None]], passed: bool) -> None:
    assert verdict(ranks(*pairs)).passed is passed


def test_the_interval_covers_the_true_mean_and_is_always_the_same() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(100):
        low, high = paired_interval(rng.normal(0.2, 1.0, 80))
        covered += low <= 0.2 <= high
    assert 88 <= covered <= 100
    differences = rng.normal(size=40)
    assert paired_interval(differences) == paired_interval(differences)


async def test_every_question_is_asked_of_both() -> None:
    asked: list[tuple[str, str]] = []
    done: list[int] = []

    async def live(question: str) -> Sequence[FoundPage]:
        asked.append(("live", question))
        return found("right")

    async def candidate(question: str) -> Sequence[FoundPage]:
        asked.append(("candidate", question))
        return found("wrong", "right")

    cases = [Case(question=f"q{n}", page="right") for n in range(20)]
    report = await compare(cases, live, candidate, done.append)
    assert sorted(asked) == sorted((who, case.question) for who in ("live", "candidate") for case in cases)
    assert done == list(range(1, 21))
    assert not report.passed
    assert (report.worst[0].live, report.worst[0].candidate) == (1, 2)


def test_the_sample_sites_questions_can_be_used() -> None:
    cases = load_cases(SAMPLE)
    assert len(cases) > 50
    assert all(case.page for case in cases)


def test_ndjson_with_page_id_can_be_used_and_unanswerable_ones_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "q.ndjson"
    file.write_text('{"question": "Where?", "page_id": "map"}\n\n{"question": "Why?"}\n')
    assert load_cases(file) == [Case(question="Where?", page="map")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("q.yaml", "question: one", "must be a list"),
        ("q.yaml", "- {page: a}", "entry 1: question"),
        ("q.yaml", "- just words", "entry 1"),
        ("q.yaml", "- {question: [", "cannot be read"),
        ("q.yaml", "- {question: Who knows}", "no question names its page"),
        ("q.ndjson", "{not json", "cannot be read"),
        ("q.yaml", "", "must be a list"),
    ],
)
def test_a_file_of_something_else_is_told_plainly(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(BadQuestions, match=said):
        load_cases(file)


def test_bytes_that_are_no_text_are_told_plainly(tmp_path: Path) -> None:
    file = tmp_path / "q.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadQuestions, match="cannot be read"):
        load_cases(file)
