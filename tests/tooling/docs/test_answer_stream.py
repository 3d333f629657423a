"""The page about the answer stream explains every event, every field, and shows events as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import TypeAdapter

from gateway.chat.sse import LEFT_OUT
from schemas.answer import Event
from schemas.query import Source

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "answer-stream.md").read_text(encoding="utf-8")
KINDS = {kind.model_fields["type"].default: kind for kind in get_args(get_args(Event)[0])}
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))


@pytest.mark.parametrize("name", KINDS)
def test_an_event_is_explained_with_all_of_its_fields(name: str) -> None:
    fields = set(KINDS[name].model_fields) - LEFT_OUT
    assert fields <= set(re.findall(r"`(\w+)`", SECTIONS[name]))


@pytest.mark.parametrize("name", KINDS)
def test_the_example_is_such_an_event_with_all_of_its_fields(name: str) -> None:
    [example] = re.findall(r"^```json\n(.*?)^```", SECTIONS[name], re.M | re.S)
    given = json.loads(example)
    TypeAdapter(Event).validate_python({"type": name, **given})
    always = {field for field, about in KINDS[name].model_fields.items() if about.exclude_if is None}
    assert set(given) == always - LEFT_OUT


def test_sources_are_explained_field_by_field() -> None:
    assert set(Source.model_fields) <= set(re.findall(r"`(\w+)`", SECTIONS["sources"]))
