"""A university's calculators, which students ask for by chat. Grades are 1 (failed) to 5, as in Hungary.

Nothing of Pagewire is imported: a tool is a function with types and a docstring, which a model reads.
"""

from __future__ import annotations

CREDITS_OF_A_SEMESTER = 30


def weighted_average(grades: list[float], credits: list[float]) -> str:
    """Works out a student's weighted grade average: the mean of the grades of the completed courses, each as often as
    its course has credits.

    Args:
        grades: The grade of each completed course, 2 to 5.
        credits: The credits of each of these courses, in the same order.
    """
    _check(grades, credits)
    total = sum(credits)
    return f"Weighted grade average: {_points(grades, credits) / total:.2f} ({total:g} credits)"


def credit_index(grades: list[float], credits: list[float], enrolled_credits: float | None = None) -> str:
    """Works out a student's credit index of one semester: grades times credits of the completed courses, divided by 30;
    and the corrected credit index, where the credits of all courses enrolled for are known.

    Args:
        grades: The grade of each completed course, 2 to 5.
        credits: The credits of each of these courses, in the same order.
        enrolled_credits: The credits of all courses that the student enrolled for in the semester.
    """
    _check(grades, credits)
    index = _points(grades, credits) / CREDITS_OF_A_SEMESTER
    said = f"Credit index: {index:.2f}"
    if enrolled_credits is None:
        return said
    if enrolled_credits < sum(credits):
        raise ValueError("nobody completes more credits than they enrolled for")
    return f"{said}; corrected credit index: {index * sum(credits) / enrolled_credits:.2f}"


def _points(grades: list[float], credits: list[float]) -> float:
    return sum(grade * credit for grade, credit in zip(grades, credits, strict=True))


def _check(grades: list[float], credits: list[float]) -> None:
    if not grades or len(grades) != len(credits):
        raise ValueError(f"there are {len(grades)} grades and {len(credits)} credits: each course needs both")
    if not all(2 <= grade <= 5 for grade in grades):
        raise ValueError("the grade of a completed course is 2, 3, 4 or 5")
    if not all(0 < credit <= 60 for credit in credits):
        raise ValueError("a course has more than 0 and at most 60 credits")
