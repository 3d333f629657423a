"""A judge may take a sentence away; nothing that it does delays an answer for long, or costs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import pytest

from pipelines.query.answer.judging import Claim, Judge, ModelJudge, RerankerJudge, Verdicts
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import Completion, ModelDown, ModelUnfounded
from prompts.loader import fence
from schemas.answer import Usage
from schemas.query import Question
from tests.asking import question, source
from tests.fakes.chat_model import FakeChat
from tests.running import POOL, run

SAID = ["The pool is closed on Sun", "days [1]. Swimmers love the blue slide [1]. Ask at the desk."]
SLIDE = "Swimmers love the blue slide."


class Scripted:
    """Finds the sentences with these words not borne out; remembers what it was asked."""

    def __init__(self, *refuted: str, chance: float = 0.0) -> None:
        self.refuted = refuted
        self.chance = chance
        self.claims: list[Claim] = []

    async def entailed(self, claims: Sequence[Claim], request: Question) -> Verdicts:
        self.claims += claims
        chances = [self.chance if any(word in claim.sentence for word in self.refuted) else 1.0 for claim in claims]
        return Verdicts(tuple(chances), Usage(completion_tokens=1))


class Silent:
    async def entailed(self, claims: Sequence[Claim], request: Question) -> Verdicts:
        await asyncio.Event().wait()
        return Verdicts(())


class Broken:
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def entailed(self, claims: Sequence[Claim], request: Question) -> Verdicts:
        raise self.error


def judge(entails: Any, least: float = 0.5, seconds: float = 5.0) -> Judge:
    return Judge(entails.entailed, least, seconds)


async def test_what_a_judge_refutes_is_taken_back_and_told_again_without_it() -> None:
    scripted = Scripted("slide")
    ran = await run("plain", SAID, judge=judge(scripted))
    assert ran.taken_back == ["The pool is closed on Sundays. Swimmers love the blue slide. Ask at the desk."]
    assert ran.text == "The pool is closed on Sundays. Ask at the desk."
    assert [(c.n, ran.text[c.start : c.end]) for c in ran.citations] == [(1, "The pool is closed on Sundays")]
    assert ran.left_out == 1
    assert ran.spent == 2  # the judge's tokens count
    assert [step.said for step in ran.steps][:2] == ["1 of 2 refuted", f"left out: entailment {SLIDE!r}"]
    # Asked about what cites, and with what it cites.
    assert [(claim.sentence, claim.sources) for claim in scripted.claims] == [
        ("The pool is closed on Sundays.", (POOL,)),
        (SLIDE, (POOL,)),
    ]


async def test_what_a_judge_bears_out_stays_as_it_was() -> None:
    ran = await run("plain", SAID, judge=judge(Scripted()))
    assert (ran.taken_back, ran.left_out) == ([], 0)
    assert "blue slide" in ran.text


@pytest.mark.parametrize(("least", "stays"), [(0.3, True), (0.5, False)])
async def test_how_sure_a_judge_must_be_is_set(least: float, stays: bool) -> None:
    ran = await run("plain", SAID, judge=judge(Scripted("slide", chance=0.4), least))
    assert ("blue slide" in ran.text) == stays


async def test_what_the_rules_have_left_out_needs_no_judge() -> None:
    scripted = Scripted("99")
    ran = await run("plain", "A card costs 99 euros [1]. The pool opens at 9 [1].", judge=judge(scripted))
    assert [claim.sentence for claim in scripted.claims] == ["The pool opens at 9."]
    assert (ran.text, ran.taken_back, ran.left_out) == ("The pool opens at 9.", [], 1)


async def test_where_nothing_is_left_the_model_has_failed() -> None:
    with pytest.raises(ModelUnfounded, match="entailment"):
        await run("plain", "Swimmers love the blue slide [1].", judge=judge(Scripted("slide")))


@pytest.mark.parametrize("error", [ModelDown("away"), RuntimeError("CUDA error"), ValueError("no number")])
async def test_a_judge_that_fails_leaves_the_rules_alone(error: Exception) -> None:
    ran = await run("plain", SAID, judge=judge(Broken(error)))
    assert (ran.taken_back, ran.left_out) == ([], 0)
    assert "blue slide" in ran.text
    assert ran.steps[0].said == type(error).__name__


async def test_a_slow_judge_is_not_waited_for() -> None:
    began = perf_counter()
    ran = await run("plain", SAID, judge=judge(Silent(), seconds=0.25))
    assert "blue slide" in ran.text
    assert ran.steps[0].said == "TimeoutError"
    assert perf_counter() - began < 5


async def test_a_judge_is_not_asked_when_the_visitors_time_is_over() -> None:
    scripted = Scripted("slide")
    ran = await run("plain", SAID, judge=judge(scripted), until=perf_counter() + 0.5)
    assert scripted.claims == []
    assert "blue slide" in ran.text


async def test_a_judge_that_forgets_some_sentences_says_nothing_of_them() -> None:
    class Forgetful:
        async def entailed(self, claims: Sequence[Claim], request: Question) -> Verdicts:
            return Verdicts((None,))

    ran = await run("plain", SAID, judge=judge(Forgetful()))
    assert "blue slide" in ran.text


CLAIMS = [
    Claim("The pool is closed on Sundays.", (POOL,)),
    Claim("It snows [now].", (POOL, source(2, "Snow."))),
]


class TestModel:
    @pytest.mark.parametrize(
        ("said", "chances"),
        [
            ("1: yes\n2: no", (1.0, 0.0)),
            ("**1.** Yes, it does.\n- 2) NO", (1.0, 0.0)),
            ("2: no", (None, 0.0)),
            ("1: maybe\n3: no", (None, None)),
            ("", (None, None)),
            ("yes\nno", (None, None)),
        ],
    )
    async def test_verdicts_are_read_out_of_what_it_writes(self, said: str, chances: tuple[float | None, ...]) -> None:
        found = await ModelJudge(FakeChat(said), SitePrompts()).entailed(CLAIMS, question())
        assert found.chances == chances
        assert found.usage is not None

    async def test_all_sentences_are_asked_about_in_one_call(self) -> None:
        model = FakeChat(Completion("1: yes\n2: yes", Usage()))
        await ModelJudge(model, SitePrompts()).entailed(CLAIMS, question())
        [messages] = model.asked
        token = fence(question().request_id)
        asked = messages[-1].content
        assert asked.count(f"<source-{token} ") == 2
        begins = asked.index(f"<statements-{token}>")
        assert "1: The pool is closed on Sundays. [1]\n2: It snows [now]. [1][2]" in asked[begins:]


class Scores:
    """Scores by a word."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Sequence[str]]] = []

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        self.asked.append((question, passages))
        return [0.9 if "closed" in passage else 0.1 for passage in passages]


class TestReranker:
    async def test_the_best_passage_counts(self) -> None:
        scores = Scores()
        claims = [Claim("Closed?", (source(2, "Snow."), POOL)), Claim("It snows.", (source(2, "Snow."),))]
        assert (await RerankerJudge(scores).entailed(claims, question())).chances == (0.9, 0.1)
        assert scores.asked[1] == ("It snows.", ["Pool\nSnow."])

    async def test_a_long_passage_is_read_in_stretches_of_whole_sentences(self) -> None:
        scores = Scores()
        long = source(1, "The ferry runs every hour of the day. " * 60 + "It is closed in winter.")
        assert (await RerankerJudge(scores).entailed([Claim("Closed.", (long,))], question())).chances == (0.9,)
        [(_, windows)] = scores.asked
        assert len(windows) == 3
        assert all(len(window) <= 1_010 and window.startswith("Pool\nThe ferry") for window in windows)
