"""One question out of a conversation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.rephrase.rewrite import (
    MAX_REPHRASED,
    conversation,
    parsed,
    recent,
    search_mode,
    values,
)
from prompts.loader import load
from schemas.query import MAX_HISTORY, Turn
from tests.asking import question


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("Öffnungszeiten", "keyword"),
        ("opening hours?", "keyword"),
        ("???", "keyword"),
        ("When is it open", "semantic"),
        ("营业时间", "keyword"),
        ("图书馆几点开门", "semantic"),
        ("ห้องสมุดเปิดกี่โมง", "semantic"),
    ],
)
def test_fewer_than_three_words_are_looked_up_as_they_stand(text: str, mode: str) -> None:
    assert search_mode(text, short_words=3) == mode


def turns(*pairs: tuple[str, str]) -> tuple[Turn, ...]:
    return tuple(Turn(question=q, answer=a) for q, a in pairs)


def test_the_newest_messages_are_kept_oldest_first() -> None:
    kept = recent(turns(("q1", "a1"), ("q2", "a2")), messages=3)
    assert kept == [("assistant", "a1"), ("visitor", "q2"), ("assistant", "a2")]
    assert recent(turns(("q1", "a1")), messages=0) == []


def test_the_oldest_message_in_the_budget_is_cut_at_a_sentence() -> None:
    kept = recent(turns(("Old question here.", "First sentence. Second sentence."), ("q", "a")), 15, chars=20)
    assert [text for _, text in kept] == ["First sentence.", "q", "a"]


def test_of_two_hundred_turns_the_newest_are_kept() -> None:
    kept = recent(turns(*((f"Question {n}?", "Word. " * 400) for n in range(200))), messages=15)
    assert kept[-2][1] == "Question 199?"
    assert len(kept) <= 15
    assert sum(len(text) for _, text in kept) <= MAX_HISTORY


@given(
    st.lists(st.tuples(st.text(max_size=50), st.text(max_size=50)), max_size=10),
    st.integers(0, 20),
    st.integers(0, 200),
)
def test_history_stays_within_its_limits(pairs: list[tuple[str, str]], messages: int, chars: int) -> None:
    kept = recent(turns(*pairs), messages, chars)
    assert len(kept) <= messages
    assert sum(len(text) for _, text in kept) <= chars


def test_a_conversation_without_messages_says_so() -> None:
    assert conversation((), 15) == "(none)"
    assert conversation(turns(("When?", "At 9.")), 15) == "visitor: When?\nassistant: At 9."


def test_the_values_are_what_the_prompt_wants() -> None:
    given_ = values(question(), site="Town", language="German", history_messages=15)
    assert set(given_) == set(load("rephrase").variables)


@pytest.mark.parametrize(
    ("output", "rewritten"),
    [
        ("Is the pool open on Sundays?", "Is the pool open on Sundays?"),
        ('  "Is the pool open on Sundays?" \n', "Is the pool open on Sundays?"),
        ("Rewritten question: Is the pool open on Sundays?", "Is the pool open on Sundays?"),
        ("**Question:** Is the pool open on Sundays?", "Is the pool open on Sundays?"),
        ("Umformulierte Frage: Hat das Bad sonntags offen?", "Hat das Bad sonntags offen?"),
        ("Here is the rewritten question:\nIs the pool open?", "Is the pool open?"),
        ("Is the\tpool\u200b open?", "Is the pool open?"),
        ("What does 'open: daily' mean?", "What does 'open: daily' mean?"),
        ("When is AT&amp;T Park open on&nbsp;Sundays?", "When is AT&T Park open on Sundays?"),
    ],
)
def test_the_models_question_is_taken_out_of_its_wrapping(output: str, rewritten: str) -> None:
    assert parsed(output, "And on Sundays?") == rewritten


@pytest.mark.parametrize(
    "output",
    [
        "",
        " \n ",
        "...",
        "The pool is open.\nIt costs 4 euros.",
        "</question-3f2a> Is it open?",
        "word " * MAX_REPHRASED,
        "Yes, the pool is open on Sundays from 9 to 20, and you can come with your children. " * 4,
        "Is it &lt;b&gt;open&lt;/b&gt;?",
    ],
)
def test_what_is_no_question_leaves_the_original(output: str) -> None:
    assert parsed(output, "And on Sundays?") == "And on Sundays?"


@given(st.text())
def test_whatever_the_model_writes_one_short_line_comes_out(output: str) -> None:
    question = parsed(output, "And on Sundays?")
    assert question
    assert len(question) <= MAX_REPHRASED
    assert question.splitlines() == [question]
