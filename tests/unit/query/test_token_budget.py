"""A site's tokens of a day, and of a question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from prometheus_client import REGISTRY

from pipelines.query.ports import QuestionSpent, TokensSpent, ToolSpec
from pipelines.query.token_budget import LEAST, TokenBudget, estimated
from prompts.loader import ChatMessage
from schemas.answer import Usage
from wiring.settings import Settings, SiteSettings


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 4, 23, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def token_budget(clock: Clock | None = None, *, daily: int | None = None, each: int | None = None) -> TokenBudget:
    sites = {"town": SiteSettings(daily_tokens=daily, question_tokens=each), "village": SiteSettings()}
    return TokenBudget(Settings(sites=sites), clock or Clock())


def used(reading: int, writing: int) -> Usage:
    return Usage(prompt_tokens=reading, completion_tokens=writing)


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_without_a_limit_everything_fits() -> None:
    spent = token_budget()
    assert spent.open("village", "q", 10**9, 800) == 800
    assert spent.open("nowhere", "q", 10**9, None) is None
    assert not spent.over("village")


def test_what_does_not_fit_ends_the_day_until_the_next_one() -> None:
    clock = Clock()
    spent = token_budget(clock, daily=1_000)
    assert spent.open("town", "q1", 400, 800) == 800
    spent.close("town", "answer", "q1", 400, used(450, 300))
    assert not spent.over("town")
    with pytest.raises(TokensSpent, match=r"site town: its 1,000 tokens of 2026-05-04 are spent \(daily_tokens\)"):
        spent.open("town", "q2", 251 - LEAST, 800)
    assert spent.over("town")
    assert counted("pagewire_tokens_spent", site="town") == 1
    with pytest.raises(TokensSpent):
        spent.open("town", "q3", 1, 1)  # also what would fit: a model that comes and goes helps nobody
    assert not spent.over("village")
    clock.now = datetime(2026, 5, 5, 1, 59, tzinfo=timezone(timedelta(hours=2)))  # still the 4th in UTC
    assert spent.over("town")
    clock.now += timedelta(minutes=1)
    assert not spent.over("town")
    assert counted("pagewire_tokens_spent", site="town") == 0
    assert spent.open("town", "q4", 900, 800) == 800


def test_calls_under_way_count_with_what_they_read() -> None:
    spent = token_budget(daily=1_000)
    for _ in range(2):
        spent.open("town", "q", 400, 800)
    with pytest.raises(TokensSpent):
        spent.open("town", "q", 400, 800)


def test_a_call_that_came_to_nothing_costs_nothing() -> None:
    spent = token_budget(daily=1_000)
    for _ in range(9):
        spent.open("town", "q", 400, 800)
        spent.close("town", "answer", "q", 400, Usage())


def test_a_question_may_use_so_much_in_all_its_calls() -> None:
    spent = token_budget(each=1_000)
    assert spent.open("town", "q", 300, 200) == 200
    spent.close("town", "rephrase", "q", 300, used(300, 100))
    assert spent.open("town", "q", 300, 800) == 300  # what is left of it
    assert spent.open("town", "other", 300, None) == 700
    spent.close("town", "answer", "q", 300, used(300, 250))
    with pytest.raises(QuestionSpent, match=r"1,000 tokens of a question are spent \(question_tokens\)"):
        spent.open("town", "q", 10, 800)
    assert not spent.over("town")


def test_tokens_are_counted_by_site_step_and_direction() -> None:
    names = {"site": "village", "step": "translate"}
    before = [counted("pagewire_model_tokens_total", **names, direction=way) for way in ("in", "out")]
    spent = token_budget()
    spent.open("village", "", 10, 600)
    spent.close("village", "translate", "", 10, used(12, 5))
    after = [counted("pagewire_model_tokens_total", **names, direction=way) for way in ("in", "out")]
    assert [now - then for now, then in zip(after, before, strict=True)] == [12, 5]


def test_a_prompt_is_estimated_from_its_letters_and_its_tools() -> None:
    asked = (ChatMessage("system", "Be brief."), ChatMessage("user", "Когда?"))
    tool = ToolSpec("search", "Looks for pages.", {"type": "object"})
    assert estimated(asked) == 4 + 3 + 4 + 3
    assert estimated(asked, (tool,)) > estimated(asked)


def test_of_sites_without_a_limit_nothing_is_kept() -> None:
    spent = token_budget(daily=1_000)
    for site in ("town", "village", "nowhere"):
        assert not spent.over(site)
        spent.open(site, "q", 1, 1)
        spent.close(site, "answer", "q", 1, used(1, 1))
    assert list(spent._days) == ["town"]


def test_of_too_many_sites_to_tell_apart_metrics_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.runtime.settings.LABELLED_SITES", 2)
    clock = Clock()
    sites = {name: SiteSettings(daily_tokens=100) for name in ("harbour", "market", "mill")}
    spent = TokenBudget(Settings(sites=sites), clock)
    tokens = counted("pagewire_model_tokens_total", site="", step="answer", direction="in")
    for site in ("harbour", "mill"):
        spent.close(site, "answer", "", 0, used(100, 0))
        with pytest.raises(TokensSpent):
            spent.open(site, "q", 1, 1)
    assert counted("pagewire_tokens_spent", site="") == 2
    assert counted("pagewire_model_tokens_total", site="", step="answer", direction="in") == tokens + 200
    assert counted("pagewire_tokens_spent", site="harbour") == 0
    clock.now += timedelta(days=1)
    assert not spent.over("mill")
    assert counted("pagewire_tokens_spent", site="") == 1
