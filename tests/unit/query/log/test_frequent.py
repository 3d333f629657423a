"""Which questions of others a visitor sees."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from pipelines.query.log import frequent as module
from pipelines.query.log.frequent import (
    AnsweredQuestion,
    FrequentQuestions,
    beginning,
    following,
    frequent,
)
from pipelines.query.log.readable import PageName
from pipelines.runtime.errors import Retryable
from tests.edge import until

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
POOL, LIBRARY = ("pool", "en"), ("library", "en")


def asked(question: str = "When does the pool open?", asker: str = "a", **more: Any) -> AnsweredQuestion:
    values = {"lang": "en", "pages": frozenset((POOL,)), "restricted": False, "doubtful": False}
    return AnsweredQuestion(question=question, asker=asker, **(values | more))


def of_three(question: str = "When does the pool open?", **more: Any) -> list[AnsweredQuestion]:
    return [asked(question, asker, **more) for asker in "abc"]


def questions(answered: Iterable[AnsweredQuestion], least: int = 3) -> list[str]:
    return [one.question for one in frequent(answered, least)]


def test_a_question_of_enough_visitors_however_they_write_it() -> None:
    written = [asked("when does the POOL open", "a"), asked(asker="b"), asked(asker="c")]
    assert questions(written) == ["When does the pool open?"]
    assert questions(written[:2]) == []


def test_one_visitor_counts_once() -> None:
    assert questions([asked(asker="a") for _ in range(9)]) == []


def test_one_visitor_who_repeats_it_does_not_choose_how_it_is_shown() -> None:
    drawn = [asked("When does the pool open? (╯°□°)╯", "d", lang="fr")] * 9
    [shown] = frequent([*drawn, *of_three()], 3)
    assert (shown.question, shown.lang, shown.askers) == ("When does the pool open?", "en", 4)


@pytest.mark.parametrize(
    "more",
    [
        {"asker": ""},  # a program, or it was asked before the site showed any
        {"restricted": True},
        {"restricted": None},
        {"doubtful": True},
        {"question": "Is [e-mail] yours?"},
        {"question": "Call [phone]?"},
        {"question": f"Is it {'very ' * 40} late?"},
        {"question": "?!"},
        {"question": "Is it on https://buy.example/now?"},
        {"question": "is buy-now.com any good?"},
    ],
)
def test_what_is_shown_to_nobody(more: dict[str, Any]) -> None:
    known = {"question": "When does the pool open?", **more}
    asker = known.pop("asker", None)
    assert questions(asked(asker=asker if asker is not None else each, **known) for each in "abc") == []


def test_the_most_frequent_come_first() -> None:
    found = [*of_three("Rare?"), *of_three("Often?"), asked("Often?", "d")]
    assert questions(found) == ["Often?", "Rare?"]


def test_those_that_have_the_typed_words_in_the_language_of_the_page() -> None:
    known = frequent([*of_three(), *of_three("Wann ist der Pool offen?", lang="de"), *of_three("Fees?")], 3)
    assert beginning(known, "pool", None, 5) == ["Wann ist der Pool offen?", "When does the pool open?"]
    assert beginning(known, "the po", "en", 5) == ["When does the pool open?"]
    assert beginning(known, "poo the", "en", 5) == []
    assert beginning(known, "pool", "de-AT", 5) == ["Wann ist der Pool offen?"]
    assert beginning(known, "?", None, 5) == []
    assert len(beginning(known, "pool", None, 1)) == 1


def test_what_comes_next_was_answered_from_the_same_pages_the_first_page_first() -> None:
    library = {"pages": frozenset((LIBRARY,))}
    known = frequent(
        [*of_three(), *of_three("Pool fees?"), *of_three("Card?", **library), *of_three("X?", lang="de")], 3
    )
    assert following(known, "when does the pool OPEN", ["library", "pool"], "en", 3) == ["Card?", "Pool fees?"]
    assert following(known, "Else?", ["pool"], "en", 1) == ["Pool fees?"]
    assert following(known, "Else?", ["elsewhere"], "en", 3) == []


class Log:
    def __init__(self, answered: Sequence[AnsweredQuestion]) -> None:
        self.answers = answered
        self.reads = 0
        self.down: Exception | None = None
        self.open_to_all: frozenset[PageName] = frozenset((POOL,))

    async def answered(self, site: str, since: datetime, most: int) -> Sequence[AnsweredQuestion]:
        self.reads += 1
        if self.down:
            raise self.down
        return self.answers

    async def readable(self, site: str, page_ids: Collection[str], groups: Iterable[str]) -> frozenset[PageName]:
        assert not list(groups)
        return self.open_to_all


def kept(log: Log) -> FrequentQuestions:
    return FrequentQuestions(log, log.readable, {"town": 3}, lambda: NOON)


async def shown(made: FrequentQuestions, log: Log) -> list[str]:
    reads = log.reads
    made.of("town")
    await until(lambda: log.reads > reads)
    await asyncio.sleep(0)
    await until(lambda: made._kept["town"].task is None)
    return [one.question for one in made.of("town")]


async def test_they_are_read_beside_the_requests_and_kept() -> None:
    log = Log(of_three())
    made = kept(log)
    assert made.of("town") == ()
    assert await shown(made, log) == ["When does the pool open?"]
    made.of("town")
    assert log.reads == 1
    await made.aclose()


async def test_a_site_that_shows_none_is_not_read() -> None:
    log = Log(of_three())
    made = kept(log)
    assert not made.shown("other")
    assert made.of("other") == ()
    assert log.reads == 0


async def test_a_page_that_is_gone_or_no_longer_for_everybody_takes_its_questions_along() -> None:
    log = Log([*of_three(), *of_three("Card?", pages=frozenset((LIBRARY,)))])
    made = kept(log)
    assert await shown(made, log) == ["When does the pool open?"]
    await made.aclose()


@pytest.mark.parametrize("error", [Retryable("away"), ValueError("a fault of ours")])
async def test_a_log_that_cannot_be_read_is_read_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    monkeypatch.setattr(module, "RETRY", 0.0)
    log = Log(of_three())
    log.down = error
    made = kept(log)
    assert await shown(made, log) == []
    await until(lambda: made._kept["town"].task is None)
    log.down = None
    assert await shown(made, log) == ["When does the pool open?"]
    await made.aclose()
    gc.collect()
    assert "never retrieved" not in caplog.text
