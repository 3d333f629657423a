"""Datasets out of SQuAD's format and of the question log."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.evaluate.conversions import question_log
from pipelines.evaluate.dataset import BadDataset
from pipelines.evaluate.question_sets import squad
from schemas.outcome import QuestionCounts, QuestionList, QuestionRow

AT = datetime(2026, 11, 23, tzinfo=UTC)
# Our own lines in the format of SQuAD 2.0.
SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Town_library",
            "paragraphs": [
                {
                    "context": "A card costs 18 euros & lasts a year.",
                    "qas": [
                        {
                            "id": "q1",
                            "question": "What does a card cost?",
                            "is_impossible": False,
                            "answers": [
                                {"text": "18 euros", "answer_start": 13},
                                {"text": "18 euros", "answer_start": 13},
                            ],
                        },
                        {"id": "q2", "question": "Who founded it?", "is_impossible": True, "answers": []},
                    ],
                },
                {"context": "It opens at nine.", "qas": []},
            ],
        }
    ],
}


def written(folder: Path, document: Any) -> Path:
    file = folder / "file.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return file


def test_squads_questions_and_articles(tmp_path: Path) -> None:
    (first, second), (page,) = squad(written(tmp_path, SQUAD), "en")
    assert (first.id, first.pages, first.answers, first.expect) == ("q1", ("Town_library",), ("18 euros",), "answer")
    assert (first.lang, first.page_lang) == ("en", "en")
    assert (second.id, second.pages, second.expect) == ("q2", (), "refuse")
    assert (page.id, page.title) == ("Town_library", "Town library")
    assert page.content == "<p>A card costs 18 euros &amp; lasts a year.</p>\n<p>It opens at nine.</p>"


@pytest.mark.parametrize(
    "document", [{}, [], {"data": [{}]}, {"data": [{"paragraphs": [{"qas": []}]}]}, "{no", {"data": 1}]
)
def test_what_is_not_squads_is_told_plainly(tmp_path: Path, document: Any) -> None:
    with pytest.raises(BadDataset, match=r"file\.json"):
        squad(written(tmp_path, document), "en")


def row(number: int, **more: Any) -> QuestionRow:
    told = {
        "request_id": f"request-{number:04}",
        "conversation": f"conversation-{number}",
        "asked_at": AT + timedelta(minutes=number),
        "asked_in": "en",
        "lang": "en",
        "question": f"Question {number}?",
        "became": "answered",
    }
    return QuestionRow.model_validate(told | more)


def log(folder: Path, *rows: QuestionRow) -> Path:
    newest_first = tuple(reversed(rows))
    told = QuestionList(counts=QuestionCounts(asked=len(rows)), questions=newest_first)
    return written(folder, told.model_dump_json())


def test_logged_questions_are_cases_that_somebody_has_to_label(tmp_path: Path) -> None:
    liked, disliked, further, silent = (
        row(1, feedback="up", pages=("library",), conversation="one"),
        row(2, feedback="down", pages=("bus",), comment="wrong line", asked_in="de"),
        row(3, became="refused", conversation="one"),
        row(4, question=None),
    )
    cases = {case.id: case for case in question_log(log(tmp_path, liked, disliked, further, silent))}
    first, second, third = (cases[each.request_id] for each in (liked, disliked, further))
    assert len(cases) == 3
    assert (first.pages, first.expect, first.tags, first.history) == (("library",), "answer", ("answered", "liked"), ())
    assert (second.pages, second.expect, second.tags, second.lang) == ((), None, ("answered", "disliked"), "de")
    assert second.note == "wrong line"
    assert (third.expect, third.tags, third.history) == (None, ("refused",), ("Question 1?",))


def test_a_sample_has_some_of_each_outcome_and_all_that_were_disliked(tmp_path: Path) -> None:
    rows = [row(n, became=("answered", "refused")[n % 2], asked_in=("en", "de")[n // 2 % 2]) for n in range(40)]
    rows += [row(n, feedback="down") for n in range(40, 45)]
    file = log(tmp_path, *rows)
    cases = question_log(file, per_stratum=3)
    assert len(cases) == 4 * 3 + 5
    assert cases == question_log(file, per_stratum=3)
    assert len(question_log(file, per_stratum=1_000)) == len(question_log(file)) == 45


def test_what_is_no_question_log_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="not what `pagewire questions --json` prints"):
        question_log(written(tmp_path, SQUAD))
    with pytest.raises(BadDataset, match="cannot be read"):
        question_log(tmp_path / "none.json")
