"""A running system as evaluations ask it: our own gateway over its fakes, and gateways in trouble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from adapters.http_gateway import RETRY_FOR
from adapters.http_site import HITS, HttpSite
from gateway.app import create_app
from pipelines.evaluate.dataset import Case
from pipelines.evaluate.measures import measured
from pipelines.runtime.errors import Permanent, Retryable, WrongUse
from schemas.answer import Answered, Done, Failed, QuestionRephrased, SourcesFound, Usage
from schemas.query import RANKING, FoundPage, Question
from tests.asking import source
from tests.edge import ADMIN, CHAT_ANYWHERE, bearer, edge_settings
from tests.fakes.ports import FakeAnswers, FakeIntake, FakePorts

CASE = Case(id="card", question="And for adults?", lang="en", history=("What does a card cost?",), pages=("p1",))
LIBRARY = source(1, "A card costs 18 euros. " * 300).model_copy(update={"cited": True})


def answer(question: Question) -> list[Any]:
    return [
        QuestionRephrased(question=f"{question.question} (a card)", mode="semantic"),
        SourcesFound(grade=1, sources=(LIBRARY,)),
        Answered(
            text="It costs 18 euros.",
            citations=(),
            sources=(LIBRARY,),
            extractive=True,
            found=(FoundPage(page_id="p9", lang="en"), FoundPage(page_id="p1", lang="en")) if question.ranked else (),
            usage=Usage(model="m", prompt_tokens=7, completion_tokens=3),
            timings_ms={"retrieve": 12.5} | ({RANKING: 0.001} if question.ranked else {}),
        ),
        Done(),
    ]


def town(fakes: FakePorts, home: Path, key: str = ADMIN, site: str = "town") -> HttpSite:
    transport = httpx.ASGITransport(create_app(edge_settings(home), fakes.ports))
    return HttpSite("http://gateway.test/", site, SecretStr(key), transport)


def fakes(script: Any = answer) -> FakePorts:
    return FakePorts(answers=FakeAnswers(script), pages=FakeIntake({}))


async def test_a_case_is_asked_after_what_was_asked_before_and_its_conversation_is_deleted(tmp_path: Path) -> None:
    ports = fakes()
    async with town(ports, tmp_path) as site:
        seen = await site.ask(CASE)
    assert (seen.case, seen.answer, seen.grade, seen.failed) == ("card", "It costs 18 euros.", 1, None)
    assert seen.cited == ("p1",)
    assert [each.text for each in seen.sources] == [LIBRARY.text]
    assert (seen.prompt_tokens, seen.completion_tokens, seen.timings_ms) == (7, 3, {"retrieve": 12.5})
    assert [each.page for each in seen.found] == ["p9", "p1"]
    assert seen.ms > 0
    assert measured(CASE.model_copy(update={"expect": "answer"}), seen)["citation recall"] == 1
    first, second = ports.answers.asked
    assert (first.question, second.question) == ("What does a card cost?", "And for adults?")
    assert first.conversation_id == second.conversation_id
    assert second.history[0].answer == "It costs 18 euros."
    assert (first.ranked, second.ranked) == (0, HITS)
    async with town(ports, tmp_path) as site:
        gone = await site._client.get(f"/conversations/{second.conversation_id}")
    assert gone.status_code == 404


async def test_a_case_without_others_before_it_is_kept_nowhere_and_its_pages_come_with_the_answer(
    tmp_path: Path,
) -> None:
    ports = fakes()
    async with town(ports, tmp_path) as site:
        seen = await site.ask(CASE.model_copy(update={"history": ()}))
    [asked] = ports.answers.asked
    assert (asked.logged_as, asked.ranked) == (None, HITS)
    assert not ports.conversations.kept
    assert [each.page for each in seen.found] == ["p9", "p1"]


async def test_a_worker_that_ranks_no_pages_is_told_of(tmp_path: Path) -> None:
    older = fakes(lambda question: answer(question.model_copy(update={"ranked": 0})))
    async with town(older, tmp_path) as site:
        with pytest.raises(WrongUse, match="earlier version"):
            await site.ask(CASE)


async def test_an_answer_that_failed_is_an_observation(tmp_path: Path) -> None:
    ports = fakes(lambda _: [Failed(code="model-away", message="Sorry."), Done()])
    async with town(ports, tmp_path) as site:
        seen = await site.ask(CASE)
    assert seen.failed == "model-away"
    assert (seen.answer, seen.grade, seen.refused) == ("", None, True)


@pytest.mark.parametrize(("key", "site", "said"), [("wrong", "town", "401"), (ADMIN, "nowhere", "404")])
async def test_who_is_refused_is_told(tmp_path: Path, key: str, site: str, said: str) -> None:
    async with town(fakes(), tmp_path, key, site) as asked:
        with pytest.raises(WrongUse, match=said):
            await asked.ask(CASE)


class Flaky:
    """Answers as told, then as the last was; counts what it was asked, and how long its asker paused."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.paused = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        told = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(told, Exception):
            raise told
        return told

    async def pause(self, seconds: float) -> None:
        self.paused += seconds

    def site(self) -> HttpSite:
        return HttpSite("http://x", "town", SecretStr("k"), httpx.MockTransport(self), self.pause)


async def test_a_system_that_is_started_again_is_waited_for() -> None:
    away, busy, late = httpx.ConnectError("refused"), httpx.Response(429), httpx.Response(504, json={"code": "timeout"})
    gateway = Flaky(away, httpx.Response(503), busy, late)
    async with gateway.site() as site:
        assert (await site.ask(CASE)).failed == "timeout"
    assert gateway.asked == 4
    assert 0 < gateway.paused < RETRY_FOR


async def test_one_that_stays_away_ends_the_run() -> None:
    gateway = Flaky(httpx.ConnectError("refused"))
    async with gateway.site() as site:
        with pytest.raises(Retryable, match=r"ConnectError refused; the same command goes on"):
            await site.ask(CASE)
    assert gateway.paused >= RETRY_FOR


async def test_something_else_behind_the_address_is_told_plainly() -> None:
    async with Flaky(httpx.Response(200, text="<html>hello")).site() as site:
        with pytest.raises(Permanent, match="no answer that we know"):
            await site.ask(CASE)


async def test_the_cases_of_corrections_are_read(tmp_path: Path) -> None:
    app = create_app(edge_settings(tmp_path), fakes().ports)
    transport = httpx.ASGITransport(app)
    told = {"kind": "refusal", "lang": "en", "questions": ["Is a card free?"], "text": "Ask the library."}
    async with httpx.AsyncClient(base_url="http://gateway.test", headers=bearer(ADMIN), transport=transport) as client:
        made = await client.post("/v1/admin/sites/town/corrections", json=told)
    assert made.is_success, made.text
    async with HttpSite("http://gateway.test/", "town", SecretStr(ADMIN), transport) as site:
        [case] = (await site.corrected()).cases
    assert (case.question, case.expect, case.tags) == ("Is a card free?", "refuse", ("corrected",))
    async with HttpSite("http://gateway.test/", "town", SecretStr(CHAT_ANYWHERE), transport) as site:
        with pytest.raises(WrongUse, match="403 forbidden"):
            await site.corrected()
