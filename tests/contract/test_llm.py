"""The chat model's contract: the same cases over the real client with a real server, and over the fake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.llm.openai_chat import OpenAIChat
from pipelines.query.ports import (
    BadRequest,
    ChatModel,
    Completion,
    ContentFiltered,
    ContextTooLong,
    ModelCut,
    ModelDenied,
    ModelDown,
    ModelSilent,
    RateLimited,
    ToolSpec,
)
from pipelines.runtime.errors import PagewireError, Permanent, Retryable
from prompts.loader import ChatMessage, ToolCall
from schemas.answer import Usage
from tests.fakes.chat_model import FakeChat
from tests.scripted_llm import Reply, ScriptedLLM
from wiring.settings import Settings

ASKED = (ChatMessage("system", "Be brief."), ChatMessage("user", "When is the pool open?"))
PIECES = ["Open ", "daily", " [1]."]


@asynccontextmanager
async def served(*replies: Reply, silence: float = 20.0) -> AsyncIterator[tuple[OpenAIChat, ScriptedLLM]]:
    async with ScriptedLLM(replies) as server:
        model = OpenAIChat.named("scripted", Settings(openai_base_url=server.url, llm_timeout=silence))
        try:
            yield model, server
        finally:
            await model.aclose()


@asynccontextmanager
async def real(pieces: Sequence[str], error: PagewireError | None, *, cut: bool = False) -> AsyncIterator[ChatModel]:
    reply = (
        Reply(pieces, finish="length" if cut else "stop")
        if error is None
        else Reply(status=429 if isinstance(error, RateLimited) else 400)
    )
    async with served(reply) as (model, _):
        yield model


@asynccontextmanager
async def fake(pieces: Sequence[str], error: PagewireError | None, *, cut: bool = False) -> AsyncIterator[ChatModel]:
    yield FakeChat(Completion("".join(pieces), Usage(), cut=True) if cut else error or pieces)


Models = Callable[..., Any]


@pytest.mark.parametrize("models", [real, fake])
class TestContract:
    async def test_the_pieces_come_in_order_and_the_usage_last(self, models: Models) -> None:
        async with models(PIECES, None) as model:
            deltas = [delta async for delta in model.stream(ASKED)]
        assert [delta.text for delta in deltas if delta.text] == PIECES
        assert [delta.usage is not None for delta in deltas] == [False, False, False, True]

    async def test_complete_is_the_stream_at_once(self, models: Models) -> None:
        async with models(PIECES, None) as model:
            completion = await model.complete(ASKED)
        assert completion.text == "Open daily [1]."
        assert completion.usage.completion_tokens > 0

    @pytest.mark.parametrize("cut", [True, False])
    async def test_the_end_says_whether_the_token_limit_was_reached(self, models: Models, cut: bool) -> None:
        async with models(PIECES, None, cut=cut) as model:
            deltas = [delta async for delta in model.stream(ASKED)]
            completion = await model.complete(ASKED)
        assert [delta.cut for delta in deltas] == [False] * (len(deltas) - 1) + [cut]
        assert (completion.text, completion.cut) == ("Open daily [1].", cut)

    async def test_the_stream_can_be_closed_early_and_the_model_used_again(self, models: Models) -> None:
        async with models(PIECES, None) as model:
            async with aclosing(model.stream(ASKED)) as stream:
                assert (await anext(stream)).text == "Open "
            assert (await model.complete(ASKED)).text == "Open daily [1]."

    @pytest.mark.parametrize("error", [RateLimited("busy"), BadRequest("no")])
    async def test_an_error_is_of_its_branch(self, models: Models, error: PagewireError) -> None:
        async with models([], error) as model:
            with pytest.raises(type(error)):
                await model.complete(ASKED)


async def test_the_request_is_what_was_asked() -> None:
    async with served(Reply(PIECES)) as (model, server):
        await model.complete(ASKED, max_tokens=50)
    body = server.requests[0]
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When is the pool open?"},
    ]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("scripted", 50, 0.0)
    assert body["stream_options"] == {"include_usage": True}


async def test_a_model_that_thinks_gets_the_tokens_for_it() -> None:
    async with ScriptedLLM(Reply(PIECES)) as server:
        settings = Settings(llm_model="scripted", openai_base_url=server.url, llm_thinking_tokens=1_000)
        model = OpenAIChat.named("thinker", settings, temperature=0.6)
        await model.complete(ASKED, max_tokens=50)
        await model.aclose()
    body = server.requests[0]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("thinker", 1_050, 0.6)


async def test_usage_is_the_servers_count() -> None:
    async with served(Reply(PIECES, usage=(120, 5))) as (model, _):
        usage = (await model.complete(ASKED)).usage
    assert (usage.model, usage.prompt_tokens, usage.completion_tokens) == ("scripted", 120, 5)


async def test_a_server_that_does_not_count_gives_zeros() -> None:
    async with served(Reply(PIECES, usage=None)) as (model, _):
        usage = (await model.complete(ASKED)).usage
    assert (usage.model, usage.prompt_tokens, usage.completion_tokens) == ("scripted", 0, 0)


async def test_parameters_that_a_server_refuses_are_left_out_from_then_on() -> None:
    reply = Reply(PIECES, refuses=["stream_options", "temperature", "max_tokens"])
    async with served(reply) as (model, server):
        for _ in range(2):
            assert (await model.complete(ASKED, max_tokens=9)).text == "Open daily [1]."
    assert len(server.requests) == 5  # three refusals, two answers
    last = server.requests[-1]
    assert last["max_completion_tokens"] == 9
    assert not {"stream_options", "temperature", "max_tokens"} & set(last)


async def test_a_complaint_about_something_else_is_not_tried_again() -> None:
    async with served(Reply(status=400, error={"message": "messages: too few"})) as (model, server):
        with pytest.raises(BadRequest):
            await model.complete(ASKED)
    assert len(server.requests) == 1


REFUSALS = [
    (429, {"message": "slow down"}, RateLimited, "model-busy"),
    (429, {"message": "You exceeded your quota", "code": "insufficient_quota"}, ModelDenied, "model-denied"),
    (500, {"message": "oops"}, ModelDown, "model-down"),
    (503, {"message": "loading"}, ModelDown, "model-down"),
    (401, {"message": "bad key"}, ModelDenied, "model-denied"),
    (404, {"message": "no such model"}, BadRequest, "model-refused"),
    (400, {"message": "filtered", "code": "content_filter"}, ContentFiltered, "content-filtered"),
    (400, {"message": "too long", "code": "context_length_exceeded"}, ContextTooLong, "context-too-long"),
    (
        400,
        {"message": "This model's maximum context length is 4096 tokens, max_tokens is 800"},
        ContextTooLong,
        "context-too-long",
    ),
    (400, {"message": "too big", "type": "exceed_context_size_error"}, ContextTooLong, "context-too-long"),
]


@pytest.mark.parametrize(("status", "error", "kind", "code"), REFUSALS)
async def test_a_refusal_becomes_the_error_with_its_code(
    status: int, error: dict[str, str], kind: type[PagewireError], code: str
) -> None:
    async with served(Reply(status=status, error=error)) as (model, server):
        with pytest.raises(kind, match="scripted") as caught:
            await model.complete(ASKED, max_tokens=9)
    assert caught.value.code == code
    assert isinstance(caught.value, Retryable) == (code in ("model-busy", "model-down"))
    assert isinstance(caught.value, Retryable) != isinstance(caught.value, Permanent)
    assert len(server.requests) == 1


BREAKS = [
    Reply(PIECES[:1], cut=True),
    Reply(PIECES[:1], finish=None),
    Reply(PIECES[:1], garbage=True),
    Reply(PIECES[:1], error={"message": "internal"}),
]


async def test_what_a_server_says_in_a_shape_of_its_own_is_passed_on() -> None:
    async with served(Reply(status=400, error={"detail": "Server is pinned to 'small'"})) as (model, _):
        with pytest.raises(BadRequest, match="pinned to 'small'"):
            await model.complete(ASKED)
    async with served(Reply(status=400, error={"detail": "This model's maximum context length is 8"})) as (model, _):
        with pytest.raises(ContextTooLong):
            await model.complete(ASKED)


@pytest.mark.parametrize("reply", BREAKS, ids=["cut", "no finish", "not JSON", "error event"])
async def test_a_stream_that_breaks_keeps_its_pieces_and_ends_as_cut(reply: Reply) -> None:
    async with served(reply) as (model, _):
        stream = model.stream(ASKED)
        assert (await anext(stream)).text == "Open "
        with pytest.raises(ModelCut) as caught:
            await anext(stream)
    assert caught.value.code == "model-cut"


async def test_a_limit_reached_inside_the_stream_is_rate_limited() -> None:
    async with served(Reply(PIECES[:1], error={"message": "later", "type": "rate_limit_error"})) as (model, _):
        with pytest.raises(RateLimited):
            await model.complete(ASKED)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"Retry-After": "7"}, 7.0), ({"Retry-After": "0.25"}, 0.25), ({"Retry-After": "tomorrow"}, None), ({}, None)],
)
async def test_a_busy_server_says_when_to_come_back(headers: dict[str, str], seconds: float | None) -> None:
    async with served(Reply(status=429, headers=headers)) as (model, _):
        with pytest.raises(RateLimited) as caught:
            await model.complete(ASKED)
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize(
    ("pieces", "spoken"),
    [
        (["<think>They want the price.</think>Nine ", "euros [1]."], ["Nine ", "euros [1]."]),
        (["\n<THI", "NKING>The pri", "ce.</thin", "king>", "\n\n", "Nine"], ["Nine"]),
        (["<", "b>Nine"], ["<b>Nine"]),
        (["<thinks"], ["<thinks"]),
        (["Nine <think>euros</think>"], ["Nine <think>euros</think>"]),
        (["Nine", " <thi"], ["Nine", " <thi"]),
        (["<thi"], ["<thi"]),
        (["<think>Nine eu", "ros"], []),
    ],
)
async def test_what_a_model_thinks_aloud_is_not_its_answer(pieces: list[str], spoken: list[str]) -> None:
    async with served(Reply(pieces)) as (model, _):
        deltas = [delta async for delta in model.stream(ASKED)]
        completion = await model.complete(ASKED)
    assert [delta.text for delta in deltas] == [*spoken, ""]
    assert completion.text == "".join(spoken)
    assert completion.usage.completion_tokens > 0


async def test_a_model_that_thinks_for_long_is_not_silent() -> None:
    pieces = ["<think>", *("hm " for _ in range(6)), "</think>", "Nine."]
    async with served(Reply(pieces, delay=0.1), silence=0.5) as (model, _):
        assert (await model.complete(ASKED)).text == "Nine."


async def asked_to_wait(retry_after: str) -> float | None:
    async with served(Reply(status=429, headers={"Retry-After": retry_after})) as (model, _):
        with pytest.raises(RateLimited) as caught:
            await model.complete(ASKED)
    return caught.value.retry_after


@pytest.mark.parametrize("zone", ["GMT", "-0000", "+0000"])
async def test_a_busy_server_may_name_a_date_to_come_back(zone: str) -> None:
    in_a_minute = f"{datetime.now(UTC) + timedelta(seconds=60):%a, %d %b %Y %H:%M:%S} {zone}"
    seconds = await asked_to_wait(in_a_minute)
    assert seconds is not None
    assert 30 < seconds <= 60


async def test_a_date_that_has_passed_is_now() -> None:
    assert await asked_to_wait("Sun, 06 Nov 1994 08:49:37 GMT") == 0.0


@pytest.mark.parametrize("date", ["Sun, 06 Nov 99999999999999999999 08:49:37 GMT", "Sun, 99 Nov 1994 08:49:37 GMT"])
async def test_a_date_that_is_none_says_nothing(date: str) -> None:
    assert await asked_to_wait(date) is None


LONG = 100_000  # pieces, of a server that has no end
CALL = {"index": 0, "id": "c", "function": {"name": "hours", "arguments": '{"day": "'}}
MORE = {"index": 0, "function": {"arguments": "Monday, "}}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(["Word. "] * LONG), "Word. " * 13 + "Wo"),
        (Reply(["x" * 5_000_000] * 3), "x" * 80),
        (Reply(["<think>", *["hm " * 1_000] * LONG]), ""),
        (Reply(deltas=[{"reasoning_content": "hm " * 1_000}] * LONG), ""),
        (Reply(deltas=[{"reasoning": "hm " * 1_000}] * LONG), ""),
        (Reply(["Yes"], deltas=[{"content": ""}] * LONG), "Yes"),
        (Reply(["Yes"], deltas=[{}] * LONG), "Yes"),
        (Reply(["Yes"], call_pieces=[CALL, *[MORE] * LONG]), "Yes"),
        (Reply(["Yes"], call_pieces=[{"index": n} for n in range(LONG)]), "Yes"),
    ],
    ids=["text", "one piece", "thoughts", "reasoning_content", "reasoning", "empty", "nothing", "call", "calls"],
)
async def test_a_model_that_writes_on_is_stopped_and_what_it_may_write_is_kept(reply: Reply, said: str) -> None:
    async with served(reply) as (model, server):
        completion = await model.complete(ASKED, max_tokens=10)
        assert (completion.text, completion.cut) == (said, True)
        assert sum(len(call.arguments) for call in completion.calls) <= 80 + len("Monday, ")
        await server.hung_up.wait()
        assert (await model.complete(ASKED, max_tokens=10)).text == said  # nothing of it is left


async def test_a_model_that_keeps_to_its_limit_is_heard_out() -> None:
    thoughts = [{"reasoning_content": "hm, "}] * 2_000
    async with served(Reply(["Donaudampfschiff"] * 5, deltas=thoughts)) as (model, _):
        completion = await model.complete(ASKED, max_tokens=10)
    assert (completion.text, completion.cut) == ("Donaudampfschiff" * 5, False)


async def test_a_line_without_end_is_not_waited_for() -> None:
    async with served(Reply(["Open "], flood=b"x" * 65_536)) as (model, server):
        with pytest.raises(ModelCut, match="no end"):
            await model.complete(ASKED, max_tokens=10)
        await server.hung_up.wait()


async def test_halves_of_characters_find_each_other_and_controls_are_left_out() -> None:
    arguments = {"index": 0, "function": {"name": "hours\ud83d", "arguments": '{"day": "\ud83d\0"}'}}
    async with served(Reply(["Sun \ud83d", "\ude00\0 \ude00", "!\ud83d"], call_pieces=[arguments])) as (model, _):
        completion = await model.complete(ASKED)
    assert completion.text == "Sun \U0001f600 \ufffd!"
    assert completion.calls == (ToolCall("hours", '{"day": "\ufffd"}'),)


HOURS = ToolSpec("hours", "Says when it is open.", {"type": "object", "properties": {"day": {"type": "string"}}})


@pytest.mark.parametrize("pieces", [[], ["Let me look. "]])
async def test_tools_are_offered_and_their_calls_put_together(pieces: list[str]) -> None:
    calls = [("hours", '{"day": "Monday"}'), ("hours", '{"day": "Übermorgen"}')]
    async with served(Reply(pieces, calls=calls, finish="tool_calls")) as (model, server):
        completion = await model.complete(ASKED, tools=[HOURS])
    assert completion.text == "".join(pieces)
    assert completion.calls == tuple(ToolCall(*call) for call in calls)
    [tool] = server.requests[0]["tools"]
    assert tool == {
        "type": "function",
        "function": {"name": "hours", "description": "Says when it is open.", "parameters": HOURS.parameters},
    }


async def test_a_question_without_tools_offers_none() -> None:
    async with served(Reply(PIECES)) as (model, server):
        assert (await model.complete(ASKED)).calls == ()
    assert "tools" not in server.requests[0]


async def test_a_filter_that_stops_the_answer_is_permanent() -> None:
    async with served(Reply(PIECES[:1], finish="content_filter")) as (model, _):
        with pytest.raises(ContentFiltered):
            await model.complete(ASKED)


@pytest.mark.parametrize("pieces", [[], ["Open "]], ids=["before the first piece", "after a piece"])
async def test_a_silent_server_is_model_down_and_is_hung_up_on(pieces: list[str]) -> None:
    async with served(Reply(pieces, stall=True), silence=0.2) as (model, server):
        with pytest.raises(ModelSilent, match="silent"):
            await model.complete(ASKED)
        await server.hung_up.wait()


async def test_silence_is_counted_anew_after_each_piece() -> None:
    pieces = [f"{i} " for i in range(6)]
    async with served(Reply(pieces, delay=0.1), silence=0.5) as (model, _):
        assert (await model.complete(ASKED)).text == "".join(pieces)


async def test_closing_the_stream_stops_the_server() -> None:
    async with served(Reply(["endless "] * 10_000, delay=0.01)) as (model, server):
        async with aclosing(model.stream(ASKED)) as stream:
            await anext(stream)
        await server.hung_up.wait()


async def test_no_server_is_model_down() -> None:
    async with served(Reply(PIECES)) as (model, server):
        await server.__aexit__()
        with pytest.raises(ModelDown) as caught:
            await model.complete(ASKED)
    assert caught.value.code == "model-down"


async def test_errors_never_carry_the_prompt() -> None:
    async with served(Reply(status=500)) as (model, _):
        with pytest.raises(ModelDown) as caught:
            await model.complete(ASKED)
    assert "pool" not in str(caught.value)


async def test_the_model_of_the_settings() -> None:
    async with ScriptedLLM(Reply(PIECES)) as server:
        model = OpenAIChat.named("scripted", Settings(openai_base_url=server.url))
        assert (await model.complete(ASKED)).text == "Open daily [1]."
        await model.aclose()
