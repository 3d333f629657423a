"""Questions over HTTP: whole answers, streams, resuming, and everything that can end early."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from gateway.chat import chat, sse
from gateway.edge.problems import message
from pipelines.conversations.ask import UnknownAnswer
from pipelines.runtime.errors import Retryable
from schemas.answer import Answered, Citation, Done, Failed, QuestionRephrased, Restart, SourcesFound, Step, Token
from schemas.query import Question, Source
from tests.edge import ADMIN, PAGE_ORIGIN, Wire, assert_problem, bearer, edge_settings, parse_sse, until
from tests.fakes.ports import FakeAnswers, FakeIntake, FakePorts, plain_answer
from wiring.settings import ChatSettings, Settings

CHAT = "/v1/sites/town/chat"
STREAM = {"Accept": "text/event-stream"}
SOURCE = Source(
    n=1,
    page_id="library",
    lang="en",
    title="Library",
    url="/library",
    field="content",
    ord=0,
    text="The library opens at nine.\nEvery day.",
    score=0.9,
    revision=1,
    cited=True,
)


def full_script(question: Question) -> list[Any]:
    citation = Citation(n=1, start=0, end=5)
    return [
        QuestionRephrased(question="When does the library open?", mode="semantic"),
        SourcesFound(grade=0, sources=(SOURCE,)),
        Token(text="wrong"),
        Restart(attempt=2),
        Token(text="At nine.\nZwölf Uhr 🕛"),
        citation,
        Answered(text="At nine.\nZwölf Uhr 🕛", citations=(citation,), sources=(SOURCE,), extractive=True),
        Done(),
    ]


async def test_what_is_asked_to_try_the_site_out_is_kept_nowhere(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    told = (await client.post(CHAT, json={"question": "When?", "keep": False, "ranked": 7})).raise_for_status().json()
    [asked] = fakes.answers.asked
    assert (asked.logged_as, asked.ranked, told["answer"]) == (None, 7, "The library opens at nine.")
    assert not fakes.conversations.kept
    again = {"question": "When?", "keep": False, "conversation_id": told["conversation_id"]}
    assert_problem(await client.post(CHAT, json=again), 422, "invalid")


async def test_a_question_says_whether_the_sites_pages_are_being_read_in(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    for importing in (False, True):
        fakes.pages.importing = importing
        (await client.post(CHAT, json={"question": "When?"})).raise_for_status()
        assert fakes.answers.asked[-1].importing == importing


@pytest.mark.parametrize("more", [{"keep": False}, {"ranked": 7}])
async def test_no_visitor_leaves_the_log(stranger: httpx.AsyncClient, fakes: FakePorts, more: dict[str, Any]) -> None:
    token = (await stranger.post("/v1/sites/town/visitor-tokens", headers={"Origin": PAGE_ORIGIN})).json()["token"]
    refused = await stranger.post(CHAT, json={"question": "When?"} | more, headers=bearer(token))
    assert_problem(refused, 403, "forbidden")
    assert not fakes.answers.asked


async def test_a_stream_has_every_event_in_order_with_its_id(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = full_script
    response = await client.post(CHAT, json={"question": " When? ", "lang": "de"}, headers=STREAM)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in response.headers
    assert "content-length" not in response.headers
    events = parse_sse(response.text)
    assert [e.event for e in events] == [
        "accepted",
        "rephrased",
        "sources",
        "token",
        "restart",
        "token",
        "citation",
        "answer",
        "done",
    ]
    accepted = events[0].data
    assert set(accepted) == {"request_id", "conversation_id"}
    assert len({e.id for e in events}) == len(events)
    assert events[2].data["sources"][0]["text"] == SOURCE.text
    assert events[4].data == {"attempt": 2}
    assert events[5].data == {"text": "At nine.\nZwölf Uhr 🕛"}
    assert events[8].data == {}
    [question] = fakes.answers.asked
    assert (question.question, question.lang, question.site) == ("When?", "de", "town")
    assert question.request_id == accepted["request_id"]
    assert (question.deadline - question.asked_at).total_seconds() == 90


@pytest.mark.parametrize(
    ("asked", "guessed"),
    [
        ({"question": "trash day christmas"}, True),
        ({"question": "trash day christmas", "lang": "de"}, False),
        ({"question": "When is the trash collected?"}, False),
    ],
)
async def test_a_language_that_nobody_tells_is_a_guess(
    client: httpx.AsyncClient, fakes: FakePorts, asked: dict[str, str], guessed: bool
) -> None:
    assert (await client.post(CHAT, json=asked)).status_code == 200
    [question] = fakes.answers.asked
    assert question.guessed is guessed


@pytest.mark.parametrize(("written", "lang"), [("EN", "en"), ("De", "de"), ("en_US", "en-US"), ("pt-BR", "pt-BR")])
async def test_a_language_may_be_written_as_websites_write_it(
    client: httpx.AsyncClient, fakes: FakePorts, written: str, lang: str
) -> None:
    assert (await client.post(CHAT, json={"question": "When?", "lang": written})).status_code == 200
    completion = {"model": "town", "messages": [{"role": "user", "content": "When?"}], "lang": written}
    assert (await client.post("/v1/chat/completions", json=completion)).status_code == 200
    assert [question.lang for question in fakes.answers.asked] == [lang, lang]
    assert_problem(await client.post(CHAT, json={"question": "When?", "lang": "english"}), 422, "invalid")


async def test_the_steps_of_an_answer_are_told_to_a_key_and_not_to_a_visitor(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    step = Step(kind="search", asked="library hours")
    answer = Answered(text="At nine.", citations=(), sources=(), extractive=False, trace=(step,))
    fakes.answers.script = lambda _: [answer, Done()]
    token = await client.post("/v1/sites/town/visitor-tokens", headers={"Origin": "http://gateway.test"})
    told = []
    for headers in ({}, bearer(token.json()["token"])):
        response = await client.post(CHAT, json={"question": "When?"}, headers=STREAM | headers)
        told.append(next(e.data.get("trace") for e in parse_sse(response.text) if e.event == "answer"))
        told.append((await client.post(CHAT, json={"question": "When?"}, headers=headers)).json().get("trace"))
    steps = [step.model_dump(mode="json")]
    assert told == [steps, steps, None, None]


async def test_a_site_may_tell_its_visitors_what_was_looked_for_and_not_what_a_model_was_told(
    client: httpx.AsyncClient, fakes: FakePorts, settings: Settings
) -> None:
    town = settings.sites["town"]
    settings.sites["town"] = town.model_copy(update={"chat": ChatSettings(show_steps=True)})
    search = Step(kind="search", asked="library hours", said="[1] At nine.", ms=4.0)
    model = Step(kind="model", asked="You answer questions ...", said="At nine.")
    answer = Answered(text="At nine.", citations=(), sources=(), extractive=False, trace=(model, search))
    fakes.answers.script = lambda _: [answer, Done()]
    token = await client.post("/v1/sites/town/visitor-tokens", headers={"Origin": "http://gateway.test"})
    visitor = bearer(token.json()["token"])
    response = await client.post(CHAT, json={"question": "When?"}, headers=STREAM | visitor)
    streamed = next(e.data["trace"] for e in parse_sse(response.text) if e.event == "answer")
    whole = (await client.post(CHAT, json={"question": "When?"}, headers=visitor)).json()["trace"]
    assert streamed == whole == [Step(kind="search", asked="library hours").model_dump(mode="json")]


async def test_whole_or_streamed_an_answer_tells_the_same(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = full_script
    whole = (await client.post(CHAT, json={"question": "When?"})).json()
    stream = parse_sse((await client.post(CHAT, json={"question": "When?"}, headers=STREAM)).text)
    told = {e.event: e.data for e in stream}
    assert whole["mode"] == told["rephrased"]["mode"]
    assert whole["grade"] == told["sources"]["grade"]
    in_both = told["answer"].keys() & whole.keys()
    assert told["answer"].keys() - in_both == {"text"}
    assert {name: whole[name] for name in in_both} == {name: told["answer"][name] for name in in_both}
    assert whole["answer"] == told["answer"]["text"]


async def test_the_whole_answer_as_json(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = full_script
    response = await client.post(CHAT, json={"question": "When?"})
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    [question] = fakes.answers.asked
    assert (body["request_id"], body["conversation_id"]) == (question.request_id, question.conversation_id)
    assert body["citations"] == [{"type": "citation", "n": 1, "start": 0, "end": 5, "quote": None}]
    assert body["question"] == "When?"
    assert body["rephrased"] == "When does the library open?"
    assert body["answer"] == "At nine.\nZwölf Uhr 🕛"
    assert body["sources"][0] | {"cited": True} == body["sources"][0]
    assert (body["grade"], body["extractive"], body["cut"]) == (0, True, False)
    assert fakes.answers.asked[0].lang == "en"
    assert fakes.answers.following == 0


@pytest.mark.parametrize(
    ("accept", "streamed"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream", True),
        ("text/event-stream;q=0.1", True),
        ("text/event-stream; charset=utf-8 ; Q=1.000", True),
        ("application/json, text/event-stream", True),
        ("text/event-stream, */*;q=0.1", True),
        ("text/event-stream, */*", True),
        ("text/*", True),
        ("text/event-stream;q=0", False),
        ("text/event-stream;q=0.0, application/json;q=0", False),
        ("application/json, text/event-stream;q=0.9", False),
        ("application/json;profile=text/event-stream", False),
        ("x-text/event-streams", False),
        ("text/event-stream;q=much", False),
        ("text/html, text/event-stream;q=0, */*;q=0.8", False),
        ("*/*", False),
        ("", False),
        (",;,q", False),
    ],
)
async def test_a_stream_is_for_those_who_accept_it(client: httpx.AsyncClient, accept: str, streamed: bool) -> None:
    response = await client.post(CHAT, json={"question": "When?"}, headers={"Accept": accept})
    assert (response.headers["content-type"].partition(";")[0] == "text/event-stream") == streamed


async def test_accept_may_come_in_several_lines(client: httpx.AsyncClient) -> None:
    headers = [("Accept", "text/html"), ("Accept", "text/event-stream")]
    response = await client.post(CHAT, json={"question": "When?"}, headers=headers)
    assert response.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "bad-json"),
        (b"question=When", 400, "bad-json"),
        (b'{"question":""}', 422, "question-empty"),
        (b'{"question":" \\n\\t\\u00a0 "}', 422, "question-empty"),
        (json.dumps({"question": "x" * 100_000}).encode(), 422, "question-too-long"),
        (json.dumps({"question": "🏛" * 100_000}).encode(), 422, "question-too-long"),
        (json.dumps({"question": "x" * 3_000_000}).encode(), 413, "too-large"),
        (b'{"question":["a"]}', 422, "invalid"),
        (b'{"question":"a","mode":"fast"}', 422, "invalid"),
        (b'{"question":"\\udfff"}', 422, "invalid"),
        (b'{"question":"a","conversation_id":"../etc"}', 422, "invalid"),
        (b'{"question":"a","lang":"x"}', 422, "invalid"),
        (b"{}", 422, "invalid"),
    ],
    ids=lambda v: v[:30].decode() if isinstance(v, bytes) else "",
)
async def test_bad_questions_get_a_clear_answer(
    client: httpx.AsyncClient, fakes: FakePorts, body: bytes, status: int, code: str
) -> None:
    for headers in ({}, STREAM):
        problem = assert_problem(await client.post(CHAT, content=body, headers=headers), status, code)
        assert len(str(problem)) < 1_000
    assert fakes.answers.asked == []


@pytest.mark.parametrize("question", ["x" * 4_000, "🏛" * 4_000, "\u202eשאלה", "a\u0000b", "Ω" * 3])
async def test_odd_questions_are_questions(client: httpx.AsyncClient, fakes: FakePorts, question: str) -> None:
    assert (await client.post(CHAT, json={"question": question})).status_code == 200
    assert fakes.answers.asked[0].question == question


async def test_an_unknown_site(client: httpx.AsyncClient) -> None:
    assert_problem(await client.post("/v1/sites/nowhere/chat", json={"question": "a"}), 404, "unknown-site")


async def test_no_broker_is_a_503_also_for_a_stream(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    class NoBroker(FakeAnswers):
        async def ask(self, question: Question):  # type: ignore[no-untyped-def]
            raise Retryable("no broker")
            yield

    fakes.answers.__class__ = NoBroker
    for headers in ({}, STREAM):
        response = await client.post(CHAT, json={"question": "a"}, headers=headers)
        assert_problem(response, 503, "unavailable")


async def test_a_stages_failure_reaches_both_kinds_of_client(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Failed(code="model-away", message="Bitte später."), Done()]
    response = await client.post(CHAT, json={"question": "a"})
    assert assert_problem(response, 502, "model-away")["detail"] == "Bitte später."
    events = parse_sse((await client.post(CHAT, json={"question": "a"}, headers=STREAM)).text)
    assert [(e.event, e.data) for e in events[1:]] == [
        ("error", {"code": "model-away", "message": "Bitte später."}),
        ("done", {}),
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Retryable("10.0.0.7 refused"), "unavailable"),
        (KeyError("secret"), "internal"),
        (UnknownAnswer("another site's"), "internal"),
    ],
)
async def test_a_source_that_breaks_off_is_told_in_plain_words(
    client: httpx.AsyncClient, fakes: FakePorts, error: Exception, code: Any
) -> None:
    fakes.answers.script = lambda _: [Token(text="half an ans"), error]
    response = await client.post(CHAT, json={"question": "a", "lang": "de"}, headers=STREAM)
    events = parse_sse(response.text)
    assert [e.event for e in events] == ["accepted", "token", "error", "done"]
    assert events[2].data == {"code": code, "message": message(code, "de")}
    # The reader keeps its place: resuming from there reads on after the token.
    assert events[2].id == events[3].id == events[1].id


@pytest.fixture
def hasty(tmp_path: Any) -> Settings:
    return edge_settings(tmp_path, llm_timeout=0.02)


async def test_nobody_waits_past_the_deadline(hasty: Settings) -> None:
    fakes = FakePorts(answers=FakeAnswers(lambda _: [Token(text="slow"), 60.0, Done()]), pages=FakeIntake({}))
    app = create_app(hasty, fakes.ports)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://gateway.test", headers=bearer(ADMIN)
    ) as client:
        events = parse_sse((await client.post(CHAT, json={"question": "a", "lang": "hu"}, headers=STREAM)).text)
        assert [e.event for e in events] == ["accepted", "token", "error", "done"]
        assert events[2].data == {"code": "timeout", "message": message("timeout", "hu")}
        assert_problem(await client.post(CHAT, json={"question": "a"}), 504, "timeout")
    assert fakes.answers.following == 0


def test_messages_fall_back_to_english() -> None:
    assert message("timeout", "sv") == message("timeout", "en")
    assert message("timeout", "de-AT") == message("timeout", "de") != message("timeout", "en")


# Resuming


async def test_resuming_goes_on_at_the_exact_event(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = full_script
    whole = parse_sse((await client.post(CHAT, json={"question": "When?"}, headers=STREAM)).text)
    request_id = whole[0].data["request_id"]
    url = f"/v1/sites/town/answers/{request_id}/events"
    for seen in range(len(whole) - 1):
        rest = await client.get(url, headers={"Last-Event-ID": whole[seen].id})
        assert rest.headers["content-type"].startswith("text/event-stream")
        assert parse_sse(rest.text) == whole[seen + 1 :]
    again = parse_sse((await client.get(url)).text)
    assert again == whole
    assert again[0].event == "accepted"
    # An EventSource would come back for ever; 204 tells it to stop (WHATWG HTML, 9.2.2).
    assert (await client.get(url, headers={"Last-Event-ID": whole[-1].id})).status_code == 204


async def test_a_question_that_comes_back_with_its_last_event_is_no_second_one(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    """As @microsoft/fetch-event-source repeats a request whose stream broke off."""
    fakes.answers.script = full_script
    body = {"question": "When?"}
    whole = parse_sse((await client.post(CHAT, json=body, headers=STREAM)).text)
    again = f"/v1/sites/town/conversations/{whole[0].data['conversation_id']}/regenerate"
    for place in (CHAT, again):
        for seen in range(len(whole) - 1):
            rest = await client.post(place, json=body, headers=STREAM | {"Last-Event-ID": whole[seen].id})
            assert parse_sse(rest.text) == whole[seen + 1 :]
        assert (await client.post(place, json=body, headers={"Last-Event-ID": whole[-1].id})).status_code == 204
        visitor = bearer(app.state.edge.tokens.issue("town").token)
        for event_id in (whole[0].id, "nonsense", ":0", f"{whole[0].data['request_id']}:0.x"):
            refused = await stranger.post(place, json=body, headers=visitor | {"Last-Event-ID": event_id})
            assert_problem(refused, 400, "bad-position")
    assert len(fakes.answers.asked) == 1
    asked = await client.post(CHAT, json=body, headers=STREAM | {"Last-Event-ID": ""})  # nothing was seen yet
    assert asked.status_code == 200
    assert len(fakes.answers.asked) == 2


async def test_reading_anew_begins_with_accepted_before_there_is_an_answer(
    app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "FIRST_EVENT_WAIT", 0.01)
    fakes.answers.script = lambda _: [3600.0, Token(text="late"), Done()]
    async with Wire().call(app, *asking({"question": "When?"})) as wire:
        [accepted] = await wire.events(1)
        path = f"/v1/sites/town/answers/{accepted.data['request_id']}/events"
        async with Wire().call(app, "GET", path, bearer(ADMIN)) as second:
            assert await second.events(1) == [accepted]
            await client.delete(path.removesuffix("/events"))
            assert [e.event for e in await second.events(2)] == ["answer", "done"]
    rest = await client.get(path, headers={"Last-Event-ID": accepted.id})
    assert [e.event for e in parse_sse(rest.text)] == ["answer", "done"]


@pytest.mark.parametrize(
    "last",
    ["nonsense", "other-request:0", "{id}:x", "{id}:../..", ":0", "{id}:0", "{id}:0.", "{id}:1.{sign}", "{sign}"],
)
async def test_made_up_positions_are_refused_before_anything_is_read(
    client: httpx.AsyncClient, fakes: FakePorts, last: str
) -> None:
    [accepted, *_] = parse_sse((await client.post(CHAT, json={"question": "When?"}, headers=STREAM)).text)
    request_id, signature = accepted.data["request_id"], accepted.id.rpartition(".")[2]
    assert accepted.id == f"{request_id}:0.{signature}"
    place = f"/v1/sites/town/answers/{request_id}/events"

    def unread(*_: object) -> None:
        raise AssertionError("nobody's log is read for this")

    fakes.answers.resume = fakes.conversations.of_answer = unread  # type: ignore[assignment]
    response = await client.get(place, headers={"Last-Event-ID": last.format(id=request_id, sign=signature)})
    assert_problem(response, 400, "bad-position")


async def test_visitors_resume_no_more_often_than_a_page_would(
    app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    visitor = bearer(app.state.edge.tokens.issue("town").token)
    place = "/v1/sites/town/answers/some-request-id-12345/events"
    answers = [await client.get(place, headers=visitor | {"Last-Event-ID": "made-up"}) for _ in range(130)]
    assert [answers[0].status_code, answers[-1].status_code] == [400, 429]


async def test_resuming_with_a_bad_request_id(client: httpx.AsyncClient) -> None:
    assert_problem(await client.get("/v1/sites/town/answers/a b/events"), 422, "invalid")


# As it happens, on the wire


def asking(body: dict[str, Any]) -> tuple[str, str, dict[str, str], bytes]:
    return "POST", CHAT, bearer(ADMIN) | STREAM, json.dumps(body).encode()


async def test_events_leave_as_they_come(app: FastAPI, fakes: FakePorts) -> None:
    gate = asyncio.Event()

    class Gated(FakeAnswers):
        async def ask(self, question: Question):  # type: ignore[no-untyped-def]
            async for followed in super().ask(question):
                yield followed
                if followed.event.event.type == "token":
                    await gate.wait()

    fakes.answers.__class__ = Gated
    async with Wire().call(app, *asking({"question": "When?"})) as wire:
        begun = await wire.events(4)
        assert [e.event for e in begun] == ["accepted", "rephrased", "sources", "token"]
        gate.set()
        assert [e.event for e in await wire.events(3)] == ["token", "answer", "done"]
        assert await wire.piece() is None


async def test_a_visitor_who_leaves_ends_the_following(app: FastAPI, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text="first"), 3600.0, Done()]
    async with Wire().call(app, *asking({"question": "When?"})) as wire:
        await wire.events(2)
        assert fakes.answers.following == 1
        wire.hang_up()
    assert fakes.answers.following == 0


async def test_a_slow_reader_slows_the_source(app: FastAPI, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text=str(n)) for n in range(1_000)] + [Done()]
    async with Wire().call(app, *asking({"question": "When?"})) as wire:
        wire.blocked = asyncio.Event()
        await until(lambda: fakes.answers.pulled)
        for _ in range(200):  # rounds of the loop: enough for a source that does not wait to run away
            await asyncio.sleep(0)
        assert fakes.answers.pulled <= 2
        wire.blocked.set()
        assert len(await wire.events(1_002)) == 1_002


async def test_a_reader_who_takes_nothing_is_let_go(
    app: FastAPI, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "SEND_TIMEOUT", 0.01)
    wire = Wire()
    wire.blocked = asyncio.Event()
    async with wire.call(app, *asking({"question": "When?"})):
        await asyncio.wait_for(wire.over.wait(), 10)
        assert (wire.status, fakes.answers.pulled, fakes.answers.following) == (200, 1, 0)


async def test_silence_is_filled_with_comments(app: FastAPI, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.01)
    fakes.answers.script = lambda question: [0.1, *plain_answer(question)]
    async with Wire().call(app, *asking({"question": "When?"})) as wire:
        pieces = []
        while (piece := await wire.piece()) is not None:
            pieces.append(piece)
    comments = [p for p in pieces if p.startswith(b":")]
    assert comments
    assert set(comments) == {b": still here\n\n"}
    assert [e.event for e in parse_sse(b"".join(pieces).decode())][-1] == "done"
