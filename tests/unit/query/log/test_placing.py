"""Pages into topics, questions into groups, and the nearest of each other."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.query.log import grouping, placing
from pipelines.query.log.placing import NONE, Placed, placed
from pipelines.runtime.embedder import Matrix32

DIMS = 32
SUBJECTS = 6


def vectors(seed: int, subjects: list[int], corner: int) -> Matrix32:
    """Around subjects, all of them far out in the corner of their kind."""
    rng = np.random.default_rng(seed)
    made = 0.1 * rng.standard_normal((len(subjects), DIMS))
    made[np.arange(len(subjects)), subjects] += 1
    made[:, corner] += 2
    unit: Matrix32 = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit


def of(pages: list[int], questions: list[int]) -> Placed:
    langs = ["en"] * len(pages), ["en"] * len(questions)
    return placed(vectors(1, pages, 30), langs[0], vectors(2, questions, 31), langs[1], [1] * len(questions))


def test_pages_of_one_subject_are_one_topic_and_questions_that_mean_the_same_one_group() -> None:
    pages, questions = [n % 5 for n in range(40)], [n % 4 for n in range(40)]
    found = of(pages, questions)
    assert found.pages.tolist() == pages
    assert found.questions.tolist() == questions


def test_the_nearest_of_the_other_kind_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "BLOCK", 2)
    pages, questions = vectors(1, [0, 1, 2], 30), vectors(2, [2, 1, 1, 2, 2], 30)
    found = placed(pages, ["en"] * 3, questions, ["en"] * 5, [1] * 5)
    cosines = questions @ pages.T
    assert found.nearest.tolist() == cosines.argmax(axis=1).tolist() == [2, 1, 1, 2, 2]
    assert found.to_page == pytest.approx(1 - cosines.max(axis=1), abs=1e-6)
    assert found.to_question == pytest.approx(1 - cosines.max(axis=0), abs=1e-6)


@pytest.mark.parametrize(("pages", "questions"), [(0, 0), (0, 2), (2, 0), (1, 0), (0, 1), (1, 1)])
def test_a_site_without_pages_or_without_questions_has_topics_of_the_other_kind(pages: int, questions: int) -> None:
    found = of(list(range(pages)), list(range(questions)))
    assert (len(found.pages), len(found.questions)) == (pages, questions)
    assert (found.nearest == (-1 if not pages else found.nearest)).all()
    if not (pages and questions):
        assert {*found.to_page.tolist(), *found.to_question.tolist()} <= {NONE}


def test_of_very_many_some_are_linked_and_the_others_join_them(monkeypatch: pytest.MonkeyPatch) -> None:
    subjects = [n % SUBJECTS for n in range(60)]
    monkeypatch.setattr(grouping, "MOST_LINKED", 40)
    found = of(subjects, subjects)
    assert found.pages.tolist() == found.questions.tolist() == subjects


def test_the_same_each_time() -> None:
    subjects = [n % SUBJECTS for n in range(30)]
    once, again = of(subjects, subjects), of(subjects, subjects)
    assert all((a == b).all() for a, b in zip(once, again, strict=True))
