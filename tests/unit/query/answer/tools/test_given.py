"""A tool runs with numbers that the visitor or a source has said, and with no other."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.query.answer.tools.given import unsaid


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "I have a 5"),
        ([5, 4, 2.5], "My grades are 5,4 and 2,5."),
        (1500, "about 1.500 euros"),
        (20, "twenty credits"),
        (2, "two courses"),
        (0.2, "I get 20 % off"),
        ([{"grade": 4, "credits": 6}], "a 4 in physics (6 credits)"),
        ("A-77", "my number is A 77"),
        ("2026-05-06", "the day after tomorrow"),
        ("14:00:00", "at two"),
        ("2026-05-06T14:00:00+02:00", "tomorrow at two"),
        (True, "yes"),
        ("physics", "anything"),
        (-3, "minus 3 degrees"),
        (3, "٣ courses"),
    ],
)
def test_what_was_said_may_be_used(value: Any, text: str) -> None:
    assert unsaid({"value": value}, [text], ("en",)) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "I have good grades"),
        ([5, 3], "I have a 5"),
        ([{"grade": 4, "credits": 5}], "a 4 in physics"),
        ("A-77", "my number is A 78"),
        (15, "150 euros"),
        (3, "300 euros"),
        ("2024-01-05 9999999", "tomorrow"),
        (1e308, "much"),
        (10**400, "very much"),
    ],
)
def test_what_nobody_said_is_named(value: Any, text: str) -> None:
    assert unsaid({"said": text, "value": value}, [text], ("en",)) == ["value"]


def test_numbers_are_spelled_in_the_languages_of_the_texts() -> None:
    assert unsaid({"n": 2}, ["zwei Kurse"], ("de", "en")) == []
    assert unsaid({"n": 2}, ["zwei Kurse"], ("en",)) == ["n"]


def test_what_is_no_number_claims_nothing() -> None:
    assert unsaid({"n": float("nan"), "m": float("inf"), "o": None}, [], ("en",)) == []
