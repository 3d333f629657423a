"""The judge of a running site beside its raters, with a scripted judge whose errors are known."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from adapters.fake_labels import FakeLabels
from adapters.fake_outcomes import FakeOutcomes
from pipelines.evaluate.labelling.judged import judge_agreement
from pipelines.evaluate.labelling.labelling import Labelling
from schemas.label import JudgeAgreement, NewLabel
from schemas.outcome import Outcome, OutcomeEvent, SecondVerdict, Verdict, VerdictEvent
from tests.asking import NOON


class Town:
    """A log with verdicts and labels."""

    def __init__(self) -> None:
        self.log = FakeOutcomes()
        self.labelling = Labelling(FakeLabels(self.log), lambda: NOON + timedelta(days=1))
        self.asked = 0

    async def answer(
        self,
        *,
        right: bool | None,
        judged: float | None,
        lang: str = "en",
        judge: str = "small",
        again: float | None = None,
    ) -> None:
        """The newest answer: whether two raters call it right, if they labelled it, and its faithfulness, once and
        again."""
        self.asked += 1
        id, at = f"request-{self.asked:04}", NOON + timedelta(seconds=self.asked)
        said = Outcome(asked_at=at, asked_in=lang, lang=lang, question="When?", answer="At nine.", became="answered")
        await self.log.put(OutcomeEvent(site="town", request_id=id, conversation=id, event=said))
        if judge:
            verdict = Verdict(judged_at=at, judge=judge, prompts="a1", faithfulness=judged, context_relevancy=0.5)
            if again is not None:
                verdict = verdict.model_copy(update={"again": SecondVerdict(faithfulness=again)})
            told = VerdictEvent(site="town", request_id=id, conversation=id, asked_at=at, verdict=verdict)
            await self.log.put_verdict(told)
        if right is not None:
            for rater in ("ada", "bo"):
                await self.labelling.put("town", id, NewLabel(mark="right" if right else "partly"), rater)

    async def agreement(self) -> JudgeAgreement:
        return await self.labelling.judge_agreement("town", "faithfulness")


async def test_a_judge_is_held_against_the_labels_that_count() -> None:
    town = Town()
    for right, judged, count in ((True, 1.0, 8), (True, 0.5, 2), (False, 1.0, 1), (False, 0.9, 9), (None, 1.0, 30)):
        for number in range(count):
            await town.answer(right=right, judged=judged, lang="de" if number % 2 else "en")
    found = await town.agreement()
    whole = found.groups[0]
    assert (found.judge, found.judged, whole.questions, whole.judged) == ("small", 50, 20, 50)
    assert whole.people_right is not None
    assert whole.judge_right is not None
    assert whole.true_positives is not None
    assert whole.true_negatives is not None
    assert whole.kappa is not None
    assert whole.right is not None
    assert whole.judged_right is not None
    assert (whole.people_right.value, whole.judge_right.value) == (0.5, 0.45)
    assert (whole.true_positives.value, whole.true_negatives.value) == (0.8, 0.9)
    assert whole.kappa.value == pytest.approx(0.7)  # 17 of 20 agree, by chance half do
    assert whole.judged_right.value == 39 / 50
    assert whole.people_right.value < whole.right.value < 1
    assert whole.trust == "corrected by labels"
    assert [each.group for each in found.groups] == ["all", "lang de", "lang en"]
    assert sum(each.questions for each in found.groups[1:]) == 20
    assert found.constancy is None


async def test_how_often_a_judge_agrees_with_itself() -> None:
    town = Town()
    for first, second in ((1.0, 1.0), (1.0, 0.5), (0.2, 0.9), (0.5, 1.0), (1.0, None)):
        await town.answer(right=None, judged=first, again=second)
    found = await town.agreement()
    assert (found.constancy, found.repeated, found.judged) == (0.5, 4, 5)  # .2 and .9 are both wrong


async def test_without_a_verdict_there_is_no_judge() -> None:
    town = Town()
    await town.answer(right=True, judged=None, judge="")
    assert (await town.agreement()).judge is None
    assert (await town.agreement()).groups == ()


async def test_only_the_newest_judge_counts_and_what_it_decided() -> None:
    town = Town()
    await town.answer(right=True, judged=0.0, judge="older")
    await town.answer(right=True, judged=None)
    await town.answer(right=True, judged=1.0)
    found = await town.agreement()
    assert (found.judge, found.judged, found.other_judges, found.undecided) == ("small", 1, 1, 1)
    assert found.groups[0].trust == "too few labels"


async def test_what_raters_differ_on_does_not_count_until_it_is_settled() -> None:
    town = Town()
    await town.answer(right=None, judged=1.0)
    await town.labelling.put("town", "request-0001", NewLabel(mark="right"), "ada")
    await town.labelling.put("town", "request-0001", NewLabel(mark="wrong"), "bo")
    assert (await town.agreement()).groups[0].questions == 0
    await town.labelling.settle("town", "request-0001", NewLabel(mark="wrong"), "cy")
    people = (await town.agreement()).groups[0].people_right
    assert people is not None
    assert people.value == 0


async def test_the_share_by_both_recovers_what_a_judge_of_known_error_hides() -> None:
    rng, town = random.Random(3), Town()
    for number in range(600):
        right = rng.random() < 0.7
        called = rng.random() < (0.9 if right else 0.2)
        await town.answer(right=right if number < 100 else None, judged=float(called))
    found = judge_agreement(
        await town.labelling.of_site("town"), await FakeLabels(town.log).judged("town", NOON, 1_000), "faithfulness"
    )
    both, labels = found.groups[0].right, found.groups[0].people_right
    assert both is not None
    assert labels is not None
    assert both.low < 0.7 < both.high
    assert both.high - both.low < labels.high - labels.low
