"""What is recorded of the calls of models: all that is begun for a question, within bounds that say what they cut."""

from __future__ import annotations

import asyncio

from pipelines.query.model_calls import CALL_CHARS, STAGE_CHARS, Call, bounded, recorded, start_call
from prompts.loader import ChatMessage, ToolCall

SENTENCE = "A boat costs 7 euros. "


def call(*texts: str, reply: str = "Yes.") -> Call:
    made = Call("answer", tuple(ChatMessage("user", text) for text in texts))
    made.add(reply)
    return made


async def test_what_is_begun_for_a_question_is_recorded_in_its_tasks_too_and_in_no_other() -> None:
    async def ask(step: str) -> None:
        start_call(step, (ChatMessage("user", "When?"),)).add("At 9.", [ToolCall("search", '{"q": "hours"}')])

    async def question(step: str) -> list[str]:
        with recorded() as calls:
            await asyncio.create_task(ask(step))
        start_call("title", ())
        [kept] = bounded(calls)
        assert kept.reply == 'At 9.\nsearch({"q": "hours"})'
        return [each.step for each in calls]

    assert await asyncio.gather(question("answer"), question("rephrase")) == [["answer"], ["rephrase"]]


def test_a_long_call_loses_what_stands_first_and_says_how_much() -> None:
    short = call("Be brief.", "When?")
    [kept] = bounded([short])
    assert ([message.text for message in kept.messages], kept.reply, kept.not_kept) == (
        ["Be brief.", "When?"],
        "Yes.",
        0,
    )
    long = SENTENCE * 2_000
    before = "x" * len(SENTENCE)
    [kept] = bounded([call(before, long, "When?")])
    first, second, last = (message.text for message in kept.messages)
    assert (first, last, kept.reply) == ("", "When?", "Yes.")
    assert second.endswith("euros.")  # no half sentence, which may have half a telephone number
    assert CALL_CHARS - len(SENTENCE) <= len(second) + len(last) + len(kept.reply) <= CALL_CHARS
    assert kept.not_kept == len(before) + len(long) - len(second)


def test_many_calls_have_one_bound_together() -> None:
    kept = bounded([call(SENTENCE * 1_000) for _ in range(20)])
    sizes = [len(each.reply) + sum(len(message.text) for message in each.messages) for each in kept]
    assert len(kept) == 20
    assert STAGE_CHARS - 20 * len(SENTENCE) < sum(sizes) <= STAGE_CHARS
    assert all(each.not_kept for each in kept)
