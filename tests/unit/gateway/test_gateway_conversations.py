"""Conversations over HTTP: whose they are, what can be done with them, stopping, feedback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import REGISTRY

from gateway.app import create_app
from gateway.chat.conversations import LISTED_WITHIN
from gateway.edge import metrics
from gateway.edge.auth import token_secret
from gateway.edge.tokens import VisitorTokens
from pipelines.runtime.errors import Retryable
from pipelines.runtime.settings import RetentionSettings
from schemas.answer import Answered, Done, Token
from schemas.query import Question, Turn
from tests.edge import ADMIN, CHAT_ANYWHERE, PAGE_ORIGIN, Wire, assert_problem, bearer, edge_settings, parse_sse
from tests.fakes.ports import FakeAnswers, FakePorts, plain_answer

SITE = "/v1/sites/town"
CHAT = f"{SITE}/chat"
LIST = f"{SITE}/conversations"
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
async def visitors(app: FastAPI) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Two visitors' browsers."""
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(2):
            client = await stack.enter_async_context(
                httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test")
            )
            issued = await client.post(f"{SITE}/visitor-tokens", headers={"Origin": PAGE_ORIGIN})
            client.headers.update(bearer(issued.json()["token"]))
            clients.append(client)
        yield clients


async def ask(client: httpx.AsyncClient, question: str = "When?", **more: Any) -> dict[str, Any]:
    response = await client.post(CHAT, json={"question": question, **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def slow(_: Question) -> list[Any]:
    return [Token(text="Half an ans"), 3600.0, Token(text="wer"), Done()]


def numbered(question: Question) -> list[Any]:
    text = f"Answer to {question.question}"
    return [Token(text=text), Answered(text=text, citations=(), sources=(), extractive=False), Done()]


async def test_a_follow_up_is_asked_with_what_was_said(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = numbered
    first = await ask(client, "When is the pool open?")
    second = await ask(client, "And on Sundays?", conversation_id=first["conversation_id"])
    assert second["conversation_id"] == first["conversation_id"]
    assert fakes.answers.asked[0].history == ()
    assert fakes.answers.asked[1].history == (
        Turn(question="When is the pool open?", answer="Answer to When is the pool open?", lang="en"),
    )
    kept = (await client.get(f"{LIST}/{first['conversation_id']}")).json()
    assert kept["title"] == "When is the pool open?"
    assert [(t["question"], t["state"]) for t in kept["turns"]] == [
        ("When is the pool open?", "answered"),
        ("And on Sundays?", "answered"),
    ]


async def test_a_streamed_answer_is_kept_as_well(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    events = parse_sse((await client.post(CHAT, json={"question": "When?"}, headers=STREAM)).text)
    [turn] = (await client.get(f"{LIST}/{events[0].data['conversation_id']}")).json()["turns"]
    assert turn["answer"] == "The library opens at nine."


async def test_a_visitor_sees_nothing_of_another(visitors: list[httpx.AsyncClient], fakes: FakePorts) -> None:
    mine, foreign = visitors
    asked = await ask(mine)
    place = f"{LIST}/{asked['conversation_id']}"
    for refused in (
        await foreign.get(place),
        await foreign.patch(place, json={"title": "x"}),
        await foreign.delete(place),
        await foreign.post(f"{place}/undo"),
        await foreign.post(f"{place}/regenerate"),
        await foreign.post(CHAT, json={"question": "And?", "conversation_id": asked["conversation_id"]}),
    ):
        assert_problem(refused, 404, "unknown-conversation")
    said = await foreign.post(f"{SITE}/answers/{asked['request_id']}/feedback", json={"rating": "down"})
    assert_problem(said, 404, "unknown-answer")
    assert_problem(await foreign.get(f"{SITE}/answers/{asked['request_id']}/events"), 404, "unknown-answer")
    assert (await foreign.get(LIST)).json()["today"] == []
    assert len((await mine.get(LIST)).json()["today"]) == 1
    assert len(fakes.answers.asked) == 1
    # Nor does the token open another site.
    assert_problem(await mine.get("/v1/sites/other/conversations"), 403, "forbidden")


async def test_a_program_has_its_own_conversations(client: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    await ask(client)
    assert (await stranger.get(LIST, headers=bearer(CHAT_ANYWHERE))).json()["today"] == []
    assert_problem(await stranger.get(LIST), 401, "unauthorized")


async def test_renaming_and_deleting(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    place = f"{LIST}/{(await ask(client))['conversation_id']}"
    assert (await client.patch(place, json={"title": "  Library "})).json()["title"] == "Library"
    assert (await client.get(LIST, params={"utc_offset": 120})).json()["today"][0]["title"] == "Library"
    for body in ({"title": " "}, {"title": "x" * 201}, {}, {"title": "x", "owner": "me"}):
        assert_problem(await client.patch(place, json=body), 422, "invalid")
    assert (await client.delete(place)).status_code == 204
    assert not fakes.answers.stopped
    assert_problem(await client.delete(place), 404, "unknown-conversation")
    assert_problem(await client.get(f"{LIST}/a%20b"), 422, "invalid")
    assert_problem(await client.get(LIST, params={"utc_offset": 1440}), 422, "invalid")


async def test_a_visitor_has_everything_forgotten_and_nobody_else_is_touched(
    client: httpx.AsyncClient,
    visitors: list[httpx.AsyncClient],
    fakes: FakePorts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        """Meanwhile the visitor asks in another window, once."""
        slept.append(seconds)
        if len(slept) == 1:
            await ask(visitors[0], "Late?")

    mine = [await ask(visitors[0]) for _ in range(3)]
    other, program = await ask(visitors[1]), await ask(client)
    monkeypatch.setattr("gateway.chat.conversations.sleep", sleep)
    assert (await visitors[0].delete(f"{SITE}/visitors/me")).status_code == 204
    assert slept == [LISTED_WITHIN]
    assert not any((await visitors[0].get(LIST)).json().values())
    for each in mine:
        assert_problem(await visitors[0].get(f"{LIST}/{each['conversation_id']}"), 404, "unknown-conversation")
    assert (await visitors[1].get(f"{LIST}/{other['conversation_id']}")).status_code == 200
    assert_problem(await client.delete(f"{SITE}/visitors/me"), 403, "forbidden")
    assert (await client.get(f"{LIST}/{program['conversation_id']}")).status_code == 200
    assert (await visitors[0].delete(f"{SITE}/visitors/me")).status_code == 204  # twice does no harm


async def test_undo_takes_back_the_last_pair(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = numbered
    conversation_id = (await ask(client, "First?"))["conversation_id"]
    await ask(client, "Second?", conversation_id=conversation_id)
    left = await client.post(f"{LIST}/{conversation_id}/undo")
    assert [turn["question"] for turn in left.json()["turns"]] == ["First?"]
    await ask(client, "Third?", conversation_id=conversation_id)
    assert [turn.question for turn in fakes.answers.asked[-1].history] == ["First?"]
    await client.post(f"{LIST}/{conversation_id}/undo")
    await client.post(f"{LIST}/{conversation_id}/undo")
    assert_problem(await client.post(f"{LIST}/{conversation_id}/undo"), 409, "no-turn")
    assert_problem(await client.post(f"{LIST}/{conversation_id}/regenerate"), 409, "no-turn")
    assert not fakes.answers.stopped


async def test_asking_again_replaces_the_answer(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = numbered
    conversation_id = (await ask(client, "First?"))["conversation_id"]
    second = await ask(client, "Zweite?", conversation_id=conversation_id, lang="de")
    again = await client.post(f"{LIST}/{conversation_id}/regenerate", headers=STREAM)
    accepted = parse_sse(again.text)[0].data
    assert accepted["conversation_id"] == conversation_id
    assert accepted["request_id"] != second["request_id"]
    asked = fakes.answers.asked[-1]
    assert (asked.question, asked.lang) == ("Zweite?", "de")
    assert [turn.question for turn in asked.history] == ["First?"]
    turns = (await client.get(f"{LIST}/{conversation_id}")).json()["turns"]
    assert [turn["request_id"] for turn in turns][1:] == [accepted["request_id"]]


async def test_a_question_into_an_answer_under_way_is_refused_until_it_is_stopped(
    app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.answers.script = slow
    body = json.dumps({"question": "When?"}).encode()
    async with Wire().call(app, "POST", CHAT, bearer(ADMIN) | STREAM, body) as wire:
        accepted = (await wire.events(2))[0].data
        more = {"question": "And?", "conversation_id": accepted["conversation_id"]}
        for headers in ({}, STREAM):
            refused = assert_problem(await client.post(CHAT, json=more, headers=headers), 409, "answer-under-way")
            assert refused["request_id"] == accepted["request_id"]
        place = f"{LIST}/{accepted['conversation_id']}"
        assert_problem(await client.post(f"{place}/regenerate"), 409, "answer-under-way")

        assert (await client.delete(f"{SITE}/answers/{accepted['request_id']}")).status_code == 202
        ended = await wire.events(2)
        assert [e.event for e in ended] == ["answer", "done"]
        assert (ended[0].data["text"], ended[0].data["stopped"]) == ("Half an ans", True)
    [turn] = (await client.get(place)).json()["turns"]
    assert (turn["state"], turn["answer"]) == ("stopped", "Half an ans")
    fakes.answers.script = plain_answer
    await ask(client, **more)
    assert fakes.answers.asked[-1].history == (Turn(question="When?", answer="Half an ans", lang="en"),)


async def test_undo_stops_what_is_under_way(app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = slow
    body = json.dumps({"question": "When?"}).encode()
    async with Wire().call(app, "POST", CHAT, bearer(ADMIN) | STREAM, body) as wire:
        accepted = (await wire.events(2))[0].data
        left = await client.post(f"{LIST}/{accepted['conversation_id']}/undo")
        assert left.json()["turns"] == []
        assert [e.event for e in await wire.events(2)] == ["answer", "done"]


async def test_deleting_stops_what_is_under_way(app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = slow
    body = json.dumps({"question": "When?"}).encode()
    async with Wire().call(app, "POST", CHAT, bearer(ADMIN) | STREAM, body) as wire:
        accepted = (await wire.events(2))[0].data
        place = f"{LIST}/{accepted['conversation_id']}"
        assert (await client.delete(place)).status_code == 204
        assert [e.event for e in await wire.events(2)] == ["answer", "done"]
    assert_problem(await client.get(place), 404, "unknown-conversation")  # the end of the answer is not kept either


async def test_without_a_broker_a_conversation_is_deleted_nevertheless(
    app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    class NoBroker(FakeAnswers):
        async def stop(self, site: str, request_id: str) -> None:
            raise Retryable("no broker")

    fakes.answers.__class__ = NoBroker
    fakes.answers.script = slow
    async with Wire().call(app, "POST", CHAT, bearer(ADMIN) | STREAM, b'{"question": "When?"}') as wire:
        place = f"{LIST}/{(await wire.events(2))[0].data['conversation_id']}"
        assert (await client.delete(place)).status_code == 204
    assert_problem(await client.get(place), 404, "unknown-conversation")


async def test_stopping_needs_the_right_and_a_broker(
    client: httpx.AsyncClient, visitors: list[httpx.AsyncClient], stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    place = "answers/some-request-id"
    assert_problem(await stranger.delete(f"{SITE}/{place}"), 401, "unauthorized")
    assert_problem(await visitors[0].delete(f"/v1/sites/other/{place}"), 403, "forbidden")
    assert_problem(await client.delete(f"{SITE}/answers/short"), 422, "invalid")
    assert not fakes.answers.stopped
    assert (await visitors[0].delete(f"{SITE}/{place}")).status_code == 202
    assert (await visitors[0].delete(f"{SITE}/{place}")).status_code == 202  # twice does no harm
    assert fakes.answers.stopped["some-request-id"].is_set()
    fakes.conversations.error = Retryable("no Elasticsearch")
    assert (await client.delete(f"{SITE}/answers/other-request-id")).status_code == 202

    class NoBroker(FakeAnswers):
        async def stop(self, site: str, request_id: str) -> None:
            raise Retryable("no broker")

    fakes.answers.__class__ = NoBroker
    assert_problem(await client.delete(f"{SITE}/{place}"), 503, "unavailable")


async def test_an_answer_is_read_and_stopped_on_its_own_site_alone(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.answers.script = slow
    foreign = bearer(app.state.edge.tokens.issue("other").token)
    async with Wire().call(app, "POST", CHAT, bearer(ADMIN) | STREAM, b'{"question": "When?"}') as wire:
        accepted = (await wire.events(2))[0]
        answer = f"answers/{accepted.data['request_id']}"
        headers = foreign | {"Last-Event-ID": accepted.id}
        assert_problem(await stranger.get(f"/v1/sites/other/{answer}/events", headers=headers), 400, "bad-position")
        assert (await stranger.delete(f"/v1/sites/other/{answer}", headers=foreign)).status_code == 202
        assert not fakes.answers.stopped[accepted.data["request_id"]].is_set()
        # On its own site, whoever knows it may stop it, but not read it.
        mine = bearer(app.state.edge.tokens.issue("town").token)
        assert (await stranger.delete(f"{SITE}/{answer}", headers=mine)).status_code == 202
        assert [e.event for e in await wire.events(2)] == ["answer", "done"]
    rest = await stranger.get(f"{SITE}/{answer}/events", headers=mine | {"Last-Event-ID": accepted.id})
    assert_problem(rest, 400, "bad-position")
    rest = await stranger.get(f"{SITE}/{answer}/events", headers=bearer(ADMIN) | {"Last-Event-ID": accepted.id})
    assert [e.event for e in parse_sse(rest.text)] == ["token", "answer", "done"]


async def test_who_names_the_conversation_has_nothing_searched(
    app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.answers.script = slow
    async with Wire().call(app, "POST", CHAT, bearer(ADMIN) | STREAM, b'{"question": "When?"}') as wire:
        accepted = (await wire.events(2))[0].data
        place, named = f"{SITE}/answers/{accepted['request_id']}", {"conversation_id": accepted["conversation_id"]}
        other = {"conversation_id": "some-conversation"}
        refused = await client.post(f"{place}/feedback", params=other, json={"rating": "up"})
        assert_problem(refused, 404, "unknown-answer")
        monkeypatch.setattr(fakes.conversations, "of_answer", None)  # whoever searches fails
        assert (await client.post(f"{place}/feedback", params=named, json={"rating": "up"})).status_code == 204
        assert (await client.delete(place, params=named)).status_code == 202
        [turn] = (await client.get(f"{LIST}/{accepted['conversation_id']}")).json()["turns"]
        assert (turn["state"], turn["feedback"]["rating"]) == ("stopped", "up")
    rest = await client.get(f"{place}/events", params=named)
    assert next(e.event for e in parse_sse(rest.text)) == "accepted"
    assert_problem(await client.get(f"{place}/events", params=other), 404, "unknown-answer")
    assert_problem(await client.delete(place, params={"conversation_id": "short"}), 422, "invalid")


def heard(rating: str) -> float:
    """How often visitors said so, as Prometheus is told."""
    return REGISTRY.get_sample_value("pagewire_feedback_total", {"site": "town", "rating": rating}) or 0


def test_what_nobody_has_said_yet_is_a_zero() -> None:
    metrics.begin(["unheard"])
    for rating in ("up", "down"):
        labels = {"site": "unheard", "rating": rating}
        assert REGISTRY.get_sample_value("pagewire_feedback_total", labels) == 0


async def test_of_every_site_feedback_is_told_from_the_start(client: httpx.AsyncClient) -> None:
    told = (await client.get("/metrics")).text
    for site in ("town", "other"):
        assert f'pagewire_feedback_total{{rating="up",site="{site}"}}' in told


async def test_feedback(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    before = heard("up"), heard("down")
    asked = await ask(client)
    place = f"{SITE}/answers/{asked['request_id']}/feedback"
    assert (await client.post(place, json={"rating": "up"})).status_code == 204
    assert (await client.post(place, json={"rating": "down", "comment": " Wrong.\n"})).status_code == 204
    [turn] = (await client.get(f"{LIST}/{asked['conversation_id']}")).json()["turns"]
    assert (turn["feedback"]["rating"], turn["feedback"]["comment"]) == ("down", "Wrong.")
    assert datetime.fromisoformat(turn["feedback"]["at"]) <= datetime.now(UTC)
    for body in ({"rating": "meh"}, {}, {"rating": "up", "comment": "x" * 2_001}, {"rating": "up", "stars": 5}):
        assert_problem(await client.post(place, json=body), 422, "invalid")
    assert_problem(await client.post(place, content=b"x" * 70_000), 413, "too-large")
    unknown = await client.post(f"{SITE}/answers/some-request-id/feedback", json={"rating": "up"})
    assert_problem(unknown, 404, "unknown-answer")
    assert (heard("up"), heard("down")) == (before[0] + 1, before[1] + 1)


async def test_without_elasticsearch_a_first_question_is_answered_and_a_further_one_waits(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    conversation_id = (await ask(client))["conversation_id"]
    fakes.conversations.error = Retryable("no Elasticsearch")
    await ask(client)
    more = {"question": "And?", "conversation_id": conversation_id}
    refused = await client.post(CHAT, json=more)
    assert_problem(refused, 503, "unavailable")
    assert refused.headers["retry-after"]
    assert_problem(await client.get(LIST), 503, "unavailable")


async def test_two_questions_at_once_in_one_conversation(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    conversation_id = (await ask(client))["conversation_id"]
    fakes.answers.script = lambda _: [0.05, *plain_answer(_)]
    more = {"question": "And?", "conversation_id": conversation_id}
    answers = await asyncio.gather(client.post(CHAT, json=more), client.post(CHAT, json=more))
    assert sorted(answer.status_code for answer in answers) == [200, 409]


async def test_a_visitor_who_renews_the_token_stays_the_same(
    visitors: list[httpx.AsyncClient], stranger: httpx.AsyncClient
) -> None:
    mine = visitors[0]
    conversation_id = (await ask(mine))["conversation_id"]
    before = mine.headers["authorization"]
    renewed = await stranger.post(f"{SITE}/visitor-tokens", headers={"Origin": PAGE_ORIGIN, "Authorization": before})
    token = renewed.json()["token"]
    assert (await stranger.get(f"{LIST}/{conversation_id}", headers=bearer(token))).status_code == 200
    for other in ("", "Bearer nonsense", f"{before[:-2]}xx"):
        issued = await stranger.post(f"{SITE}/visitor-tokens", headers={"Origin": PAGE_ORIGIN, "Authorization": other})
        found = await stranger.get(f"{LIST}/{conversation_id}", headers=bearer(issued.json()["token"]))
        assert_problem(found, 404, "unknown-conversation")


@pytest.mark.parametrize(("kept", "same"), [(90, True), (6, False)])
async def test_a_visitor_is_not_known_for_longer_than_their_conversations(
    tmp_path: Path, fakes: FakePorts, kept: int, same: bool
) -> None:
    settings = edge_settings(tmp_path)
    retention = RetentionSettings(conversations=kept)
    sites = {name: site.model_copy(update={"retention": retention}) for name, site in settings.sites.items()}
    settings = settings.model_copy(update={"sites": sites})
    over = VisitorTokens(token_secret(settings), ttl=-7 * 24 * 3600).issue("town").token  # over for a week
    app = create_app(settings, fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as stranger:
        answer = await stranger.post(f"{SITE}/visitor-tokens", headers={"Origin": PAGE_ORIGIN} | bearer(over))
    known = VisitorTokens(token_secret(settings), ttl=60)
    now = known.verify(answer.json()["token"])
    then = VisitorTokens(token_secret(settings), ttl=60, clock=lambda: 0.0).verify(over)
    assert now is not None
    assert then is not None
    assert (now.visitor == then.visitor) == same
