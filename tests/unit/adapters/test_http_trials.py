"""A running system under settings of our own: our gateway over its fakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from adapters.http_site import HttpTrials
from gateway.app import create_app
from pipelines.evaluate.dataset import Case
from pipelines.runtime.errors import Retryable, WrongUse
from schemas.answer import Answered, Done, Failed, QuestionRephrased, SourcesFound, Step, TrialFindings, Usage
from schemas.query import FoundPage, Question, SearchMode, Trial
from schemas.trial import TrialSettings
from tests.asking import source
from tests.edge import ADMIN, CHAT_ANYWHERE, edge_settings
from tests.fakes.ports import FakeAnswers, FakeIntake, FakePorts

CASE = Case(id="card", question="And for adults?", lang="en", history=("What does a card cost?",), pages=("p1",))
LIBRARY = source(1, "A card costs 18 euros.").model_copy(update={"cited": True})
STEPS = [("think", "x"), ("answer", "18 characters"), ("check", "left out: 1")]
PAGES = tuple(FoundPage(page_id=f"p{number}", lang="en") for number in range(12))


def answer(question: Question) -> list[Any]:
    return [
        QuestionRephrased(question=question.question, mode="semantic"),
        SourcesFound(grade=1, sources=(LIBRARY,)),
        Answered(
            text="It costs 18 euros.",
            citations=(),
            sources=(LIBRARY,),
            extractive=True,
            trace=tuple(Step(kind="model", asked=asked, said=said, ms=1) for asked, said in STEPS),
            usage=Usage(model="m", prompt_tokens=7, completion_tokens=3),
            timings_ms={"retrieve": 12.5},
            trial=TrialFindings(became="answered", found=PAGES),
        ),
        Done(),
    ]


def town(fakes: FakePorts, home: Path, key: str = ADMIN, site: str = "town", **settings: Any) -> HttpTrials:
    made = edge_settings(home).model_copy(update=settings)
    return HttpTrials("http://gateway.test/", site, SecretStr(key), httpx.ASGITransport(create_app(made, fakes.ports)))


def fakes(script: Any = answer) -> FakePorts:
    return FakePorts(answers=FakeAnswers(script), pages=FakeIntake({}))


async def test_a_case_and_what_was_asked_before_it_are_tried_under_the_settings(tmp_path: Path) -> None:
    ports = fakes()
    async with town(ports, tmp_path, llm_model="m") as site:
        assert (await site.choices()).models == ("m",)
        seen = await site.under(TrialSettings(hits=3))(CASE)
    assert [question.trial for question in ports.answers.asked] == [Trial(hits=3)] * 2
    first, second = ports.answers.asked
    assert (first.history, second.question) == ((), "And for adults?")
    [turn] = second.history
    assert (turn.question, turn.answer, turn.pages) == (first.question, "It costs 18 euros.", ("town:en:p1",))
    assert (seen.case, seen.answer, seen.grade, seen.cited, seen.failed) == ("card", turn.answer, 1, ("p1",), None)
    assert [each.page for each in seen.found] == [f"p{number}" for number in range(10)]
    assert (seen.prompt_tokens, seen.completion_tokens) == (14, 6)
    assert seen.calls == 6  # of each question two steps (no model tells that one was left out), and the rephrasing
    assert seen.ms > 0


async def test_without_a_model_nothing_is_rephrased_by_one(tmp_path: Path) -> None:
    async with town(fakes(), tmp_path) as site:
        assert (await site.choices()).strategy == "quote"
        assert (await site.under(TrialSettings())(CASE)).calls == 4


@pytest.mark.parametrize(("mode", "asked", "calls"), [("keyword", "think", 5), ("semantic", "expand", 4)])
async def test_a_rephrasing_is_counted_once_and_where_there_was_one(
    tmp_path: Path, mode: SearchMode, asked: str, calls: int
) -> None:
    def said(question: Question) -> list[Any]:
        rephrased, found, end, done = answer(question)
        first = end.trace[0].model_copy(update={"asked": asked})
        end = end.model_copy(update={"trace": (first, *end.trace[1:])})
        return [rephrased.model_copy(update={"mode": mode}), found, end, done]

    async with town(fakes(said), tmp_path, llm_model="m") as site:
        await site.choices()
        assert (await site.under(TrialSettings())(CASE)).calls == calls


async def test_a_question_that_fails_is_kept_with_its_code(tmp_path: Path) -> None:
    async with town(fakes(lambda _: [Failed(code="model-denied", message="No.")]), tmp_path) as site:
        seen = await site.under(TrialSettings())(CASE)
    assert (seen.failed, seen.answer, seen.grade) == ("model-denied", "", None)


async def test_what_a_worker_cannot_follow_ends_the_experiment(tmp_path: Path) -> None:
    async with town(fakes(lambda _: [Failed(code="reranker-not-tried", message="none here")]), tmp_path) as site:
        with pytest.raises(WrongUse, match="reranker-not-tried: none here"):
            await site.under(TrialSettings())(CASE)


async def test_a_worker_that_tries_nothing_out_ends_it_too(tmp_path: Path) -> None:
    def as_ever(question: Question) -> list[Any]:
        said = answer(question)
        said[2] = said[2].model_copy(update={"trial": None})
        return said

    async with town(fakes(as_ever), tmp_path) as site:
        with pytest.raises(WrongUse, match="earlier version"):
            await site.under(TrialSettings())(CASE)


@pytest.mark.parametrize(
    ("where", "settings", "said"),
    [
        ({"key": CHAT_ANYWHERE}, {}, "403 forbidden"),
        ({"site": "nowhere"}, {}, "404 unknown-site"),
        ({}, {"rerank": True}, "422 invalid: rerank: no reranker is configured"),
    ],
)
async def test_who_is_refused_is_told_why(tmp_path: Path, where: Any, settings: Any, said: str) -> None:
    async with town(fakes(), tmp_path, **where) as site:
        with pytest.raises(WrongUse, match=said):
            await site.under(TrialSettings.model_validate(settings))(CASE)


async def test_an_index_that_cannot_be_looked_up_is_a_reason_to_come_back(tmp_path: Path) -> None:
    async def away(request: httpx.Request) -> httpx.Response:
        return httpx.Response(502)

    site = HttpTrials("http://x", "town", SecretStr("k"), httpx.MockTransport(away))
    async with site:
        with pytest.raises(Retryable, match="502"):
            await site.under(TrialSettings())(CASE)
