"""Grouping: what means the same falls together, the same way each time, in whatever language it is asked."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.query.log import grouping
from pipelines.query.log.grouping import centred, grouped
from pipelines.runtime.embedder import Matrix32
from schemas.compact import compact

DIMS = 32
COMMON = np.eye(DIMS, dtype=np.float32)[0]


def question(meaning: int, lang: int = 0, tongue: float = 1.5, noise: float = 0.2, seed: int = 0) -> Matrix32:
    """As models have them: mostly what all have in common, then the language, then what is meant."""
    vector = (
        3 * COMMON + tongue * np.eye(DIMS, dtype=np.float32)[1 + lang] + np.eye(DIMS, dtype=np.float32)[8 + meaning]
    )
    vector += noise * np.random.default_rng((seed, meaning, lang)).standard_normal(DIMS).astype(np.float32) / DIMS**0.5
    unit: Matrix32 = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


def town(meanings: int, wordings: int, langs: int = 1, tongue: float = 1.5) -> tuple[Matrix32, list[str], list[int]]:
    """Vectors, languages, meanings; wordings of a meaning are not next to each other."""
    places = [(m, lang, n) for n in range(wordings) for lang in range(langs) for m in range(meanings)]
    vectors = np.stack([question(m, lang, tongue, seed=n) for m, lang, n in places])
    return vectors, ["en" if lang == 0 else "de" for _, lang, _ in places], [m for m, _, _ in places]


@pytest.mark.parametrize("langs", [1, 2])
def test_questions_of_one_meaning_fall_together_across_languages(langs: int) -> None:
    vectors, spoken, meanings = town(8, 4, langs)
    assert grouped(vectors, spoken, [1] * len(vectors)).tolist() == meanings


def test_languages_apart_are_what_would_part_them() -> None:
    """Without the middle of each language a question is nearer to another one in its own than to its translation."""
    vectors, _, meanings = town(8, 4, 2)
    assert grouped(vectors, ["en"] * len(vectors), [1] * len(vectors)).tolist() != meanings


def test_groups_do_not_depend_on_how_often_and_come_out_the_same_each_time() -> None:
    vectors, spoken, meanings = town(5, 3)
    for asked in ([1] * 15, [7, *[1] * 14]):
        assert grouped(vectors, spoken, asked).tolist() == meanings
    order = np.random.default_rng(3).permutation(15)
    moved = grouped(vectors[order], spoken, [1] * 15)
    assert len(set(zip(moved.tolist(), (meanings[n] for n in order), strict=True))) == 5
    assert moved[0] == 0  # numbered as they first appear


def test_few_questions_of_one_meaning_are_one_group_where_the_model_s_middle_is_known() -> None:
    common = compact([COMMON])[0]
    vectors, spoken, _ = town(1, 3, tongue=0.3)
    assert grouped(vectors, spoken, [1] * 3, common).tolist() == [0, 0, 0]
    two, spoken, _ = town(2, 1, tongue=0.3)
    assert grouped(two, spoken, [1, 1], common).tolist() == [0, 1]


@pytest.mark.parametrize("count", [0, 1])
def test_there_may_be_nothing_to_group(count: int) -> None:
    assert grouped(np.ones((count, 4), np.float32), ["en"] * count, [1] * count).tolist() == [0] * count


def test_vectors_that_are_all_the_same_stay_finite() -> None:
    same = np.repeat(question(0)[None], 3, axis=0)
    assert np.isfinite(centred(same, ["en"] * 3)).all()
    assert len(grouped(same, ["en"] * 3, [1] * 3)) == 3


def test_of_very_many_those_asked_most_are_linked_and_others_join_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "MOST_LINKED", 16)
    monkeypatch.setattr(grouping, "BLOCK", 3)
    vectors, spoken, meanings = town(8, 4)
    vectors = np.concatenate([vectors, question(20)[None]])  # asked once, and like nothing that was linked
    asked = [5 if n < 16 else 1 for n in range(33)]
    assert grouped(vectors, [*spoken, "en"], asked).tolist() == [*meanings, 8]
