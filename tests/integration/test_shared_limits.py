"""Limits hold for all processes together, over a real Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from gateway.edge.problems import Problem
from gateway.edge.rates import DailyBudgets, Rates, window
from pipelines.query.ports import TokensSpent
from pipelines.query.token_budget import TokenBudget
from pipelines.runtime.counts import DAY
from schemas.answer import Usage
from schemas.topics import BUDGETS, RATES
from tests.engine_fixture import Servers
from wiring.clients import Clients
from wiring.settings import Settings, SiteSettings
from wiring.shared_counts import token_budgets

pytestmark = pytest.mark.engine
PATIENCE = 30.0  # seconds
RATE = "3/day"  # no window ends meanwhile, but at midnight


@asynccontextmanager
async def gateway(settings: Settings) -> AsyncIterator[tuple[Rates, DailyBudgets]]:
    async with Clients(settings) as clients:
        share = await clients.counts()
        rates = Rates(RATE, share(RATES, window(RATE)), SecretStr("salt"))
        yield rates, DailyBudgets({"town": 3}, share(BUDGETS, DAY))


async def refused(act: Callable[[], Awaitable[None]]) -> str:
    """The code, once it is; every try before costs."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await act()
            except Problem as problem:
                return problem.code
            await asyncio.sleep(0.2)


def question(budgets: DailyBudgets) -> None:
    with budgets.question("town"):
        pass


def settings_of(tmp_path: Path, engine: Servers) -> Settings:
    return Settings(
        home=tmp_path,
        kafka=engine.kafka,
        elasticsearch=engine.elasticsearch,
        topic_prefix=f"t{uuid4().hex[:10]}.",
        partitions=2,
        sites={"town": SiteSettings(daily_tokens=1_000)},
    )


async def test_visitors_and_sites_have_one_limit_at_all_gateways_and_days_outlive_them(
    engine: Servers, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path, engine)
    async with gateway(settings) as (rates, budgets), gateway(settings) as (other_rates, other_budgets):
        for _ in range(3):
            question(budgets)
            rates.count("ask", "192.0.2.1", "visitor-1")

        async def look() -> None:
            """Costs nothing where it is let through: whoever asks is refused for another reason."""
            try:
                with other_budgets.question("town"):
                    raise Problem(409, "answer-under-way", "?")
            except Problem as problem:
                if problem.code == "daily-budget":
                    raise

        assert await refused(look) == "daily-budget"

        async def ask() -> None:
            other_rates.count("ask", "192.0.2.1", "visitor-1")

        assert await refused(ask) == "too-many-requests"
        other_rates.count("ask", "192.0.2.2", "visitor-2")
    async with gateway(settings) as (_, later):

        async def again() -> None:
            question(later)

        assert await refused(again) == "daily-budget"


async def test_tokens_that_one_worker_has_spent_are_spent_for_all_and_for_later_ones(
    engine: Servers, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path, engine)
    async with Clients(settings) as clients:
        await clients.topics()
    async with token_budgets(settings) as counts, token_budgets(settings) as others:
        spent = TokenBudget(settings, counts=counts)
        assert spent.open("town", "q1", 400, None) is None
        spent.close("town", "answer", "q1", 400, Usage(prompt_tokens=600, completion_tokens=350))
        await spent_at(TokenBudget(settings, counts=others))
    async with token_budgets(settings) as counts:
        await spent_at(TokenBudget(settings, counts=counts))


async def spent_at(its: TokenBudget) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                its.open("town", "q2", 1, None)
            except TokensSpent:
                return
            its.close("town", "answer", "q2", 1, Usage(prompt_tokens=0, completion_tokens=0))
            await asyncio.sleep(0.2)
