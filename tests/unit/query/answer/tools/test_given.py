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
    assert unsaid({"value": value}, {}, [text], ("en",)) == []


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
    assert unsaid({"said": text, "value": value}, {}, [text], ("en",)) == ["value"]


def test_numbers_are_spelled_in_the_languages_of_the_texts() -> None:
    assert unsaid({"n": 2}, {}, ["zwei Kurse"], ("de", "en")) == []
    assert unsaid({"n": 2}, {}, ["zwei Kurse"], ("en",)) == ["n"]


def test_what_is_no_number_claims_nothing() -> None:
    assert unsaid({"n": float("nan"), "m": float("inf"), "o": None}, {}, [], ("en",)) == []


def schema(**properties: Any) -> dict[str, Any]:
    zone = {"enum": [1, 2], "type": "integer"}
    course = {"type": "object", "properties": {"credits": {"default": 5}, "grade": {"type": "integer"}}}
    return {"type": "object", "properties": properties, "$defs": {"Zone": zone, "Course": course}}


ZONE = {"$ref": "#/$defs/Zone"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (2, {"type": "integer", "default": 2}),
        ("2", {"type": "integer", "default": 2}),
        ([1, 2], {"default": [1, 2]}),
        (3, {"const": 3}),
        (3, {"anyOf": [{"const": 3}, {"type": "null"}], "default": None}),
        (1, ZONE | {"default": 1}),
        ("v1", {"enum": ["v1", None]}),
        ("48h-ticket", {"enum": ["48h-ticket", "day-ticket"]}),
        (["48h-ticket"], {"items": {"enum": ["48h-ticket", "day-ticket"]}}),
        ([{"credits": 5}, {"credits": 5}], {"items": {"$ref": "#/$defs/Course"}}),
        ({"size": {"m": 2}}, {"properties": {"size": {"allOf": [{"properties": {"m": {"default": 2}}}]}}}),
    ],
)
def test_what_the_schema_gives_nobody_has_to_say(value: Any, said: dict[str, Any]) -> None:
    assert unsaid({"n": value}, schema(n=said, m={"default": value}), ["anything"], ("en",)) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, {"type": "integer", "default": 2}),
        (2, ZONE | {"default": 1}),
        (1, {"enum": [1, 2]}),
        (1, {"anyOf": [{"const": 1}, {"const": 2}]}),
        (1, {"anyOf": [{"const": 1}, {"type": "integer"}]}),
        ("2", {"enum": ["1", "2"]}),
        ("49h-ticket", {"enum": ["48h-ticket", "day-ticket"]}),
        ([{"credits": 5, "grade": 4}], {"items": {"$ref": "#/$defs/Course"}}),
        (1, {"$ref": "#/$defs/None"}),
    ],
)
def test_what_the_schema_leaves_open_the_visitor_says(value: Any, said: dict[str, Any]) -> None:
    assert unsaid({"n": value}, schema(n=said), ["anything"], ("en",)) == ["n"]


@pytest.mark.parametrize(
    "junk",
    [None, [], "x", {"enum": 3}, {"anyOf": [None, 3]}, {"items": []}, {"properties": 3}, {"$ref": "#/$defs/Round"}],
)
def test_a_schema_of_any_quality_is_read(junk: Any) -> None:
    round_trip = {"anyOf": [{"$ref": "#/$defs/Round"}, {"$ref": "#/$defs/Round"}]}
    bad = {"properties": {"n": junk}, "$defs": {"Round": round_trip}}
    assert unsaid({"n": [{"a": 7}]}, bad, [], ("en",)) == ["n"]
