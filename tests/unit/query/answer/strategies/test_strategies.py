"""Every way to an answer: what the model is asked, what is searched, and what becomes of nonsense."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from time import perf_counter, process_time
from typing import Any, get_args

import pytest

from pipelines.query.answer.strategies import base, loop
from pipelines.query.answer.strategies.base import NumberedSources, StrategyContext, Task
from pipelines.query.answer.strategies.looking import ReAct, ToolCalls
from pipelines.query.answer.strategies.loop import ToolLoop
from pipelines.query.answer.strategies.registry import STRATEGIES, strategies
from pipelines.query.answer.strategies.turns import NO_ACTION, actions, spoken
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import Completion, ModelSilent, NoToolCalls
from pipelines.runtime.settings import StrategyName, ToolCalling
from prompts.loader import ToolCall
from schemas.answer import Step, Token, Usage
from schemas.query import Retrieved, Source
from tests.asking import retrieved, source
from tests.fakes.chat_model import FakeChat
from tests.running import FERRY, MILL, MONDAY, POOL, Ran, Site, run

TASK = Task(retrieved(POOL), site="Town", language="English", now=MONDAY, budget=6_000, history_messages=15)
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

    async def test_a_trial_says_whether_it_thinks(self) -> None:
        told = await run("chain-of-thought", "Closed on Sundays [1].", thinks=False)
        assert (told.text, len(told.model.asked)) == ("Closed on Sundays.", 1)
        told = await run("plain", "[1] says: closed on Sundays", "Closed on Sundays [1].", thinks=True)
        assert (told.text, told.kinds, told.spent) == ("Closed on Sundays.", ["model", "model"], 2)
        assert "[1] says: closed on Sundays" in told.prompt(1)

    async def test_where_a_strategy_has_searched_it_thinks_over_what_was_found_too(self) -> None:
        said = (search("When does the ferry run?"), "[2]: hourly", ANSWER)
        told = await run("retrieval-gate", *said, tool_calls="native", thinks=True)
        assert FERRY.text in told.prompt(1)
        assert [c.n for c in told.citations] == [1, 2]


def calls(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool, json.dumps(arguments))


def search(question: str) -> ToolCall:
    return calls("search", question=question)


class TestRetrievalGate:
    async def test_a_greeting_is_answered_without_sources(self) -> None:
        ran = await run("retrieval-gate", "NO", "Hello! How can I help? [1]")
        assert (ran.text, ran.citations, ran.site.searched) == ("Hello! How can I help?", [], [])
        assert POOL.text not in ran.prompt(1)

    @pytest.mark.parametrize("said", [search("When does the ferry run?"), "Action: search[When does the ferry run?]"])
    async def test_a_search_of_its_own_adds_sources(self, said: ToolCall | str) -> None:
        ran = await run("retrieval-gate", said, ANSWER, tool_calls="text" if isinstance(said, str) else "native")
        assert ran.site.searched == ["When does the ferry run?"]
        assert [(s.n, s.page_id) for s in ran.sources] == [(1, "p1"), (2, "ferry")]
        assert [c.n for c in ran.citations] == [1, 2]
        assert ran.kinds == ["model", "search", "model"]

    @pytest.mark.parametrize("said", [search("is the pool open on sundays"), "I would say yes", "", "No idea: search"])
    async def test_what_is_no_other_question_is_answered_from_what_was_retrieved(self, said: ToolCall | str) -> None:
        ways: list[ToolCalling] = ["native", "text"] if isinstance(said, str) else ["native"]
        for way in ways:
            ran = await run("retrieval-gate", said, "Closed [1].", tool_calls=way)
            assert (ran.text, ran.site.searched) == ("Closed.", [])

    async def test_where_nothing_is_found_nothing_is_written(self) -> None:
        ran = await run("retrieval-gate", search("Where is the zoo?"), "An invention.", found=())
        assert (ran.text, len(ran.model.asked)) == ("", 1)


class TestSelfAsk:
    async def test_smaller_questions_are_searched_one_by_one(self) -> None:
        ran = await run(
            "self-ask",
            search("When does the ferry run?"),
            Completion("Hourly.", Usage(), (search("Who built the mill?"),)),
            "Ada Brook. Enough",
            "Hourly [2], says Ada Brook [3].",
        )
        assert ran.site.searched == ["When does the ferry run?", "Who built the mill?"]
        assert POOL.text in ran.prompt(0)
        assert FERRY.text in ran.prompt(1)
        assert MILL.text in ran.prompt(2)
        notes = ran.prompt(3)[ran.prompt(3).index("<notes-") :]
        assert "Hourly." in notes
        assert "Ada Brook. Enough" in notes
        assert [c.n for c in ran.citations] == [2, 3]
        assert ran.kinds == ["model", "search", "model", "search", "model", "model"]


class TestReAct:
    async def test_it_searches_looks_up_and_finishes(self) -> None:
        ran = await run(
            "react",
            search("When does the ferry run?"),
            calls("lookup", word="minutes"),
            "Enough is known.",
            "Closed on Sundays [1]. Ten minutes [2].",
        )
        assert ran.site.searched == ["When does the ferry run?"]
        assert "[2] It needs ten minutes." in ran.prompt(2)
        assert [c.n for c in ran.citations] == [1, 2]
        assert "Enough is known." in ran.prompt(3)
        assert loop.AT_LIMIT not in ran.prompt(3)
        assert [(s.kind, s.asked) for s in ran.steps if s.kind != "model"] == [
            ("search", "When does the ferry run?"),
            ("lookup", "minutes"),
        ]

    async def test_where_nothing_is_found_nothing_is_written(self) -> None:
        ran = await run("react", search("zoo"), "There is no zoo.", found=())
        assert (ran.text, len(ran.model.asked)) == ("", 2)


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

    async def test_without_calls_it_is_plain(self) -> None:
        assert (await run("tools", "Enough", "Closed [1].")).text == "Closed."


class Slow(Site):
    """Never finds an end."""

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        await asyncio.Event().wait()
        return ()


class TestLoop:
    async def test_calls_and_answers_are_told_with_their_ids(self) -> None:
        made = (replace(search("The ferry?"), id="a"), replace(search("The mill?"), id="b"), search("The pool?"))
        ran = await run("react", Completion("Look.", Usage(), made), "Enough", "Hourly [2].")
        *_, told, ferry, mill, pool = ran.model.asked[1]
        assert (told.role, told.content, told.calls) == ("assistant", "Look.", made)
        assert [m.role for m in (ferry, mill, pool)] == ["tool"] * 3
        assert [m.answers for m in (ferry, mill, pool)] == ["a", "b", told.calls[2].id]
        assert told.calls[2].id
        assert 'n="2"' in ferry.content
        assert 'n="3"' in mill.content
        assert "nothing was found" in pool.content
        assert [s.n for s in ran.sources] == [1, 2, 3]

    async def test_ids_that_a_server_gives_twice_are_made_different(self) -> None:
        ran = await run("react", *[replace(search(q), id="same") for q in ("ferry", "mill")], "Enough", "Hourly [2].")
        ids = [call.id for message in ran.model.asked[2] for call in message.calls]
        assert len(set(ids)) == len(ids) == 2

    @pytest.mark.parametrize(
        "wrong",
        [
            calls("format_disk"),
            ToolCall("date_calculator", "{not json"),
            ToolCall("date_calculator", "[1]"),
            calls("date_calculator", day="the day after the fair"),
            calls("date_calculator", day="9999-12-31", add_days=5),
            calls("date_calculator", day="today", add_days="soon"),
            calls("search"),
        ],
        ids=lambda call: f"{call.name} {call.arguments[:30]}",
    )
    async def test_a_wrong_call_is_explained_and_harms_nobody(self, wrong: ToolCall) -> None:
        ran = await run("tools", wrong, "Enough", "Closed [1].")
        assert ran.model.asked[1][-1].role == "tool"
        assert "wrong call: " in ran.prompt(1)
        assert "wrong call: " not in ran.prompt(2)  # the model's own words are no note
        assert ran.text == "Closed."

    async def test_a_repeated_search_is_not_made_and_ends_the_run(self) -> None:
        ran = await run("react", search("the Ferry"), search("The ferry"), search("the ferry?"), "Hourly [2].")
        assert ran.site.searched == ["the Ferry"]
        assert loop.REPEATED in ran.prompt(2)
        assert ran.text == "Hourly."
        assert loop.AT_LIMIT in ran.prompt(3)

    async def test_what_was_retrieved_need_not_be_searched_again(self) -> None:
        ran = await run("react", search("is the pool open on sundays"), "Enough", "Closed [1].")
        assert ran.site.searched == []

    @pytest.mark.parametrize("made", [search, lambda q: f"Thought: t\nAction: search[{q}]"], ids=["native", "text"])
    async def test_an_endless_loop_is_ended(self, made: Callable[[str], ToolCall | str]) -> None:
        asks = [made(f"question {n}") for n in "abcdefgh"]
        ran = await run("react", *asks[:5], "The pool's hours [1].", tool_calls="native" if made is search else "text")
        assert len(ran.site.searched) == ReAct.way.rounds == 5
        assert loop.AT_LIMIT in ran.prompt(5)
        assert ran.text == "The pool's hours."

    async def test_too_many_calls_at_once_are_left_out(self) -> None:
        many = Completion("", Usage(), tuple(search(f"question {n}") for n in range(50)))
        ran = await run("react", many, "Enough", "Closed [1].")
        assert len(ran.site.searched) == len(ran.model.asked[1][-loop.CALLS - 1].calls) == loop.CALLS

    async def test_what_tools_show_has_an_end(self) -> None:
        long = source(1, "The ferry runs. " * 400).model_copy(update={"page_id": "long"})
        rounds = [Completion("", Usage(), tuple(search(f"ferry {n}{i}") for i in range(4))) for n in range(5)]
        ran = Ran(FakeChat(*rounds[:2], "Hourly [2]."), Site({"ferry": [long]}))
        async for _ in ReAct(StrategyContext(ran.model, SitePrompts(), ran.site)).run(TASK):
            pass
        assert len(ran.model.asked) == 3
        assert len(ran.prompt(1)) < 12_000 + 6_000

    async def test_a_search_that_takes_too_long_leaves_time_for_the_answer(self) -> None:
        model = FakeChat(search("ferry"), "Closed [1].")
        task = replace(TASK, until=perf_counter() + 0.02)
        pieces = [p async for p in ReAct(StrategyContext(model, SitePrompts(), Slow())).run(task)]
        assert [p.said for p in pieces if isinstance(p, Step) and p.kind == "search"] == [loop.TOO_LATE]
        assert "".join(p.text for p in pieces if isinstance(p, Token)) == "Closed."

    async def test_a_refusal_of_tools_is_no_failure(self) -> None:
        ran = await run(
            "react",
            NoToolCalls("no tools"),
            "Thought: The ferry matters.\nAction: search[When does the ferry run?]\nObservation: made up",
            "Thought: How long?\nAction: lookup[minutes]",
            "I am a language model.",
            "Thought: Enough is known.\nAction: finish[done]",
            "Ten minutes [2].",
        )
        assert ran.site.searched == ["When does the ferry run?"]
        assert "- search[question]: Finds passages" in ran.prompt(1)
        assert "- search[question]" not in ran.prompt(0)
        assert "Action: search[{" in ran.prompt(2)
        assert FERRY.text in ran.prompt(2)
        assert "made up" not in ran.prompt(2)
        assert NO_ACTION in ran.prompt(4)
        assert "[2] It needs ten minutes." in ran.prompt(3)
        assert (ran.text, [c.n for c in ran.citations]) == ("Ten minutes.", [2])
        assert [m.role for m in ran.model.asked[4]][-5:] == ["user", "assistant", "user", "assistant", "user"]

    async def test_a_run_may_go_on_in_writing(self) -> None:
        ran = await run("react", search("the ferry"), NoToolCalls("the fallback has none"), "Enough", "Hourly [2].")
        assert 'Action: search[{"question": "the ferry"}]' in ran.prompt(2)
        assert ran.text == "Hourly."

    async def test_a_site_may_insist_on_tool_calls(self) -> None:
        with pytest.raises(NoToolCalls):
            await run("react", NoToolCalls("no tools"), "Action: finish[]", tool_calls="native")


class TestActions:
    SPECS = ToolLoop(StrategyContext(FakeChat(""), SitePrompts(), Site()), TASK, ToolCalls.way)._tools.specs

    @pytest.mark.parametrize(
        ("said", "made"),
        [
            ("Thought: t\nAction: search[dog tax]", search("dog tax")),
            ("Action: Search['dog  tax']\nObservation: made up\nAction: finish[]", search("dog tax")),
            ("**Action:** page[tax (2026)]", calls("page", name="tax (2026)")),
            ('Action: date_calculator[{"day": "today"}]', calls("date_calculator", day="today")),
            ("Action: date_calculator[today]", calls("date_calculator", day="today")),
            ("Action: delete[everything]", calls("delete", input="everything")),
            ("- Action:\n  search [dog tax ] ", search("dog tax")),
            ("action: finish[", None),
            ("Enough", None),
            ("finish[]", "lost"),
            ("", "lost"),
        ],
    )
    def test_an_action_is_read_out_of_what_the_model_writes(self, said: str, made: ToolCall | str | None) -> None:
        turn = spoken(Completion(said, Usage()), self.SPECS)
        assert turn.lost == (made == "lost")
        assert list(turn.calls) == ([made] if isinstance(made, ToolCall) else [])

    @pytest.mark.parametrize("unit", ["\n", " ", "action ", "action x[ ", "thought "])
    def test_no_text_is_looked_through_again_and_again(self, unit: str) -> None:
        """Generous: it takes milliseconds; what grows with the square took twenty seconds."""
        began = process_time()
        spoken(Completion("action x[ " + unit * 30_000 + "x", Usage()), self.SPECS)
        assert process_time() - began < 2

    def test_a_tool_with_several_arguments_tells_its_schema(self) -> None:
        told = actions(self.SPECS).splitlines()
        assert told[0].startswith("- search[question]: Finds passages")
        assert any(line.startswith("- opening_hours[JSON object]: ") and '"closed_on"' in line for line in told)


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
    async with aclosing(
        strategies(StrategyContext(model, SitePrompts(), Site()))["chain-of-thought"].run(TASK)
    ) as pieces:
        async for piece in pieces:
            if getattr(piece, "text", "") == "One.":
                break
    assert model.stopped == 1
