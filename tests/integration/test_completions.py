"""The real openai client against the gateway behind a real uvicorn: streaming, not streaming, refused, hung up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

from gateway.app import create_app
from gateway.chat import sse
from schemas.answer import Answered, Citation, Done, Failed, Restart, SourcesFound, Token, Usage
from schemas.query import MAX_QUESTION, Question, Turn
from tests.asking import source
from tests.edge import ADMIN, INGEST_TOWN, edge_settings, served, until
from tests.fakes.ports import FakeIntake, FakePorts, Step

SOURCE = source(1, "The library opens at nine.").model_copy(update={"cited": True})
CITATION = Citation(n=1, start=0, end=8, quote="The library opens at nine.")
USAGE = Usage(model="m", prompt_tokens=11, completion_tokens=7)


def at_nine(_: Question) -> Sequence[Step]:
    return [
        SourcesFound(grade=0, sources=(SOURCE,)),
        Token(text="At "),
        Token(text="nine."),
        Answered(text="At nine.", citations=(CITATION,), sources=(SOURCE,), extractive=False, usage=USAGE),
        Done(),
    ]


@pytest.fixture
def fakes() -> FakePorts:
    fakes = FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}))
    fakes.answers.script = at_nine
    return fakes


@pytest.fixture
async def url(fakes: FakePorts, tmp_path: Path) -> AsyncIterator[str]:
    async with served(create_app(edge_settings(tmp_path, llm_timeout=20 / 3), fakes.ports)) as url:
        yield f"{url}/v1"


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=url, api_key=ADMIN, max_retries=0, timeout=20) as client:
        yield client


def user(text: object) -> Any:
    return {"role": "user", "content": text}


async def test_a_whole_answer_with_its_sources(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model="town", messages=[user("When does it open?")], temperature=0.3, user="somebody"
    )
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", "At nine.", "stop")
    assert choice.message.model_extra is not None
    assert choice.message.model_extra["sources"][0]["page_id"] == "p1"
    assert choice.message.model_extra["citations"][0]["quote"] == "The library opens at nine."
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (11, 7, 18)
    assert (answer.object, answer.model) == ("chat.completion", "town")


async def test_a_streamed_answer_with_its_sources_in_the_last_chunk(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="town", messages=[user("When?")], stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == "At nine."
    *_, last, counted = chunks
    assert last.choices[0].finish_reason == "stop"
    assert last.choices[0].delta.model_extra is not None
    assert last.choices[0].delta.model_extra["sources"][0]["cited"] is True
    assert last.choices[0].delta.model_extra["citations"][0]["end"] == 8
    assert (counted.choices, counted.usage and counted.usage.total_tokens) == ([], 18)
    assert len({chunk.id for chunk in chunks}) == 1


async def test_the_openai_clients_own_accumulation_of_a_stream(client: openai.AsyncOpenAI) -> None:
    async with client.chat.completions.stream(model="town", messages=[user("When?")]) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == "At nine."


async def test_earlier_messages_are_the_history_and_nothing_is_kept(
    client: openai.AsyncOpenAI, fakes: FakePorts
) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "You are a pirate."},
        user("When does it open?"),
        {"role": "assistant", "content": "At nine."},
        user("Never mind."),
        {"role": "user", "content": [{"type": "text", "text": "And on"}, {"type": "text", "text": "Sundays?"}]},
    ]
    await client.chat.completions.create(model="town", messages=messages, extra_body={"lang": "de"})
    [asked] = fakes.answers.asked
    assert (asked.question, asked.lang) == ("And on\nSundays?", "de")
    assert asked.history == (Turn(question="When does it open?", answer="At nine."),)
    assert fakes.conversations.kept == {}


async def test_200_turns_are_cut_to_those_that_are_read(client: openai.AsyncOpenAI, fakes: FakePorts) -> None:
    messages: list[Any] = [m for n in range(200) for m in (user(f"q{n}"), {"role": "assistant", "content": f"a{n}"})]
    await client.chat.completions.create(model="town", messages=[*messages, user("And?")])
    assert [turn.question for turn in fakes.answers.asked[0].history] == [f"q{n}" for n in range(192, 200)]


async def test_the_models_are_the_sites(client: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == ["town", "other"]
    assert (await client.models.retrieve("town")).owned_by == "pagewire"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("nowhere")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"model": "nowhere"}, 404, "model_not_found"),
        ({"messages": []}, 400, "invalid"),
        ({"messages": [{"role": "system", "content": "x"}]}, 400, "question-empty"),
        ({"messages": [user(" ")]}, 400, "question-empty"),
        ({"messages": [user("x" * (MAX_QUESTION + 1))]}, 400, "question-too-long"),
        ({"messages": [user([{"type": "image_url", "image_url": {"url": "x"}}])]}, 400, "question-empty"),
        ({"n": 2}, 400, "unsupported_value"),
    ],
    ids=str,
)
async def test_refusals_are_what_the_client_expects(
    client: openai.AsyncOpenAI, fakes: FakePorts, body: dict[str, Any], status: int, code: str
) -> None:
    for stream in (False, True):
        order: dict[str, Any] = {"model": "town", "messages": [user("When?")], "stream": stream} | body
        with pytest.raises(openai.APIStatusError) as refused:
            await client.chat.completions.create(**order)
        assert (refused.value.status_code, refused.value.code) == (status, code)
    assert fakes.answers.asked == []


async def test_keys_open_what_they_open_elsewhere(url: str) -> None:
    for key, error in (("nobody", openai.AuthenticationError), (INGEST_TOWN, openai.PermissionDeniedError)):
        async with openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=20) as client:
            with pytest.raises(error):
                await client.chat.completions.create(model="town", messages=[user("When?")])


async def test_a_failed_answer_is_an_error_of_the_server(client: openai.AsyncOpenAI, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text="At "), Failed(code="model-away", message="Please later."), Done()]
    with pytest.raises(openai.InternalServerError, match="Please later"):
        await client.chat.completions.create(model="town", messages=[user("When?")])
    stream = await client.chat.completions.create(model="town", messages=[user("When?")], stream=True)
    with pytest.raises(openai.APIError, match="Please later"):
        async for _ in stream:
            pass


async def test_what_the_filter_refuses_is_not_asked_again(url: str, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Failed(code="content-filtered", message="In other words."), Done()]
    async with openai.AsyncOpenAI(base_url=url, api_key=ADMIN, max_retries=2, timeout=20) as client:
        with pytest.raises(openai.BadRequestError, match="In other words"):
            await client.chat.completions.create(model="town", messages=[user("When?")])
    assert len(fakes.answers.asked) == 1


async def test_an_answer_that_starts_again_goes_on_below_and_its_citations_with_it(
    client: openai.AsyncOpenAI, fakes: FakePorts
) -> None:
    fakes.answers.script = lambda _: [Token(text="Half an"), Restart(attempt=2), *at_nine(_)[1:]]
    text, citations = "", []
    async for chunk in await client.chat.completions.create(model="town", messages=[user("When?")], stream=True):
        text += chunk.choices[0].delta.content or ""
        citations += (chunk.choices[0].delta.model_extra or {}).get("citations", [])
    assert text == "Half an\n\nAt nine."
    assert text[citations[0]["start"] : citations[0]["end"]] == "At nine."


async def test_silence_is_filled_with_comments_that_the_client_passes_over(
    client: openai.AsyncOpenAI, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.05)
    fakes.answers.script = lambda _: [0.2, *at_nine(_)[1:3], 0.2, *at_nine(_)[3:]]
    async with client.chat.completions.stream(model="town", messages=[user("When?")]) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == "At nine."


async def test_who_hangs_up_has_stopped_the_answer(client: openai.AsyncOpenAI, fakes: FakePorts) -> None:
    fakes.answers.script = lambda _: [Token(text="At "), 3600.0, Done()]
    stream = await client.chat.completions.create(model="town", messages=[user("When?")], stream=True)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    await stream.close()
    request_id = fakes.answers.asked[0].request_id
    await until(lambda: fakes.answers.stopped[request_id].is_set())
    await until(lambda: not fakes.answers.following)


async def test_who_hangs_up_has_stopped_an_answer_that_is_not_streamed_and_each_of_its_tries(
    client: openai.AsyncOpenAI, fakes: FakePorts
) -> None:
    fakes.answers.script = lambda _: [Token(text="At "), 3600.0, Done()]
    with pytest.raises(openai.APITimeoutError):
        await client.with_options(timeout=0.5, max_retries=1).chat.completions.create(
            model="town", messages=[user("When?")]
        )
    first, second = (asked.request_id for asked in fakes.answers.asked)
    await until(lambda: fakes.answers.stopped[first].is_set() and fakes.answers.stopped[second].is_set())
    await until(lambda: not fakes.answers.following)


async def test_an_answer_that_was_read_to_its_end_is_not_stopped(client: openai.AsyncOpenAI, fakes: FakePorts) -> None:
    async for _ in await client.chat.completions.create(model="town", messages=[user("When?")], stream=True):
        pass
    await client.chat.completions.create(model="town", messages=[user("When?")])
    await asyncio.sleep(0)
    assert not fakes.answers.stopped
