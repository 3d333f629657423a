"""Tool calls over real HTTP: however a server cuts, numbers, breaks or refuses them, the loop comes to an end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from adapters.llm.guarded import GuardedChat
from adapters.llm.openai_chat import OpenAIChat
from adapters.llm.tool_calls import says_no_tools
from pipelines.query.answer.pump import StrategyFailed, pumped
from pipelines.query.answer.strategies.base import StrategyContext, Task
from pipelines.query.answer.strategies.looking import ReAct
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import BadRequest, ChatModel, NoToolCalls, ToolSpec
from pipelines.runtime.settings import StepName, StepSettings
from prompts.loader import ChatMessage, ToolCall
from schemas.answer import SourcesFound, Step, Token
from tests.asking import retrieved
from tests.running import FERRY, MILL, MONDAY, POOL, Site
from tests.scripted_llm import Reply, Script, ScriptedLLM
from wiring.settings import Settings

ASKED = (ChatMessage("system", "Be brief."), ChatMessage("user", "When does the ferry run?"))
HOURS = ToolSpec("hours", "Says when it is open.", {"type": "object", "properties": {"day": {"type": "string"}}})
TASK = Task(retrieved(POOL), site="Town", language="English", now=MONDAY, budget=6_000, history_messages=15)
FOUND = {"ferry": [FERRY], "mill": [MILL]}
ANSWER = Reply(["Hourly [2]."])


@asynccontextmanager
async def served(script: Script | list[Reply]) -> AsyncIterator[tuple[OpenAIChat, ScriptedLLM]]:
    async with ScriptedLLM(script) as server:
        model = OpenAIChat.named("scripted", Settings(openai_base_url=server.url))
        try:
            yield model, server
        finally:
            await model.aclose()


def piece(arguments: str, **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    return more | {"function": {"arguments": arguments} | ({"name": name} if name else {})}


@pytest.mark.parametrize(
    "pieces",
    [
        [
            piece("", index=0, id="a", name="search"),
            piece("", index=1, id="b", name="page"),
            *[piece(letter, index=0) for letter in '{"question": "fährt"}'],
            piece('{"na', index=1),
            piece('me": "x"}', index=1),
        ],
        [
            piece('{"question": "fährt"}', index=0, id="a", name="search"),
            piece('{"name": "x"}', index=0, id="b", name="page"),
        ],
        [piece('{"question": "fährt"}', id="a", name="search"), piece('{"name": "x"}', id="b", name="page")],
        [
            piece('{"question":', index=0, id="a", name="search"),
            piece(' "fährt"}', index=0, id="a"),
            piece('{"name": "x"}', index=7, id="b", name="page"),
        ],
    ],
    ids=["letter by letter, mixed", "all of them numbered 0", "not numbered", "the id again, numbers left out"],
)
async def test_calls_are_put_together_however_they_are_cut(pieces: list[dict[str, Any]]) -> None:
    async with served([Reply(call_pieces=pieces, finish="tool_calls")]) as (model, _):
        calls = (await model.complete(ASKED, tools=[HOURS])).calls
    assert calls == (ToolCall("search", '{"question": "fährt"}'), ToolCall("page", '{"name": "x"}'))
    assert [call.id for call in calls] == ["a", "b"]


async def test_calls_and_their_answers_go_back_as_the_wire_wants_them() -> None:
    told = (
        ChatMessage("assistant", "", calls=(ToolCall("hours", '{"day": "today"}', "a", {"seal": "x"}),)),
        ChatMessage("tool", "closed", answers="a"),
        ChatMessage("assistant", "Again.", calls=(ToolCall("hours", "{not json", "b"),)),
        ChatMessage("tool", "wrong call", answers="b"),
    )
    async with served([ANSWER]) as (model, server):
        await model.complete([*ASKED, *told], tools=[HOURS])
    called = {"id": "a", "type": "function", "function": {"name": "hours", "arguments": '{"day": "today"}'}}
    again = {"id": "b", "type": "function", "function": {"name": "hours", "arguments": "{}"}}
    assert server.requests[0]["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [called | {"extra_content": {"seal": "x"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "closed"},
        {"role": "assistant", "content": "Again.", "tool_calls": [again]},
        {"role": "tool", "tool_call_id": "b", "content": "wrong call"},
    ]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "registry.example/llama3 does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (500, "Unsupported param: tools"),
        (404, 'No endpoints found that support tool use. Try disabling "search".'),
        (422, "tools: Extra inputs are not permitted"),
        (400, "Function calling is not enabled for this model"),
        (400, "Unrecognized request argument supplied: tools"),
    ],
)
async def test_a_server_that_refuses_tools_is_asked_about_them_once(status: int, said: str) -> None:
    def script(body: dict[str, Any]) -> Reply:
        return Reply(status=status, error={"message": said}) if "tools" in body else ANSWER

    async with served(script) as (model, server):
        for _ in range(2):
            with pytest.raises(NoToolCalls):
                await model.complete(ASKED, tools=[HOURS])
        assert len(server.requests) == 1
        assert (await model.complete(ASKED)).text == "Hourly [2]."


@pytest.mark.parametrize(
    "said",
    [
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        "Invalid schema for function 'hours': None is not of type 'object'",
        "The model `scripted` does not exist",
    ],
)
async def test_another_complaint_is_no_reason_to_give_up_tools(said: str) -> None:
    assert not says_no_tools(said)
    async with served([Reply(status=400, error={"message": said}), ANSWER]) as (model, _):
        with pytest.raises(BadRequest) as refused:
            await model.complete(ASKED, tools=[HOURS])
        assert not isinstance(refused.value, NoToolCalls)
        await model.complete(ASKED, tools=[HOURS])


@dataclass
class EveryStep:
    """One model for all steps of all sites."""

    model: ChatModel

    def of(self, site: str, step: StepName, question: str = "", own: StepSettings | None = None) -> ChatModel:
        return self.model


async def run(model: OpenAIChat | GuardedChat, task: Task = TASK) -> list[Any]:
    return [p async for p in ReAct(StrategyContext(EveryStep(model), SitePrompts(), Site(FOUND))).run(task)]


def text(pieces: list[Any]) -> str:
    return "".join(p.text for p in pieces if isinstance(p, Token))


async def test_calls_made_at_once_are_answered_one_by_one() -> None:
    both = [("search", '{"question": "the ferry"}'), ("search", '{"question": "the mill"}'), ("search", '{"ques')]
    async with served([Reply(["Two. "], calls=both, finish="tool_calls"), Reply(["Enough"]), ANSWER]) as (
        model,
        server,
    ):
        pieces = await run(model)
    assert text(pieces) == "Hourly."
    assert [s.page_id for s in [p for p in pieces if isinstance(p, SourcesFound)][-1].sources] == [
        "p1",
        "ferry",
        "mill",
    ]
    assistant, *answers = server.requests[1]["messages"][-4:]
    assert [call["id"] for call in assistant["tool_calls"]] == [a["tool_call_id"] for a in answers]
    assert FERRY.text in answers[0]["content"]
    assert MILL.text in answers[1]["content"]
    assert "wrong call: search: the arguments are not JSON" in answers[2]["content"]
    assert assistant["tool_calls"][2]["function"]["arguments"] == "{}"
    assert "tools" not in server.requests[2]  # the answer itself


async def test_a_model_that_calls_for_ever_is_ended() -> None:
    def script(body: dict[str, Any]) -> Reply:
        if "tools" not in body:
            return Reply(["The pool [1]."])
        asked = json.dumps({"question": f"ferry {len(body['messages'])}"})
        return Reply(calls=[("search", asked)] * 20, finish="tool_calls")

    async with served(script) as (model, server):
        pieces = await run(model)
    assert text(pieces) == "The pool."
    assert len(server.requests) <= ReAct.way.rounds + 1


async def test_a_model_without_tools_goes_on_in_writing() -> None:
    written = [Reply(["Thought: t\nAction: sea", "rch[the ferry]"]), Reply(["Action: finish[]"]), ANSWER]

    def script(body: dict[str, Any]) -> Reply:
        if "tools" in body:
            return Reply(status=400, error={"message": "llama3 does not support tools"})
        return written.pop(0)

    async with served(script) as (model, server):
        guarded = GuardedChat(model, "scripted", at_once=2, failures=1, rest=60.0)
        assert text(await run(guarded)) == "Hourly."
        assert ["tools" in body for body in server.requests] == [True, False, False, False]
        written += [Reply(["Enough"]), Reply(["Closed [1]."])]
        assert text(await run(guarded, replace(TASK, tool_calls="text"))) == "Closed."


async def test_a_stop_in_the_middle_hangs_up_on_the_model() -> None:
    looked, asked_again, stopped = ("search", '{"question": "the ferry"}'), asyncio.Event(), asyncio.Event()

    def script(body: dict[str, Any]) -> Reply:
        if len(body["messages"]) == 2:
            return Reply(calls=[looked], finish="tool_calls")
        asked_again.set()
        return Reply(["Let me "], stall=True)

    async with served(script) as (model, server):
        pieces: list[Any] = []
        strategy = ReAct(StrategyContext(EveryStep(model), SitePrompts(), Site(FOUND)))
        async for beat in pumped(strategy.run(TASK), stopped, 60.0):
            pieces += beat
            if any(isinstance(each, SourcesFound) for each in beat):
                await asyncio.wait_for(asked_again.wait(), 10)
                stopped.set()
        await asyncio.wait_for(server.hung_up.wait(), 10)
    assert [p.kind for p in pieces if isinstance(p, Step)] == ["model", "search"]


async def test_a_model_that_breaks_down_between_its_calls_is_a_failure_of_the_strategy() -> None:
    looked = Reply(calls=[("search", '{"question": "the ferry"}')], finish="tool_calls")
    async with served([looked, Reply(call_pieces=[piece('{"ques', index=0, name="search")], cut=True)]) as (model, _):
        strategy = ReAct(StrategyContext(EveryStep(model), SitePrompts(), Site(FOUND)))
        with pytest.raises(StrategyFailed, match="model-cut"):
            async for _ in pumped(strategy.run(TASK), asyncio.Event(), 60.0):
                pass
