"""No regular expression of ours takes more than time that grows with the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from starlette.datastructures import FormData

from connectors.cms.page_fields import title_in
from gateway.console.playground import _columns
from pipelines.evaluate import wording
from pipelines.query.answer import amounts, cite, claims
from pipelines.query.answer.grounding import Grounds
from pipelines.query.extractive import day_words, days
from pipelines.query.translate import protected
from schemas.query import Source
from tests.hostile import patterns
from tests.hostile.clock import quiet_seconds, seconds
from tests.hostile.patterns import Found, Made, attacks
from text import figures, units
from text.measures import measures

SIZE = 1_000  # characters
LONGER = 8  # times as many, for what is worth a second look
LIMIT = 0.005  # seconds, of any text
LOOKED_AT = 0.0001  # from here on it is measured how the time grows: what takes the square takes more
GROWTH = 2.5  # times what it would be if it grew with the text; the square is `LONGER`
STEPS = (
    1,
    2,
    3,
    4,
    6,
    8,
    10,
    12,
    14,
    16,
    18,
    20,
    22,
    24,
    27,
    30,
    35,
    40,
    60,
    90,
    135,
    400,
)  # times a unit is said: what doubles with each shows early

SOURCE = Source(n=1, page_id="a", lang="en", title="", url="", field="content", ord=0, text="B12", score=1, revision=1)


@dataclass(frozen=True)
class Maker:
    """What makes patterns of what it is given: a call in which it does, and how they are used."""

    call: Callable[[], object]
    use: str = "search"


def _of_days(made: Any, *names: str) -> Callable[[], object]:
    return lambda: made.__wrapped__(*(tuple(getattr(day_words.day_words("de"), name)) for name in names))


def _title() -> object:
    return title_in("<head><title>Pool | Town</title><meta property='og:site_name' content='Town'></head>")


# A new one belongs here.
MADE: Mapping[Made, Maker] = {
    Made("connectors.cms.page_fields", "_cut"): Maker(_title),
    Made("gateway.console.playground", "_columns"): Maker(lambda: _columns(FormData({"columns": "2"})), "fullmatch"),
    Made("pipelines.evaluate.wording", "tokens"): Maker(lambda: wording.tokens("The pool is open.", "en")),
    Made("pipelines.query.answer.amounts", "_pattern"): Maker(
        lambda: [
            amounts._pattern.__wrapped__(name, ("de", "en", "fr"))
            for name in ("free", "free-perhaps", "one", "units", "and-half", "past-more")
        ]
    ),
    Made("pipelines.query.answer.cite", "_mark"): Maker(lambda: re.compile(cite._ONE)),
    Made("pipelines.query.answer.claims", "_inside_words"): Maker(
        lambda: claims._inside_words.__wrapped__(("de", "en", "fr"))
    ),
    Made("pipelines.query.extractive.day_words", "_any_of"): Maker(
        lambda: day_words._any_of.__wrapped__(("mo", "di", "mi"), True)
    ),
    Made("pipelines.query.extractive.days", "_before_of"): Maker(
        lambda: days._before_of.__wrapped__(frozenset({"bis", "bis zum"}), ("montag", "dienstag"), True)
    ),
    Made("pipelines.query.extractive.days", "_dated_of"): Maker(_of_days(days._dated_of, "weekdays", "months")),
    Made("pipelines.query.extractive.days", "_gap_of"): Maker(
        lambda: days._gap_of.__wrapped__(frozenset({"bis", "bis zum"}), ("montag", "dienstag")), "fullmatch"
    ),
    Made("pipelines.query.extractive.days", "_joined_of"): Maker(_of_days(days._joined_of, "ordinals"), "match"),
    Made("pipelines.query.extractive.days", "_ordinals"): Maker(_of_days(days._ordinals, "ordinals", "weekdays")),
    Made("pipelines.query.extractive.days", "_through_of"): Maker(_of_days(days._through_of, "ordinals"), "fullmatch"),
    Made("pipelines.query.extractive.days", "_written"): Maker(_of_days(days._written, "months", "ordinals")),
    Made("pipelines.query.answer.other_names", "unknown_code"): Maker(
        lambda: Grounds([SOURCE], "", "en").doubt("Bus B12.", [1])
    ),
    Made("pipelines.query.translate", "protected"): Maker(lambda: protected("a", {"a b": {}, "c": {}}, "de")),
    Made("text.figures", "_date_pattern"): Maker(
        lambda: figures._date_pattern.__wrapped__(tuple(measures("de").months))
    ),
    Made("text.units", "_days_pattern"): Maker(lambda: units._days_pattern.__wrapped__("de")),
    Made("text.units", "_openers"): Maker(units._openers.__wrapped__, "match"),
}


def test_every_pattern_that_is_made_in_a_function_is_known() -> None:
    assert patterns.made() == set(MADE)


def test_patterns_take_time_that_grows_with_the_text() -> None:
    slow = [slowest for found in (*patterns.written(), *_made()) for slowest in _slow(found)]
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize(
    "hurt",
    [
        r"\s+$",  # the square of a run of blanks
        r"(?:\d+ ?)+x",  # doubles with each digit
        r"<a[^>]*>",  # the square of tags that nothing closes
        r"(?<![\w.,])(?:\+\s?)?\(?\d[\d()/–-]*(?:[ ]?[\d()/–-]+){1,8}(?!\w)",  # telephone numbers, until 0.2
    ],
)
def test_patterns_that_hurt_fail(hurt: str) -> None:
    assert list(_slow(Found("hurt", re.compile(hurt))))


def _made() -> Iterator[Found]:
    for made, maker in MADE.items():
        with patch.object(re, "_compile", wraps=re._compile) as compiled:  # type: ignore[attr-defined]
            maker.call()
        for each in {re.compile(*called.args) for called in compiled.call_args_list}:
            yield Found(f"{made.module}.{made.function}", each, (maker.use,))


def _slow(found: Found) -> Iterator[str]:
    """What it takes too long for, the first of each use."""
    for use in found.uses:
        for begin, unit, end in attacks(found.pattern):
            if complaint := _complaint(found.pattern, use, begin, unit, end):
                yield f"{found.name}.{use}: {begin!r} + {unit!r} * n + {end!r}: {complaint}"
                break


def _complaint(pattern: re.Pattern[str], use: str, begin: str, unit: str, end: str) -> str | None:
    most = max(SIZE // len(unit), 1)
    for times in (*(step for step in STEPS if step < most), most):
        call = partial(_used, pattern, use, f"{begin}{unit * times}{end}")
        taken = seconds(call)
        if taken > LIMIT and (taken := quiet_seconds(call, LIMIT)) > LIMIT:
            return f"{taken:.3f} s for {len(unit) * times} characters"
    if taken < LOOKED_AT:
        return None
    longer = partial(_used, pattern, use, f"{begin}{unit * (LONGER * most)}{end}")
    for _ in range(4):
        growth = seconds(longer) / min(seconds(call), seconds(call))
        if growth <= GROWTH * LONGER:
            return None
    return f"{growth:.0f} times as long for {LONGER} times the characters"


def _used(pattern: re.Pattern[str], use: str, text: str) -> None:
    if use == "search":
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, use)(text)
