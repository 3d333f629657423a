"""Suggestions while one types, and the questions below an answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from gateway.chat.chat import new_question
from pipelines.query.search.typeahead import TitleCandidate
from schemas.http import IndexedChunk, IndexedPage
from schemas.outcome import Outcome, OutcomeEvent, OutcomeSource
from schemas.query import Turn
from tests.asking import NOON
from tests.edge import CHAT_ANYWHERE, STAFF_TOWN, assert_problem, bearer, until
from tests.fakes.ports import FakePorts
from wiring.settings import Settings

SUGGEST = "/v1/sites/town/suggest"
NEXT = "/v1/sites/town/next-questions"
POOL = IndexedPage(chunks=(IndexedChunk(field="title", ord=0, text="Pool", title="Pool", url="/pool"),), total=1)


async def test_titles_and_headings_for_the_callers_groups_and_language(
    stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.typeahead.titled = [TitleCandidate("Pool", "/pool", "en")]
    fakes.typeahead.headed = [TitleCandidate("Sauna", "/sauna", "en", ("Pool rules",))]
    answer = await stranger.get(SUGGEST, params={"q": " poo ", "lang": "de-AT"}, headers=bearer(STAFF_TOWN))
    assert answer.json() == {
        "titles": [{"title": "Pool", "url": "/pool", "lang": "en"}],
        "headings": [
            {
                "heading": "Pool rules",
                "title": "Sauna",
                "url": "/sauna",
                "fragment": ":~:text=Pool%20rules",
                "lang": "en",
            }
        ],
        "questions": [],
    }
    await stranger.get(SUGGEST, params={"q": "poo", "lang": "fr"}, headers=bearer(CHAT_ANYWHERE))
    assert fakes.typeahead.asked == [("town", "poo", "de", ("staff", "board")), ("town", "poo", None, ())]


async def test_what_has_no_words_or_too_many_characters_is_looked_up_nowhere(
    stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    key = bearer(CHAT_ANYWHERE)
    assert (await stranger.get(SUGGEST, params={"q": "👍?!"}, headers=key)).json()["titles"] == []
    assert_problem(await stranger.get(SUGGEST, params={"q": "👍" * 4_000}, headers=key), 422, "invalid")
    assert_problem(await stranger.get(SUGGEST, params={"q": " "}, headers=key), 422, "invalid")
    assert_problem(await stranger.get(SUGGEST, params={"q": "pool"}), 401, "unauthorized")
    assert fakes.typeahead.asked == []


@pytest.fixture
def shown(settings: Settings, fakes: FakePorts) -> FastAPI:
    """The gateway of a site that shows what two visitors have asked."""
    fakes.indexed.kept["town:en:pool"] = POOL
    return create_app(settings, replace(fakes, least={"town": 2}).ports)


async def logged(fakes: FakePorts, question: str, asker: str, n: int) -> None:
    source = OutcomeSource(page_id="pool", lang="en", field="content", ord=0, score=0.5, cited=True)
    outcome = Outcome(
        asked_at=NOON - timedelta(minutes=n),
        asked_in="en",
        lang="en",
        question=question,
        became="answered",
        hits=(source,),
        restricted=False,
        asker=asker,
    )
    await fakes.outcomes.put(OutcomeEvent(site="town", request_id=f"request-{n}", conversation=f"c{n}", event=outcome))


async def test_questions_of_others_where_the_site_shows_them(shown: FastAPI, fakes: FakePorts) -> None:
    for n, (question, asker) in enumerate([("Pool fees?", "a"), ("pool fees", "b"), ("Pool, alone?", "a")]):
        await logged(fakes, question, asker, n)
    ports = replace(fakes, least={"town": 2}, now=lambda: NOON).ports
    shown.state.edge = replace(shown.state.edge, ports=ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(shown), base_url="http://gateway.test") as client:
        client.headers.update(bearer(CHAT_ANYWHERE))
        await client.get(SUGGEST, params={"q": "pool"})
        await until(lambda: ports.frequent.of("town"))
        assert (await client.get(SUGGEST, params={"q": "pool"})).json()["questions"] == ["Pool fees?"]
        asked = {"q": "When?", "page": ["pool"]}
        assert (await client.get(NEXT, params=asked)).json() == {"questions": ["Pool fees?"]}
        assert (await client.get(NEXT, params=asked | {"q": "POOL fees"})).json() == {"questions": []}
        assert (await client.get(NEXT.replace("town", "other"), params=asked)).json() == {"questions": []}
        assert_problem(await client.get(NEXT, params=asked | {"page": ["x"] * 21}), 422, "invalid")
    await ports.frequent.aclose()


async def test_an_asker_is_named_where_the_site_shows_questions_and_the_same_for_the_same_words_alone(
    shown: FastAPI, app: FastAPI, fakes: FakePorts
) -> None:
    async def ask(of: FastAPI, question: str, token: str) -> str:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(of), base_url="http://gateway.test") as client:
            asked = await client.post("/v1/sites/town/chat", json={"question": question}, headers=bearer(token))
            assert asked.status_code == 200
        return fakes.answers.asked[-1].asker

    anna, bert = (shown.state.edge.tokens.issue("town").token for _ in range(2))
    first = await ask(shown, "Pool fees?", anna)
    assert len(first) == 32
    assert await ask(shown, "pool FEES", anna) == first
    assert await ask(shown, "Pool fees?", bert) != first
    assert await ask(shown, "Sauna fees?", anna) != first
    staff = shown.state.edge.tokens.issue("town", "", ("staff",)).token
    assert await ask(shown, "Pool fees?", staff) == ""
    assert await ask(shown, "Pool fees?", CHAT_ANYWHERE) == ""
    assert await ask(app, "Pool fees?", anna) == ""  # the site shows none


async def test_a_question_that_leans_on_the_one_before_it_has_no_asker(shown: FastAPI, fakes: FakePorts) -> None:
    edge = shown.state.edge
    anna = edge.keys.caller(edge.tokens.issue("town").token)
    assert anna is not None
    first = new_question(edge, anna, "town", "And on Sundays?", "en")
    history = (Turn(question="When does the pool open?", answer="At 9."),)
    after = first.model_copy(update={"history": history})
    assert edge.logged(first, anna).asker
    assert edge.logged(after, anna).asker == ""
    assert edge.logged(after.model_copy(update={"question": "When does the library open?"}), anna).asker
