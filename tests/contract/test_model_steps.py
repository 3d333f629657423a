"""Each step of a site asks its own model, with its own parameters, and what that spends is counted; over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from adapters.llm.guarded import FAILURES
from adapters.llm.registry import ChatRegistry
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.model_calls import bounded, recorded
from pipelines.query.ports import ModelDown, TokensSpent
from pipelines.query.titles import ModelTitles
from pipelines.query.token_budget import TokenBudget
from pipelines.runtime.settings import StepName, StepSettings
from prompts.loader import ChatMessage
from tests.scripted_llm import Reply, ScriptedLLM
from wiring.settings import Settings

ASKED = (ChatMessage("system", "Be brief."), ChatMessage("user", "When is the pool open?"))
OPEN = Reply(["Open ", "daily."])
STEPS: dict[str, Any] = {
    "answer": {"model": "large", "temperature": 0.7, "max_tokens": 1_200, "thinking_tokens": 4_000},
    "decide": {"max_tokens": 60},
}


@asynccontextmanager
async def registry(
    *replies: Reply, failures: int = FAILURES, **settings: Any
) -> AsyncIterator[tuple[ChatRegistry, TokenBudget, ScriptedLLM]]:
    async with ScriptedLLM(replies or [OPEN]) as server:
        given = {"sites": {"town": {"steps": STEPS}, "village": {}}, "llm_model": "usual"}
        made = Settings.model_validate(given | {"openai_base_url": server.url} | settings)
        token_budget = TokenBudget(made)
        models = ChatRegistry(made, made, token_budget, failures)
        try:
            yield models, token_budget, server
        finally:
            await models.aclose()


@pytest.mark.parametrize(
    ("site", "step", "sent"),
    [
        ("town", "answer", ("large", 0.7, 4_800)),  # its room is asked for; the one to think comes on top
        ("town", "decide", ("usual", 0.0, 60)),
        ("village", "answer", ("usual", 0.0, 800)),
        ("village", "decide", ("usual", 0.0, 90)),
        ("village", "translate", ("tongues", 0.0, 800)),
    ],
)
async def test_a_step_asks_as_its_site_says_else_as_all_sites(
    site: str, step: StepName, sent: tuple[str, float, int]
) -> None:
    shared = {"decide": {"max_tokens": 90}, "translate": {"model": "tongues"}}
    async with registry(steps=shared) as (models, _, server):
        assert (await models.of(site, step).complete(ASKED, max_tokens=800)).text == "Open daily."
        [body] = server.requests
        assert (body["model"], body["temperature"], body["max_tokens"]) == sent


async def test_what_a_question_brings_goes_before_what_is_set() -> None:
    async with registry() as (models, _, server):
        for own in (StepSettings(model="tried", temperature=1.5), StepSettings(model="tried"), StepSettings()):
            await models.of("town", "answer", own=own).complete(ASKED)
        sent = [(body["model"], body["temperature"]) for body in server.requests]
        assert sent == [("tried", 1.5), ("tried", 0.7), ("large", 0.7)]


async def test_a_model_that_is_left_alone_is_so_for_all_its_steps() -> None:
    down = Reply(status=503)
    async with registry(down, failures=1) as (models, _, server):
        for step in ("tools", "courtesy"):
            with pytest.raises(ModelDown):
                await models.of("village", step).complete(ASKED)
        with pytest.raises(ModelDown):
            await models.of("town", "decide").complete(ASKED)  # the same model
        assert len(server.requests) == 1


async def test_another_temperature_is_no_other_model_to_the_breaker() -> None:
    warm: dict[str, Any] = {"town": {"steps": {"answer": {"temperature": 1}}}}
    async with registry(Reply(status=503), sites=warm, failures=1) as (models, _, server):
        for step in ("tools", "answer"):
            with pytest.raises(ModelDown):
                await models.of("town", step).complete(ASKED)
        assert len(server.requests) == 1


async def test_the_fallback_keeps_the_steps_parameters() -> None:
    async with registry(Reply(status=503), OPEN, llm_fallback_model="other") as (models, _, server):
        await models.of("town", "answer").complete(ASKED, max_tokens=800)
        assert [(body["model"], body["temperature"]) for body in server.requests] == [("large", 0.7), ("other", 0.7)]


@pytest.mark.parametrize(
    ("reply", "least", "most"),
    [
        (Reply(["Open."], usage=(900, 60)), 960, 960),  # the server's own count
        (Reply(["Open."], usage=None), 15, 30),  # estimated: it counts not
    ],
)
async def test_what_a_call_has_spent_is_booked(reply: Reply, least: int, most: int) -> None:
    sites = {"town": {"daily_tokens": 100_000}}
    async with registry(reply, sites=sites) as (models, token_budget, _):
        told = (await models.of("town", "answer", "q").complete(ASKED)).usage
        assert told.prompt_tokens + told.completion_tokens == token_budget.spent("town")
        assert least <= token_budget.spent("town") <= most
        assert token_budget._questions["q"] == token_budget.spent("town")


async def test_an_answer_that_is_stopped_is_booked_as_far_as_it_came() -> None:
    sites = {"town": {"daily_tokens": 100_000}}
    async with registry(Reply(["Open daily. "] * 50, delay=0.01), sites=sites) as (models, token_budget, _):
        async with aclosing(models.of("town", "answer", "q").stream(ASKED)) as deltas:
            async for _ in deltas:
                break
        assert 15 <= token_budget.spent("town") <= 40


async def test_a_call_that_is_too_much_reaches_no_server() -> None:
    async with registry(sites={"town": {"daily_tokens": 60}}) as (models, _, server):
        with pytest.raises(TokensSpent):
            await models.of("town", "answer").complete(ASKED)
        assert server.requests == []


async def test_a_question_with_little_left_gets_a_shorter_answer() -> None:
    async with registry(sites={"town": {"question_tokens": 200}}) as (models, _, server):
        await models.of("town", "answer", "q").complete(ASKED, max_tokens=800)
        assert 150 < server.requests[0]["max_tokens"] < 200


async def test_a_conversation_gets_its_title_from_the_model_of_that_step() -> None:
    steps = {"title": {"model": "small"}}
    async with registry(Reply(['"Opening ', 'hours"\n']), steps=steps) as (models, _, server):
        titles = ModelTitles(models, SitePrompts())
        assert await titles.write("village", "de", "Wann ist offen?", "Täglich.") == "Opening hours"
        [body] = server.requests
        assert (body["model"], body["max_tokens"]) == ("small", 60)
        assert "Write in German" in body["messages"][0]["content"]


@pytest.mark.parametrize("reply", [Reply(status=401), Reply(["Open"], cut=True), Reply(status=500)])
async def test_a_model_that_fails_gives_no_title(reply: Reply) -> None:
    async with registry(reply) as (models, _, _):
        assert await ModelTitles(models, SitePrompts()).write("village", "en", "When?", "Daily.") is None


async def test_a_call_is_recorded_as_it_was_sent_also_where_it_fails() -> None:
    replies = (Reply(["Open ", "daily."], calls=[("search", '{"q": "pool"}')]), Reply(["Op"], cut=True))
    async with registry(*replies) as (models, _, server):
        with recorded() as calls:
            await models.of("town", "answer").complete(ASKED)
            with pytest.raises(ModelDown):
                await models.of("town", "decide").complete(ASKED)
        whole, broken = bounded(calls)
        sent = [(message["role"], message["content"]) for message in server.requests[0]["messages"]]
        assert [(message.role, message.text) for message in whole.messages] == sent
        assert (whole.step, whole.model, whole.failed) == ("answer", "scripted", None)
        assert whole.reply == 'Open daily.\nsearch({"q": "pool"})'
        assert (broken.step, broken.reply, broken.failed) == ("decide", "Op", "model-cut")
