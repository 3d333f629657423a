"""A judge: JSON or nothing, asked again once, within its budget."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from pipelines.evaluate.judged.judge import (
    GIVE_UP,
    TRIES,
    BudgetSpent,
    Decided,
    EvaluationJudge,
    JudgeGone,
    JudgingBudget,
    UnreadableVerdict,
    parsed,
)
from pipelines.evaluate.judged.registry import JUDGED
from pipelines.runtime.errors import Permanent, Retryable
from schemas.answer import Usage
from tests.unit.evaluate.judged.judges import FENCE, PROMPTS, Reply, Script, Written, judge

VALUES = {"question": "Why?", "answer": "So."}


class Yes(Decided):
    yes: bool
    score: float = 0.0


READ = partial(parsed, Yes)


def script(*replies: Reply) -> Script:
    left = list(replies)
    return Script(informationless=lambda _: left.pop(0) if len(left) > 1 else left[0])


async def ask(model: Script, **budget: int) -> Yes:
    return await judge(model, **budget).ask("informationless", VALUES, READ, 50)


@pytest.mark.parametrize(
    "text",
    [
        '{"yes": true}',
        ' {"yes": true, "score": 0}\n',
        '```json\n{"yes": true}\n```',
        '```\n{"yes": true}```\n',
        '``` {"yes": true} ```',
    ],
)
def test_json_is_read_also_between_fences(text: str) -> None:
    assert READ(text) == Yes(yes=True)


@pytest.mark.parametrize(
    "text",
    [
        *("", "yes", "{}", "[true]", '{"yes": "true"}', '{"yes": 1}', '{"yes": true, "no": false}'),
        *('{"yes": true} I think', '{"yes": true, "score": "4"}', '```json\n{"yes": true}'),
    ],
)
async def test_all_else_is_asked_again_once_with_what_was_wrong(text: str) -> None:
    model = script(text, '{"yes": true}')
    assert await ask(model) == Yes(yes=True)
    (_, first), (_, second) = model.asked
    assert second[: len(first)] == first
    assert [message.role for message in second[len(first) :]] == ["assistant", "user"]
    assert second[-2].content == text
    assert second[-1].content.startswith("That cannot be read: ")
    assert "{problem}" not in second[-1].content

    twice = script(text)
    with pytest.raises(UnreadableVerdict):
        await ask(twice)
    assert len(twice.asked) == 2


async def test_the_same_is_not_asked_twice_unless_it_was_not_decided() -> None:
    model = script("no", "no", '{"yes": true}')
    one = judge(model)
    with pytest.raises(UnreadableVerdict):
        await one.ask("informationless", VALUES, READ, 50)
    for _ in range(3):
        assert await one.ask("informationless", VALUES, READ, 50) == Yes(yes=True)
    assert len(model.asked) == 3
    await one.ask("informationless", {**VALUES, "answer": "Other."}, READ, 50)
    assert len(model.asked) == 4


async def test_a_judge_that_is_away_is_tried_again() -> None:
    model = script(Retryable("away"), Retryable("away"), '{"yes": true}')
    assert await ask(model) == Yes(yes=True)
    gone = script(Retryable("away"))
    with pytest.raises(Retryable):
        await ask(gone)
    assert (len(model.asked), len(gone.asked)) == (TRIES, TRIES)
    denied = script(Permanent("wrong key"))
    with pytest.raises(Permanent, match="wrong key"):
        await ask(denied)
    assert len(denied.asked) == 1


async def test_one_that_stays_away_is_left_alone() -> None:
    model = script(Permanent("wrong key"))
    one = judge(model)
    for _ in range(GIVE_UP):
        with pytest.raises(Permanent, match="wrong key"):
            await one.ask("informationless", VALUES, READ, 50)
    with pytest.raises(JudgeGone):
        await one.ask("informationless", VALUES, READ, 50)
    assert len(model.asked) == GIVE_UP


async def test_failures_count_in_a_row_alone() -> None:
    replies: list[Reply] = [Permanent("busy")] * (GIVE_UP - 1)
    model = script(*replies, '{"yes": true}', *replies, '{"yes": true}')
    one = judge(model)
    for number in range(2 * GIVE_UP):
        with suppress(Permanent):
            await one.ask("informationless", {**VALUES, "answer": str(number)}, READ, 50)
    assert len(model.asked) == 2 * GIVE_UP


async def test_calls_are_counted_with_those_that_fail() -> None:
    with pytest.raises(BudgetSpent, match="its 1 calls are spent"):
        await ask(script("no", '{"yes": true}'), calls=1)
    with pytest.raises(BudgetSpent):
        await ask(script(Retryable("away"), '{"yes": true}'), calls=1)
    assert await ask(script('{"yes": true}'), calls=1) == Yes(yes=True)


async def test_tokens_are_held_back_while_a_call_is_under_way_and_then_what_it_came_to() -> None:
    budget = JudgingBudget(calls=10, tokens=1_000)
    model = script('{"yes": true}')
    one = EvaluationJudge(model, "scripted", budget, FENCE)
    await one.ask("informationless", VALUES, READ, 50)
    assert (budget.asked, budget.used) == (1, 18)  # the server counted 11 and 7
    with pytest.raises(BudgetSpent, match="its 1,000 tokens are spent"):
        await one.ask("informationless", {**VALUES, "answer": "x"}, READ, 990)
    assert (budget.asked, budget.used) == (1, 18)

    class Uncounted(Script):
        async def complete(self, *args: object, **kwargs: object) -> Written:
            return Written('{"yes": true}', Usage())

    other = JudgingBudget(calls=10, tokens=10_000)
    await EvaluationJudge(Uncounted(), "scripted", other, FENCE).ask("informationless", VALUES, READ, 50)
    assert 150 < other.used < 400  # our estimate: a fourth of the prompt's letters


def test_every_prompt_is_asked_by_a_measure() -> None:
    asked = {prompt for measure in JUDGED for prompt in measure.prompts}
    assert asked == set(PROMPTS)
