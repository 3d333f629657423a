"""Given: whether a visitor or a source has said the numbers with which a model calls a tool.

    "My grades are 5 and 4."   {"grades": [5, 4], "credits": [6, 3]} ─▶ ["credits"]

The visitor is asked for a number that stands nowhere, and the tool does not run with it. What the tool's schema gives,
a default or a constant, a visitor need not say. Words are not compared: a model may translate them, or choose one of
those that a tool allows, with numbers in them or not ("48h-ticket"). A number is chosen by the visitor alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from pipelines.query.answer.tools.argument_schema import ArgumentSchema, Schema
from text.figures import figures
from text.measures import measures
from text.words import words

_NUMBER = re.compile(r"\d{1,40}(?:[.,]\d{1,40})?")
_DIGITS = re.compile(r"\d{1,40}")
_PERCENT = re.compile(
    r"(\d{1,40}(?:[.,]\d{1,40})?) ?(?:%|٪|per ?cent|prozent|procent|pour ?cent|por ?cient)", re.IGNORECASE
)
_CALENDAR = re.compile(  # reckoned from "tomorrow"
    r"\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?)?"
    r"|\d{1,2}:\d{2}(?::\d{2})?"
)


def unsaid(arguments: Mapping[str, Any], schema: Schema, texts: Iterable[str], langs: Iterable[str]) -> list[str]:
    """Names of the arguments with a number that neither one of the texts nor the schema has.

    Args:
        arguments: as JSON has them.
        schema: JSON schema of all of them.
        langs: in which the texts may spell a number.
    """
    wanted = {name: set(_numbers(value, ArgumentSchema.of(schema, name))) for name, value in arguments.items()}
    if not any(wanted.values()):
        return []
    known = _said(texts, tuple(dict.fromkeys(langs)))
    return [name for name, numbers in wanted.items() if not numbers <= known]


def _numbers(value: Any, schema: ArgumentSchema) -> Iterator[Fraction]:
    """All numbers in a JSON value, but those of dates and times, and those that the schema gives."""
    left = [(value, schema)]
    while left:
        value, schema = left.pop()
        if any(_same(value, each) for each in schema.given):
            continue
        match value:
            case bool():
                pass
            case int() as number:
                yield Fraction(abs(number))
            case float() as number if math.isfinite(number):
                yield abs(Fraction(str(number)))
            case str() as text if _NUMBER.fullmatch(text) or not (_CALENDAR.fullmatch(text) or text in schema.choices):
                yield from _read_all(_NUMBER, text)
            case list() as values:
                items = schema.items
                left.extend((each, items) for each in values)
            case dict() as values:
                left.extend((each, schema.member(name)) for name, each in values.items())


def _same(value: Any, given: Any) -> bool:
    """Models write 2 as "2", too."""
    return bool(value == given) or (isinstance(value, str) and isinstance(given, int | float) and value == str(given))


def _said(texts: Iterable[str], langs: tuple[str, ...]) -> set[Fraction]:
    known: set[Fraction] = set()
    for text in texts:
        for figure in figures(text, langs):
            known |= figure.numbers
        # "5,4" may be two grades as well as one.
        known |= _read_all(_NUMBER, text) | _read_all(_DIGITS, text)
        known |= {percent / 100 for percent in _read_all(_PERCENT, text)}
        for lang in langs:
            spelled = measures(lang).numbers
            known.update(Fraction(spelled[word]) for word in words(text) if word in spelled)
    return known


def _read_all(pattern: re.Pattern[str], text: str) -> set[Fraction]:
    """The numbers in a text, each written form read once."""
    return {Fraction(written.replace(",", ".")) for written in set(pattern.findall(text))}
