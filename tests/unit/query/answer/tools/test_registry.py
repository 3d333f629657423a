"""A tool is a typed function: the model is told its signature, and what it writes is checked against it."""

from __future__ import annotations

from datetime import date
from enum import IntEnum
from typing import Annotated, Literal

import pytest
from pydantic import AliasChoices, Field

from pipelines.query.answer.tools.registry import BadCall, MissingSlots, Said, Tool, Tools
from prompts.loader import ToolCall
from tests.asking import source


async def book(
    room: Annotated[Literal["hall", "garden"], Field(description="Which room.")],
    day: Annotated[date, Field(description="When, YYYY-MM-DD.")],
    guests: int = 10,
) -> str:
    """Books a room
    for a day."""
    if guests > 100:
        raise ValueError("at most 100 guests")
    return f"{room} {day:%d.%m.} {guests}"


async def test_the_schema_comes_from_signature_and_docstring() -> None:
    spec = Tool.of(book).spec
    assert (spec.name, spec.description) == ("book", "Books a room for a day.")
    assert spec.parameters["required"] == ["room", "day"]
    assert spec.parameters["properties"]["room"] == {
        "description": "Which room.",
        "enum": ["hall", "garden"],
        "title": "Room",
        "type": "string",
    }
    assert spec.parameters["properties"]["guests"]["default"] == 10


async def test_arguments_are_checked_and_converted() -> None:
    said = await Tools([book]).call(
        ToolCall("book", '{"room": "hall", "day": "2026-05-04", "guests": "12", "colour": "red"}')
    )
    assert said == Said("hall 04.05. 12")


@pytest.mark.parametrize("empty", ["{}", "", '{"room": null, "day": ""}'])
async def test_what_nobody_gave_is_asked_for_in_words(empty: str) -> None:
    with pytest.raises(MissingSlots) as caught:
        await Tools([book]).call(ToolCall("book", empty))
    assert caught.value.slots == ["room (Which room.; one of: hall, garden)", "day (When, YYYY-MM-DD.)"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"room": "cellar", "day": "2026-05-04"}', "room: Input should be 'hall' or 'garden'"),
        ('{"room": "hall", "day": "2026-05-04", "guests": 500}', "at most 100 guests"),
        ("room=hall", "not JSON"),
        ('"hall"', "must be a JSON object"),
        ("[" * 5_000, "not JSON"),  # deeper than Python reads
        ('{"room": "\\ud800"}', "not JSON"),  # half a character
        ('{"room": "\ud800"}', "not JSON"),
        ("9" * 5_000, "not JSON"),  # a longer number than Python reads
        (f'{{"room": "{"x" * 9_000}"}}', "longer than 8000 characters"),
    ],
)
async def test_wrong_arguments_are_explained(arguments: str, complaint: str) -> None:
    with pytest.raises(BadCall, match=f"book: .*{complaint}"):
        await Tools([book]).call(ToolCall("book", arguments))


async def test_a_tool_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(BadCall, match="no tool 'fly'; there are: book"):
        await Tools([book]).call(ToolCall("fly", "{}"))


async def test_a_tool_may_bring_sources() -> None:
    async def page() -> Said:
        """Reads."""
        return Said("here", (source(1, "Text."),))

    assert (await Tools([page]).call(ToolCall("page", "{}"))).sources[0].text == "Text."


def test_what_cannot_be_told_to_a_model_is_no_tool() -> None:
    async def silent(a: int) -> str:
        return str(a)

    async def untyped(a) -> str:  # type: ignore[no-untyped-def]
        """Says something."""
        return str(a)

    with pytest.raises(TypeError, match="silent: no docstring"):
        Tool.of(silent)
    with pytest.raises(TypeError, match="argument a has no type"):
        Tool.of(untyped)


def average(grades: list[float], credits: Annotated[list[float], Field(description="Of each course.")]) -> str:
    """Works out an average
    of grades.

    It is weighted.

    Args:
        grades: One of each
            course.
        credits: Not read: the type says it.
    """
    return ""


def test_the_docstring_describes_the_arguments() -> None:
    tool = Tool.of(average)  # type: ignore[arg-type]
    assert tool.description == "Works out an average of grades. It is weighted."
    properties = tool.spec.parameters["properties"]
    assert properties["grades"]["description"] == "One of each course."
    assert properties["credits"]["description"] == "Of each course."
    assert tool.in_words(["grades"]) == ["grades (One of each course.)"]
    assert tool.missing({"grades"}) == ["credits"]


async def test_an_alias_is_the_name_for_the_model_and_the_own_one_for_the_function() -> None:
    async def fee(
        service: Annotated[str, Field(alias="class", description="What is paid for.")],
        persons: Annotated[int, Field(alias="person-count", default=1)],
        day: int = Field(alias="on", default=7),
        note: Annotated[str | None, Field(validation_alias="n")] = None,
    ) -> str:
        """Says a fee.

        Args:
            service: Not read: the type says it.
            persons: How many pay.
        """
        return f"{service} {persons} {day} {note}"

    tool = Tool.of(fee)
    properties = tool.spec.parameters["properties"]
    assert list(properties) == ["class", "person-count", "on", "n"]
    assert properties["class"]["description"] == "What is paid for."
    assert properties["person-count"] == {
        "default": 1, "description": "How many pay.", "title": "Person-Count", "type": "integer"
    }  # fmt: skip
    assert tool.spec.parameters["required"] == ["class"]
    assert tool.missing(()) == ["class"]
    assert tool.in_words(["class"]) == ["class (What is paid for.)"]
    assert tool.read('{"class": "dog", "service": "cat", "n": ""}') == {"class": "dog"}
    assert (await tool.call({"class": "dog", "person-count": "2", "n": "x"})).text == "dog 2 7 x"
    assert (await tool.call({"class": "dog"})).text == "dog 1 7 None"
    with pytest.raises(MissingSlots, match="class"):
        await tool.call({"service": "dog"})
    with pytest.raises(BadCall, match="fee: person-count: Input should be"):
        await tool.call({"class": "dog", "person-count": "two"})


def test_an_alias_that_no_model_could_write_is_refused() -> None:
    async def two(a: Annotated[int, Field(alias="b")], b: int) -> str:
        """Has one name twice."""
        return ""

    async def several(a: Annotated[int, Field(validation_alias=AliasChoices("x", "y"))]) -> str:
        """Has several names."""
        return ""

    with pytest.raises(TypeError, match="tool two: two arguments are called b"):
        Tool.of(two)
    with pytest.raises(TypeError, match="argument a has an alias that is no name"):
        Tool.of(several)


class Zone(IntEnum):
    INNER = 1
    OUTER = 2


def test_a_visitor_is_asked_with_the_choices() -> None:
    async def ticket(zone: Zone, area: Literal[1, 2] | None, number: Literal[tuple(range(40))]) -> str:  # type: ignore[valid-type]
        """Says a price."""
        return ""

    zone, area, number = Tool.of(ticket).in_words(["zone", "area", "number"])
    assert (zone, area) == ("zone (one of: 1, 2)", "area (one of: 1, 2)")
    assert number.endswith("18, 19, …)")


def test_arguments_without_a_name_or_a_schema_are_refused() -> None:
    async def spread(*values: int) -> str:
        """Takes what comes."""
        return ""

    async def odd(value: object) -> str:
        """Takes what no JSON has."""
        return ""

    odd.__annotations__["value"] = range
    for function in (spread, odd):
        with pytest.raises(TypeError, match=function.__name__):
            Tool.of(function)
