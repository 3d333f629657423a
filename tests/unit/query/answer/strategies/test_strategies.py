"""Every way to an answer: what the model is asked, what is searched, and what becomes of nonsense."""

from __future__ import annotations

import json
from contextlib import aclosing
from time import perf_counter
from typing import Any, get_args

import pytest

from adapters.llm.fake import FakeChat
from pipelines.query.answer.strategies import base, react, self_ask, tools
from pipelines.query.answer.strategies.base import NumberedSources, StrategyContext, Task
from pipelines.query.answer.strategies.react import Action, action
from pipelines.query.answer.strategies.registry import STRATEGIES, strategies
from pipelines.query.answer.strategies.retrieval_gate import decision
from pipelines.query.ports import ModelSilent, ToolCall
from pipelines.query.site_prompts import SitePrompts
from pipelines.runtime.settings import StrategyName
from tests.asking import retrieved, source
from tests.running import FERRY, MILL, MONDAY, POOL, Site, run

ANSWER = "Closed on Sundays [1]. The ferry runs hourly [2]."


def test_every_strategy_of_the_setting_is_there() -> None:
    assert set(STRATEGIES) == set(get_args(StrategyName))


@pytest.mark.parametrize("name", ["plain", "chain-of-thought"])
def test_what_does_not_search_needs_sources(name: StrategyName) -> None:
    assert not STRATEGIES[name].searches  # type: ignore[attr-defined]


async def test_plain_is_one_call() -> None:
    ran = await run("plain", "Closed on Sundays [1].")
    assert (ran.text, [c.n for c in ran.citations]) == ("Closed on Sundays.", [1])
    assert ran.kinds == ["model"]
    assert len(ran.model.asked) == ran.spent == 1


async def test_a_model_that_writes_nothing_is_a_failure() -> None:
    for silence in ("", " \n", "[1]"):
        with pytest.raises(ModelSilent):
            await run("plain", silence)


class TestChainOfThought:
    async def test_thoughts_are_notes_for_the_answer_and_not_shown(self) -> None:
        ran = await run("chain-of-thought", "[1] says: closed on Sundays", "Closed on Sundays [1].")
        assert ran.text == "Closed on Sundays."
        assert POOL.text in ran.prompt(0)
        assert "[1] says: closed on Sundays" in ran.prompt(1)
        assert ran.kinds == ["model", "model"]
        assert ran.spent == 2


class TestRetrievalGate:
    async def test_a_greeting_is_answered_without_sources(self) -> None:
        ran = await run("retrieval-gate", "NO", "Hello! How can I help? [1]")
        assert (ran.text, ran.citations, ran.site.searched) == ("Hello! How can I help?", [], [])
        assert POOL.text not in ran.prompt(1)

    async def test_a_search_of_its_own_adds_sources(self) -> None:
        ran = await run("retrieval-gate", "SEARCH: When does the ferry run?", ANSWER)
        assert ran.site.searched == ["When does the ferry run?"]
        assert [(s.n, s.page_id) for s in ran.sources] == [(1, "p1"), (2, "ferry")]
        assert [c.n for c in ran.citations] == [1, 2]
        assert ran.kinds == ["model", "search", "model"]

    @pytest.mark.parametrize("said", ["SEARCH: Is the pool open on Sundays?", "I would say yes", "", "No idea: search"])
    async def test_what_is_no_other_question_is_answered_from_what_was_retrieved(self, said: str) -> None:
        ran = await run("retrieval-gate", [said], "Closed [1].")
        assert (ran.text, ran.site.searched) == ("Closed.", [])

    async def test_where_nothing_is_found_nothing_is_written(self) -> None:
        ran = await run("retrieval-gate", "SEARCH: Where is the zoo?", "An invention.", found=())
        assert (ran.text, len(ran.model.asked)) == ("", 1)

    @pytest.mark.parametrize(
        ("said", "query"),
        [
            ("SEARCH: dog tax", "dog tax"),
            ('**Search:** "dog  tax"\nBecause...', "dog tax"),
            ("search[dog tax]", "dog tax"),
            ("NO", None),
            ("SEARCH:", None),
        ],
    )
    def test_a_decision_is_read_out_of_what_the_model_writes(self, said: str, query: str | None) -> None:
        assert decision(said) == query


class TestSelfAsk:
    async def test_follow_up_questions_are_searched_one_by_one(self) -> None:
        ran = await run(
            "self-ask",
            "Follow up: When does the ferry run?",
            "Intermediate answer: Hourly.\nFollow up: Who built the mill?",
            "Intermediate answer: Ada Brook.\nEnough",
            "Hourly [2], says Ada Brook [3].",
        )
        assert ran.site.searched == ["When does the ferry run?", "Who built the mill?"]
        assert FERRY.text in ran.prompt(1)
        assert "Intermediate answer: Hourly." in ran.prompt(2)
        assert MILL.text in ran.prompt(2)
        assert FERRY.text not in ran.prompt(2)  # answered by now
        assert "Intermediate answer: Ada Brook." in ran.prompt(3)
        assert [c.n for c in ran.citations] == [2, 3]
        assert ran.kinds == ["model", "search", "model", "search", "model", "model"]

    async def test_the_same_question_again_ends_the_asking(self) -> None:
        ran = await run("self-ask", "Follow up: The ferry?", "Follow up: the Ferry", "Hourly [2].")
        assert (ran.site.searched, ran.text) == (["The ferry?"], "Hourly.")

    async def test_there_is_an_end_to_asking(self) -> None:
        asks = [f"Intermediate answer: not found\nFollow up: Question {n}?" for n in "abcdefgh"]
        ran = await run("self-ask", *asks[: self_ask.FOLLOW_UPS + 1], "Closed [1].")
        assert len(ran.site.searched) == self_ask.FOLLOW_UPS
        assert ran.text == "Closed."

    async def test_an_answer_before_any_question_is_no_note(self) -> None:
        ran = await run("self-ask", "Intermediate answer: The pool is free.\nEnough", "Closed [1].")
        assert "The pool is free" not in ran.prompt(1)


class TestReAct:
    async def test_it_searches_looks_up_and_finishes(self) -> None:
        ran = await run(
            "react",
            "Thought: The ferry matters.\nAction: search[When does the ferry run?]",
            "Thought: How long?\nAction: lookup[minutes]",
            "Thought: Enough is known.\nAction: finish[]",
            "Closed on Sundays [1]. Ten minutes [2].",
        )
        assert ran.site.searched == ["When does the ferry run?"]
        assert "Observation: [1] Pool: The pool opens daily at 9." in ran.prompt(0)
        assert "Observation: [2] Ferry: The ferry runs hourly." in ran.prompt(1)
        assert "Observation: (1 of 1) [2] It needs ten minutes." in ran.prompt(2)
        assert [c.n for c in ran.citations] == [1, 2]
        assert "Enough is known." in ran.prompt(3)
        assert react.AT_LIMIT not in ran.prompt(3)
        assert ran.kinds == ["model", "search", "model", "lookup", "model", "model"]

    async def test_a_repeated_search_is_not_made_and_ends_the_run(self) -> None:
        ran = await run("react", *["Action: search[the Ferry]"] * 3, "Hourly [2].")
        assert ran.site.searched == ["the Ferry"]
        assert react.REPEATED in ran.prompt(2)
        assert ran.text == "Hourly."
        assert react.AT_LIMIT in ran.prompt(3)

    async def test_what_was_retrieved_need_not_be_searched_again(self) -> None:
        ran = await run("react", "Action: search[is the pool open on sundays]", "Action: finish[]", "Closed [1].")
        assert ran.site.searched == []

    async def test_at_the_limit_it_answers_from_what_it_has(self) -> None:
        asks = [f"Action: search[question {n}]" for n in "abcdefgh"]
        ran = await run("react", *asks[: react.STEPS], "I found the pool's hours only [1].")
        assert len(ran.site.searched) == react.STEPS
        assert "5 actions are left" in ran.prompt(0)
        assert "1 actions are left" in ran.prompt(4)
        assert react.AT_LIMIT in ran.prompt(5)
        assert ran.text == "I found the pool's hours only."

    async def test_nonsense_is_explained_and_costs_a_step(self) -> None:
        ran = await run("react", "I am a language model.", "Action: finish[done]", "Closed [1].")
        assert react.NO_ACTION in ran.prompt(1)
        assert ran.text == "Closed."

    async def test_a_word_is_looked_up_sentence_by_sentence(self) -> None:
        asks = ["Action: lookup[it]"] * 2 + ["Action: lookup[unicorn]", "Action: finish[]", "Closed [1]."]
        ran = await run("react", "Action: search[ferry]", *asks)
        assert "(1 of 2) [1] It is closed on Sundays." in ran.prompt(2)
        assert "(2 of 2) [2] It needs ten minutes." in ran.prompt(3)
        assert "no (further) sentence has it" in ran.prompt(4)

    async def test_where_nothing_is_found_nothing_is_written(self) -> None:
        ran = await run("react", "Action: search[zoo]", "Action: finish[There is no zoo.]", found=())
        assert (ran.text, len(ran.model.asked)) == ("", 2)

    @pytest.mark.parametrize(
        ("said", "wanted"),
        [
            ("Thought: t\nAction: search[dog tax]", Action("search", "dog tax")),
            ("Action: Search['dog  tax']\nObservation: made up\nAction: finish[]", Action("search", "dog tax")),
            ("**Action:** lookup[tax (2026)]", Action("lookup", "tax (2026)")),
            ("action: finish[", Action("finish", "")),
            ("finish[]", None),
            ("Action: delete[everything]", None),
            ("", None),
        ],
    )
    def test_an_action_is_read_out_of_what_the_model_writes(self, said: str, wanted: Action | None) -> None:
        assert action(said) == wanted


def calls(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool, json.dumps(arguments))


HOURS = [{"days": ["monday"], "opens": "09:00", "closes": "17:00"}]


class TestTools:
    async def test_what_tools_say_are_notes_for_the_answer(self) -> None:
        ran = await run("tools", calls("opening_hours", hours=HOURS, day="tomorrow"), "Enough", "Closed then [1].")
        said = "closed on Tuesday, 2026-05-05; opens next on Monday, 2026-05-11, at 09:00"
        assert said in ran.prompt(1)
        assert said in ran.prompt(2)
        assert ran.text == "Closed then."
        assert ran.kinds == ["model", "tool", "model", "model"]

    async def test_a_page_that_was_looked_up_can_be_cited(self) -> None:
        ran = await run("tools", calls("page", name="The ferry"), "", ANSWER)
        assert [(s.n, s.page_id) for s in ran.sources] == [(1, "p1"), (2, "ferry")]
        assert [c.n for c in ran.citations] == [1, 2]

    async def test_a_slot_that_nobody_filled_becomes_a_question_to_the_visitor(self) -> None:
        ran = await run("tools", calls("opening_hours", hours=HOURS, day=""), "For which day?")
        assert "the visitor must be asked for: day (A date as YYYY-MM-DD" in ran.prompt(1)
        assert (ran.text, len(ran.model.asked)) == ("For which day?", 2)

    @pytest.mark.parametrize(
        "wrong",
        [
            calls("format_disk"),
            ToolCall("date_calculator", "{not json"),
            ToolCall("date_calculator", "[1]"),
            calls("date_calculator", day="the day after the fair"),
            calls("date_calculator", day="9999-12-31", add_days=5),
            calls("date_calculator", day="today", add_days="soon"),
        ],
        ids=lambda call: f"{call.name} {call.arguments[:30]}",
    )
    async def test_a_wrong_call_is_explained_and_harms_nobody(self, wrong: ToolCall) -> None:
        ran = await run("tools", wrong, "Enough", "Closed [1].")
        assert "wrong call: " in ran.prompt(1)
        assert ran.text == "Closed."

    async def test_there_is_an_end_to_calling(self) -> None:
        asks = [calls("date_calculator", day="today", add_days=n) for n in range(9)]
        ran = await run("tools", *asks[: tools.ROUNDS], "Closed [1].")
        assert ran.kinds.count("tool") == tools.ROUNDS
        again = await run("tools", asks[0], asks[0], "Closed [1].")
        assert again.kinds.count("tool") == 1

    async def test_without_calls_it_is_plain(self) -> None:
        assert (await run("tools", "Enough", "Closed [1].")).text == "Closed."


class TestLibrary:
    def test_a_number_once_given_stays(self) -> None:
        library = NumberedSources.of([POOL, source(2, "Tickets.")])
        assert [s.n for s in library.add([FERRY, POOL, MILL])] == [3, 1, 4]
        assert [s.n for s in library.add([MILL])] == [4]
        assert [s.n for s in library.all] == [1, 2, 3, 4]

    def test_the_best_of_every_search_comes_first(self) -> None:
        library = NumberedSources.of([POOL, source(2, "Tickets.")])
        library.add([FERRY, MILL])
        assert [s.n for s in library.ranked] == [1, 3, 2, 4]

    def test_an_empty_one_numbers_from_one(self) -> None:
        assert [s.n for s in NumberedSources.of([]).add([FERRY, MILL])] == [1, 2]


async def test_a_trace_is_no_copy_of_the_prompt() -> None:
    step = base.step("model", "a" * 10_000, "b" * 10_000, perf_counter() - 1.5)
    assert len(step.said) == base.STEP_CHARS
    assert 1_500 <= step.ms < 60_000


async def test_leaving_a_strategy_hangs_up_on_the_model() -> None:
    model = FakeChat("notes", ["One. ", "Two. ", "Three. "])
    task = Task(retrieved(POOL), site="Town", language="English", now=MONDAY, budget=6_000, history_messages=15)
    async with aclosing(
        strategies(StrategyContext(model, SitePrompts(), Site()))["chain-of-thought"].run(task)
    ) as pieces:
        async for piece in pieces:
            if getattr(piece, "text", "") == "One.":
                break
    assert model.stopped == 1
