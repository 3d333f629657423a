"""The quality gate: its figures, and the questions it is given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.evaluate.dataset import BadDataset, Case
from pipelines.evaluate.quality_gate import RankedPage, compare, gate_cases, rank, verdict
from schemas.rebuild import Rank

SAMPLE = Path(__file__).resolve().parents[3] / "sites" / "demo" / "questions.yaml"


def ranks(*pairs: tuple[int | None, int | None]) -> list[Rank]:
    """(live, candidate)"""
    return [Rank(question=f"q{n}", page="p", live=live, candidate=new) for n, (live, new) in enumerate(pairs)]


def given(**entry: Any) -> Case:
    return Case.model_validate(entry)


def found(*pages: str) -> list[RankedPage]:
    return [RankedPage(page, "en") for page in pages]


def test_pages_are_ranked_by_their_first_hit_and_by_language() -> None:
    hits = [RankedPage("a", "en"), RankedPage("a", "en"), RankedPage("b", "de"), RankedPage("b", "en")]
    assert rank(given(question="q", pages="a"), hits) == 1
    assert rank(given(question="q", pages="b"), hits) == 2
    assert rank(given(question="q", pages="b", lang="en"), hits) == 3
    assert rank(given(question="q", pages="b", lang="de", page_lang="en"), hits) == 3
    assert rank(given(question="q", pages=["c", "b"]), hits) == 2
    assert rank(given(question="q", pages="c"), hits) is None
    assert rank(given(question="q", pages="z"), found(*"abcdefghijz")) is None  # eleventh


def test_figures_are_means_over_the_questions() -> None:
    report = verdict(ranks((1, 1), (2, 1), (None, 4), (1, None)))
    hit, mrr = report.measures
    assert (hit.name, hit.live, hit.candidate, hit.difference) == ("hit@1", 0.5, 0.5, 0.0)
    assert (mrr.name, mrr.live, mrr.candidate) == ("MRR@10", 0.625, 0.5625)
    assert (report.questions, report.margin, report.passed) == (4, 0.03, False)
    assert [one.question for one in report.worst] == ["q3"]


@pytest.mark.parametrize(
    ("pairs", "states"),
    [
        ([(1, 1)] * 120, "not worse"),
        ([(1, 1)] * 50, "undecided"),  # the same, but 99 are needed to say so
        ([(2, 1)] * 50, "not worse"),  # better
        ([(1, 2)] * 3 + [(1, 1)] * 17, "undecided"),
        ([(1, 2)] * 3 + [(2, 1)] * 2 + [(1, 1)] * 45, "undecided"),
        ([(1, 2)] * 12 + [(1, 1)] * 38, "worse"),
        ([(1, None)], "undecided"),
    ],
)
def test_it_passes_only_when_it_is_shown_not_to_be_worse(
    pairs: list[tuple[int | None, int | None]], states: str
) -> None:
    report = verdict(ranks(*pairs))
    assert {measure.state for measure in report.measures} == {states}
    assert report.passed is (states == "not worse")
    assert (report.needed > len(pairs)) is (states == "undecided")


def test_a_wider_margin_needs_fewer_questions() -> None:
    assert verdict(ranks(*[(1, 1)] * 30), margin=0.1).passed
    assert verdict(ranks(*[(1, 1)] * 28), margin=0.1).needed == 29


async def test_every_question_is_asked_of_both() -> None:
    asked: list[tuple[str, str]] = []
    done: list[int] = []

    async def live(question: str) -> Sequence[RankedPage]:
        asked.append(("live", question))
        return found("right")

    async def candidate(question: str) -> Sequence[RankedPage]:
        asked.append(("candidate", question))
        return found("wrong", "right")

    cases = [given(question=f"q{n}", pages="right") for n in range(20)]
    report = await compare(cases, live, candidate, done.append)
    assert sorted(asked) == sorted((who, case.question) for who in ("live", "candidate") for case in cases)
    assert done == list(range(1, 21))
    assert not report.passed
    assert (report.worst[0].live, report.worst[0].candidate) == (1, 2)


def test_the_sample_sites_questions_can_be_used() -> None:
    cases = gate_cases(SAMPLE, "demo")
    assert len(cases) > 50
    assert all(case.pages for case in cases)


def test_a_dataset_is_asked_as_far_as_it_is_about_pages_of_the_site(tmp_path: Path) -> None:
    file = tmp_path / "q.yaml"
    file.write_text("""
name: both
cases:
  - {question: Where?, pages: [map, way], site: town, facts: [left]}
  - {question: Who?, page: board, site: club}
  - {question: When?, page: hours}
  - {question: Why?, answers: because}
""")
    assert [one.pages for one in gate_cases(file, "town")] == [("map", "way"), ("hours",)]
    file.write_text("- {question: Where?, pgae: map}")
    with pytest.raises(BadDataset, match="entry 1: pgae"):
        gate_cases(file, "town")


def test_ndjson_with_page_id_can_be_used_and_unanswerable_ones_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "q.ndjson"
    file.write_text('{"question": "Where?", "page_id": "map"}\n\n{"question": "Why?"}\n')
    assert gate_cases(file, "town") == [given(question="Where?", pages="map")]


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
    with pytest.raises(BadDataset, match=said):
        gate_cases(file, "town")


def test_bytes_that_are_no_text_are_told_plainly(tmp_path: Path) -> None:
    file = tmp_path / "q.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadDataset, match="cannot be read"):
        gate_cases(file, "town")
