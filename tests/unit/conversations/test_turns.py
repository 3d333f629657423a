"""Turns: what a conversation looks like after each thing that can happen to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipelines.conversations import turns as module
from pipelines.conversations.turns import (
    ConversationOwner,
    TurnOutcome,
    begun,
    by_day,
    changed_turn,
    completed,
    continued,
    history,
    is_open,
    last_turn,
    newest,
    shown,
    summary,
)
from schemas.answer import Answered, Citation, Failed, QuestionMeaning, QuestionRephrased, SourcesFound, WholeTable
from schemas.conversation import Conversation, ConversationSummary
from schemas.query import MAX_HISTORY, MAX_QUESTION, PendingCall, Question, Turn
from tests.asking import NOON, question, source

OWNER = ConversationOwner("town", "visitor:v1")


def numbered(n: int, text: str = "") -> Question:
    return question(text or f"Question {n}?").model_copy(
        update={"request_id": f"request-{n:04}", "asked_at": NOON + timedelta(minutes=n)}
    )


def asked(count: int) -> Conversation:
    conversation = begun(OWNER, numbered(1), "3.4.1")
    for n in range(2, count + 1):
        conversation = continued(conversation, numbered(n), "3.4.1")
    return conversation


def answer(text: str = "Daily.", **more: Any) -> Answered:
    return Answered(text=text, citations=(), sources=(), extractive=False, **more)


def ended(conversation: Conversation, n: int, end: Answered | Failed) -> Conversation:
    return completed(conversation, f"request-{n:04}", TurnOutcome("R", 0, end))


def test_the_title_is_the_first_question_in_one_line() -> None:
    text = "When does\n  the pool " + "open " * 50
    conversation = begun(OWNER, numbered(1, text), "3.4.1")
    assert conversation.title.startswith("When does the pool open open")
    assert len(conversation.title) == module.TITLE_CHARS
    assert continued(conversation, numbered(2), "3.4.1").title == conversation.title


def test_events_add_up_to_an_outcome() -> None:
    outcome = TurnOutcome()
    cited = source(1, "text").model_copy(update={"cited": True})
    for event in (QuestionRephrased(question="R", mode="semantic"), SourcesFound(grade=1, sources=(cited,)), answer()):
        outcome = outcome.after(event)
    assert outcome == TurnOutcome("R", 1, answer())


def test_a_right_that_ends_takes_its_answers_along() -> None:
    public, secret = numbered(1), numbered(2).model_copy(update={"groups": ("staff", "board")})
    conversation = continued(begun(OWNER, public, "3.4.1"), secret, "3.4.1")
    for n in (1, 2):
        conversation = ended(
            conversation, n, answer(f"Answer {n}.", tables=(WholeTable(n=1, start=0, text="| Day |"),))
        )
    for groups in ((), ("staff",)):
        first, second = shown(conversation, groups).turns
        assert (first.answer, first.withheld) == ("Answer 1.", False)
        assert (second.question, second.answer, second.tables, second.rephrased) == ("Question 2?", "", (), None)
        assert second.withheld
        assert [turn.answer for turn in history(conversation, 9, groups)] == ["Answer 1."]
    assert [turn.answer for turn in shown(conversation, ("board", "staff")).turns] == ["Answer 1.", "Answer 2."]
    assert len(history(conversation, 9, ("board", "staff"))) == 2


def test_an_answer_is_kept_with_what_it_cites_but_without_the_passages() -> None:
    citation = Citation(n=1, start=0, end=5, quote="Daily.")
    sources = (source(1, "a passage").model_copy(update={"cited": True}), source(2, "another"))
    table, topic = WholeTable(n=1, start=0, text="| Day |"), QuestionMeaning(label="Pool", question="When? – Pool")
    end = Answered(
        text="Daily.", citations=(citation,), sources=sources, extractive=True, tables=(table,), narrower=(topic,)
    )
    [turn] = completed(asked(1), "request-0001", TurnOutcome("Rephrased?", 1, end)).turns
    assert (turn.state, turn.answer, turn.rephrased, turn.grade) == ("answered", "Daily.", "Rephrased?", 1)
    assert (turn.citations, turn.tables, turn.narrower) == ((citation,), (table,), (topic,))
    assert [(s.n, s.page_id, s.url) for s in turn.sources] == [(1, "p1", "/p1")]
    assert "a passage" not in turn.model_dump_json()


def test_the_first_answer_stays_and_one_that_failed_may_still_get_one() -> None:
    answered = ended(asked(1), 1, answer("first"))
    assert ended(answered, 1, answer("second")) == answered
    assert ended(answered, 1, Failed(code="x", message="")) == answered
    failed = ended(asked(1), 1, Failed(code="timeout", message="words"))
    assert (failed.turns[0].state, failed.turns[0].error) == ("failed", "timeout")
    healed = ended(failed, 1, answer("late"))
    assert (healed.turns[0].state, healed.turns[0].error, healed.turns[0].answer) == ("answered", None, "late")


def test_without_an_end_or_without_the_turn_nothing_is_completed() -> None:
    assert completed(asked(1), "request-0001", TurnOutcome("R")) == asked(1)
    assert completed(asked(1), "request-9999", TurnOutcome("R", 0, answer())) == asked(1)


def test_a_stopped_answer_gets_what_was_written_and_is_open_until_then() -> None:
    stopped = changed_turn(asked(1), "request-0001", state="stopped")
    assert is_open(stopped.turns[0])
    with_text = ended(stopped, 1, answer("Half an ans", stopped=True)).turns[0]
    assert (with_text.state, with_text.answer, is_open(with_text)) == ("stopped", "Half an ans", False)
    without = ended(stopped, 1, Failed(code="timeout", message="")).turns[0]
    assert (without.state, without.answer, is_open(without)) == ("stopped", "", False)


def test_the_history_is_what_was_answered_and_is_still_shown() -> None:
    conversation = asked(4)
    for n in (1, 2, 3):
        conversation = ended(conversation, n, answer(f"answer {n}"))
    conversation = changed_turn(conversation, "request-0002", removed=True)
    assert [(t.question, t.answer) for t in history(conversation, 15)] == [
        ("Question 1?", "answer 1"),
        ("Question 3?", "answer 3"),
    ]


@pytest.mark.parametrize(("messages", "turns"), [(15, 8), (2, 1), (1, 1), (0, 0)])
def test_of_a_long_history_the_newest_messages_are_kept(messages: int, turns: int) -> None:
    conversation = asked(40)
    for n in range(1, 41):
        conversation = ended(conversation, n, answer(f"answer {n}"))
    said = history(conversation, messages)
    assert [turn.answer for turn in said] == [f"answer {n}" for n in range(41 - turns, 41)]


def test_the_history_is_no_longer_than_what_is_read_of_it() -> None:
    conversation = asked(10)
    for n in range(1, 11):
        conversation = ended(conversation, n, answer("Word by word it goes on. " * 120 + f"The end of {n}."))
    said = history(conversation, 15)
    assert [turn.question for turn in said] == [f"Question {n}?" for n in (7, 8, 9, 10)]
    assert sum(len(turn.question) + len(turn.answer) for turn in said) <= MAX_HISTORY
    assert [turn.answer.endswith(f"The end of {n}.") for n, turn in enumerate(said, 7)] == [False, True, True, True]
    assert said[0].answer.endswith("it goes on.")


def test_a_question_of_the_history_is_as_long_as_a_question_may_be() -> None:
    [turn] = newest([Turn(question="too long " * MAX_HISTORY, answer="y " * MAX_HISTORY)], 15)
    assert MAX_QUESTION - 10 < len(turn.question) <= MAX_QUESTION
    assert MAX_HISTORY - 20 < len(turn.question) + len(turn.answer) <= MAX_HISTORY
    word, said = (
        Turn(question="x" * (MAX_QUESTION + 1), answer="One word is no question."),
        Turn(question="And?", answer="So."),
    )
    assert newest([word, said], 15) == (said,)


def test_a_turn_of_the_history_tells_its_language_and_the_pages_that_were_cited() -> None:
    sources = tuple(source(n, "a passage").model_copy(update={"cited": n != 2}) for n in (1, 2, 3, 3, 4, 5))
    told = Answered(text="Daily from 9.", citations=(), sources=sources, extractive=True)
    [turn] = history(ended(asked(1), 1, told), 15)
    assert turn.lang == "en"
    assert turn.pages == ("town:en:p1", "town:en:p3", "town:en:p4")


def test_a_conversation_of_200_questions_keeps_the_newest_100() -> None:
    conversation = asked(200)
    assert len(conversation.turns) == module.KEPT_TURNS
    assert conversation.turns[-1].request_id == "request-0200"
    assert summary(conversation).turns == 100


def test_what_was_taken_back_is_not_shown() -> None:
    conversation = changed_turn(asked(2), "request-0002", removed=True)
    assert [turn.request_id for turn in shown(conversation).turns] == ["request-0001"]
    last = last_turn(conversation)
    assert last is not None
    assert last.request_id == "request-0001"
    assert summary(conversation).turns == 1
    assert last_turn(changed_turn(conversation, "request-0001", removed=True)) is None


def test_a_visitor_does_not_see_what_is_only_ours() -> None:
    told = shown(asked(1)).model_dump_json()
    for ours in ("position", "deadline", "removed", "owner", "visitor:"):
        assert ours not in told


def listed(at: datetime) -> ConversationSummary:
    return ConversationSummary(conversation_id="conversation-1", title="t", created_at=at, updated_at=at, turns=1)


@pytest.mark.parametrize(
    ("age", "offset", "group"),
    [
        ({"minutes": 1}, 0, "today"),
        ({"minutes": -1}, 0, "today"),  # another gateway's clock is ahead
        ({"hours": 12}, 0, "today"),
        ({"hours": 12, "minutes": 1}, 0, "yesterday"),
        ({"hours": 12, "minutes": 1}, 120, "today"),  # in Berlin it was past midnight
        ({"hours": 12}, -300, "yesterday"),  # in New York it was not
        ({"days": 2}, 0, "last_week"),
        ({"days": 7}, 0, "last_week"),
        ({"days": 8}, 0, "older"),
    ],
)
def test_conversations_are_sorted_by_the_visitors_days(age: dict[str, int], offset: int, group: str) -> None:
    summaries = [listed(datetime(2026, 5, 4, 12, tzinfo=UTC) - timedelta(**age))]
    groups = by_day(summaries, datetime(2026, 5, 4, 12, tzinfo=UTC), timedelta(minutes=offset)).model_dump()
    assert [name for name, members in groups.items() if members] == [group]


def test_a_call_that_waits_goes_along_and_a_tool_is_no_page() -> None:
    waiting = PendingCall(tool="average", arguments='{"grades": [5]}', missing=("credits",))
    result = source(2, "Average: 5").model_copy(update={"kind": "tool", "page_id": "average", "cited": True})
    page = source(1, "Text.").model_copy(update={"cited": True})
    end = answer("Which credits?").model_copy(update={"pending": waiting, "sources": (page, result)})
    conversation = ended(asked(1), 1, end)
    assert [each.kind for each in conversation.turns[0].sources] == ["page", "tool"]
    [turn] = history(conversation, 15)
    assert (turn.pending, [key.rpartition(":")[2] for key in turn.pages]) == (waiting, ["p1"])
