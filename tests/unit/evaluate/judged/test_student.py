"""Student's t, against the tables of every textbook."""

from __future__ import annotations

import pytest

from pipelines.evaluate.judged.student import student_t


@pytest.mark.parametrize(
    ("degrees", "sure", "expected"),
    [
        (1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.95, 3.182), (4, 0.95, 2.776), (9, 0.95, 2.262), (10, 0.95, 2.228),
        (51, 0.95, 2.008), (100, 0.95, 1.984), (1, 0.9, 6.314), (5, 0.99, 4.032), (30, 0.99, 2.750),
    ],
)  # fmt: skip
def test_as_in_the_tables(degrees: int, sure: float, expected: float) -> None:
    assert student_t(degrees, sure) == pytest.approx(expected, abs=0.0005)


def test_with_very_many_degrees_it_is_the_normal_distribution_s() -> None:
    assert student_t(20_000, 0.95) == pytest.approx(1.96, abs=0.0005)
