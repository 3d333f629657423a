"""Who labels what, what counts, and what becomes of it, over the log in memory."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.fake_labels import FakeLabels
from adapters.fake_outcomes import FakeOutcomes
from pipelines.evaluate.conversions import labelled_questions
from pipelines.evaluate.dataset import BadDataset
from pipelines.evaluate.judged.labels import load_labels
from pipelines.evaluate.labelling.export import line
from pipelines.evaluate.labelling.labelled import LabelsStand, NothingToSettle, counting
from pipelines.evaluate.labelling.labelling import Labelling, told
from pipelines.evaluate.labelling.ports import Candidate, UnknownQuestion
from pipelines.evaluate.labelling.queue import left, sample
from pipelines.evaluate.question_sets import recognised
from schemas.label import Mark, NewLabel
from schemas.outcome import Became, Hit, Outcome, OutcomeEvent
from tests.asking import NOON

POOL = Hit(page_id="pool", lang="en", field="content", ord=0, score=1, cited=True)


def candidate(n: int, became: Became = "answered", lang: str = "en", **more: Any) -> Candidate:
    return Candidate(f"request-{n:04}", lang, became, **({"disliked": False, "raters": ()} | more))


def test_every_stratum_has_its_turn_and_what_is_disliked_comes_first() -> None:
    asked = [candidate(n) for n in range(50)] + [candidate(n, "refused", "de") for n in range(50, 55)]
    asked += [candidate(60, disliked=True), candidate(61, "refused", disliked=True)]
    found = sample("town", asked, per_stratum=10)
    assert {each.request_id for each in found[:2]} == {"request-0060", "request-0061"}
    assert Counter((each.became, each.lang) for each in found[2:]) == {("answered", "en"): 10, ("refused", "de"): 5}
    assert [each.became for each in found[2:8]] == ["answered", "refused"] * 3
    assert found == sample("town", asked[::-1], per_stratum=10)
    assert {each.request_id for each in found} != {each.request_id for each in sample("town", asked, 10, seed=1)}


def test_new_questions_move_no_others_and_displace_none_that_is_labelled() -> None:
    asked = [candidate(n) for n in range(30)]
    before = [each.request_id for each in sample("town", asked, 30)]
    after = [each.request_id for each in sample("town", [*asked, *(candidate(n) for n in range(30, 60))], 60)]
    assert [id for id in after if id in before] == before
    last = before[-1]
    labelled = [candidate(n, raters=("ada",) if f"request-{n:04}" == last else ()) for n in range(30)]
    assert last in [each.request_id for each in sample("town", labelled, 3)]


def test_a_rater_first_gets_what_waits_for_a_second_label() -> None:
    one = [
        candidate(1),
        candidate(2, raters=("bo",)),
        candidate(3, raters=("ada",)),
        candidate(4, raters=("bo", "eve")),
    ]
    assert [each.request_id for each in left(one, "ada")] == ["request-0002", "request-0001"]
    assert [each.request_id for each in left(one, "bo")] == ["request-0003", "request-0001"]


class Desk:
    """Labelling, over questions that were asked a minute apart."""

    def __init__(self) -> None:
        self.log = FakeOutcomes()
        self.labelling = Labelling(FakeLabels(self.log), lambda: NOON + timedelta(days=1))

    async def ask(self, n: int, became: Became = "answered", **more: Any) -> str:
        said = {"asked_at": NOON + timedelta(minutes=n), "asked_in": "en", "lang": "en", "became": became}
        words = {"question": f"When does pool {n} open?", "answer": "At nine.", "hits": (POOL,)}
        id = f"request-{n:04}"
        event = Outcome.model_validate(said | words | more)
        await self.log.put(OutcomeEvent(site="town", request_id=id, conversation="c1", event=event))
        return id

    async def say(self, rater: str, id: str, mark: Mark, **more: Any) -> None:
        await self.labelling.put("town", id, NewLabel.model_validate({"mark": mark} | more), rater)

    async def export(self) -> str:
        found = await self.labelling.of_site("town")
        return "".join([line(each, await self.labelling.earlier(each)) for each in found])


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_a_label_may_be_changed_until_another_rater_has_given_theirs(desk: Desk) -> None:
    id = await desk.ask(1)
    await desk.say("ada", id, "wrong")
    await desk.say("ada", id, "partly", why="No price.")
    hidden = told(await desk.labelling.get("town", id), "bo")
    assert (hidden.labels, hidden.hidden, hidden.state) == ((), 1, "one")
    assert [label.mark for label in told(await desk.labelling.get("town", id), "ada").labels] == ["partly"]
    await desk.say("bo", id, "right")
    for viewer in ("ada", "bo", "eve"):
        seen = told(await desk.labelling.get("town", id), viewer)
        assert ([label.mark for label in seen.labels], seen.hidden) == (["partly", "right"], 0)
    for rater in ("ada", "eve"):
        with pytest.raises(LabelsStand):
            await desk.say(rater, id, "right")
    queue = await desk.labelling.queue("town", "eve")
    assert (queue.sample, queue.both, queue.yours, queue.next) == (1, 1, 0, ())


async def test_two_that_differ_are_settled(desk: Desk) -> None:
    id = await desk.ask(1)
    verdict = NewLabel(mark="wrong", better="At ten.")
    await desk.say("ada", id, "right")
    with pytest.raises(NothingToSettle):
        await desk.labelling.settle("town", id, verdict, "ada")
    await desk.say("bo", id, "wrong")
    assert counting(await desk.labelling.get("town", id)) is None
    await desk.labelling.settle("town", id, verdict, "ada")
    seen = told(await desk.labelling.get("town", id), "eve", lambda rater: rater.upper())
    assert (seen.state, seen.settled and (seen.settled.mark, seen.settled.rater)) == ("settled", ("wrong", "ADA"))
    assert [label.rater for label in seen.labels] == ["ADA", "BO"]
    [pair] = [each for each in (await desk.labelling.agreement("town")).pairs if each.group == "all"]
    assert pair.same is not None
    assert pair.same.value == 0  # what was settled later changes nothing


async def test_nothing_is_labelled_whose_words_are_not_kept(desk: Desk) -> None:
    for id in (await desk.ask(1, question=None), await desk.ask(2, answer=None), "request-0009"):
        with pytest.raises(UnknownQuestion):
            await desk.say("ada", id, "right")
    with pytest.raises(ValueError, match="of what can be answered"):
        NewLabel(mark="unanswerable", better="At ten.")


async def test_two_raters_agree_beyond_their_base_rates(desk: Desk) -> None:
    """By hand: of 10, both right 5, both wrong 2, ada alone 2, bo alone 1: observed .7, by chance .7 * .6 + .3 * .4."""
    marks: list[tuple[Mark, Mark]] = [("right", "right")] * 5 + [("wrong", "partly")] * 2
    marks += [("right", "wrong")] * 2 + [("wrong", "right")]
    for n, (ada, bo) in enumerate(marks):
        id = await desk.ask(n, asked_in="de" if n < 6 else "en")
        await desk.say("bo", id, bo)
        await desk.say("ada", id, ada)
    await desk.say("eve", await desk.ask(20), "right")
    whole, german, english = (await desk.labelling.agreement("town")).pairs
    assert (whole.group, german.group, english.group) == ("all", "lang de", "lang en")
    assert (whole.one, whole.other, whole.questions, german.questions) == ("ada", "bo", 10, 6)
    assert whole.kappa is not None
    assert whole.same is not None
    assert whole.one_right is not None
    assert whole.other_right is not None
    assert whole.kappa.value == pytest.approx((0.7 - 0.54) / (1 - 0.54))
    assert (whole.same.value, whole.one_right.value, whole.other_right.value) == (0.5, 0.7, 0.6)
    assert whole.kappa.low < whole.kappa.value < whole.kappa.high


async def test_to_what_cannot_be_answered_a_refusal_is_right(desk: Desk) -> None:
    id = await desk.ask(1, "refused")
    await desk.say("ada", id, "right")
    await desk.say("bo", id, "unanswerable")
    [pair, _] = (await desk.labelling.agreement("town")).pairs
    assert pair.one_right == pair.other_right
    assert pair.same is not None
    assert pair.same.value == 0


async def test_one_file_is_labels_for_a_judge_and_cases_of_a_dataset(desk: Desk, tmp_path: Path) -> None:
    said: list[tuple[Became, list[tuple[Mark, dict[str, Any]]]]] = [
        ("answered", [("right", {}), ("right", {"pages": ("baths",), "why": "Both do."})]),
        ("answered", [("wrong", {"better": "At ten.", "pages": ("hours",)})]),
        ("refused", [("unanswerable", {})]),
        ("refused", [("wrong", {})]),
        ("answered", [("right", {}), ("wrong", {})]),
        ("page", [("unanswerable", {})]),
    ]
    for n, (became, labels) in enumerate(said, 1):
        id = await desk.ask(n, became)
        for rater, (mark, more) in zip(("ada", "bo"), labels, strict=False):
            await desk.say(rater, id, mark, **more)
    file = tmp_path / "labels.ndjson"
    file.write_text(await desk.export(), encoding="utf-8")
    assert "ada" not in file.read_text("utf-8")
    assert {int(label.case[-1]): label.right for label in load_labels(file)} == {
        1: True, 2: False, 3: True, 4: False, 6: False,
    }  # fmt: skip
    assert recognised(file) == "labels"
    cases = {int(case.id[-1]): case for case in labelled_questions(file)}
    assert {n: case.expect for n, case in cases.items()} == {
        1: "answer", 2: "answer", 3: "refuse", 4: "answer", 6: "refuse",
    }  # fmt: skip
    assert [(cases[n].answers, cases[n].pages) for n in (1, 2, 3, 4, 6)] == [
        (("At nine.",), ("baths",)),
        (("At ten.",), ("hours",)),
        ((), ()),
        ((), ()),
        ((), ()),
    ]
    assert (cases[1].note, cases[1].tags, cases[1].history) == ("Both do.", ("answered", "right"), ())
    assert cases[2].history == ("When does pool 1 open?",)


@pytest.mark.parametrize("written", ["no JSON", '{"case": "r1"}', json.dumps({"mark": "good"})])
def test_a_file_of_something_else_is_no_labels(written: str, tmp_path: Path) -> None:
    file = tmp_path / "labels.ndjson"
    file.write_text(written, encoding="utf-8")
    with pytest.raises(BadDataset, match="line 1: not what `pagewire labels export` writes"):
        labelled_questions(file)
