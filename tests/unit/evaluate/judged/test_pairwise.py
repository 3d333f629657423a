"""Answers of two runs side by side, in both orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.evaluate.judged.evaluator import judge_all
from pipelines.evaluate.judged.pairwise import Pairwise, weighed
from pipelines.evaluate.judged.report import advice, judged
from pipelines.evaluate.run import Run
from tests.unit.evaluate import runs
from tests.unit.evaluate.judged.judges import Script, judge

MADE = runs.dataset(6)


@pytest.mark.parametrize(
    ("forth", "back", "preferred", "constant"),
    [
        ("first", "second", 1, 1),  # ours, in both orders
        ("second", "first", 0, 1),
        ("same", "same", 0.5, 1),
        ("first", "first", 0.5, 0),  # what stands first, whichever it is
        ("second", "second", 0.5, 0),
        ("same", "second", 0.5, 0),
    ],
)
def test_both_orders_must_say_the_same(forth: str, back: str, preferred: float, constant: float) -> None:
    found = weighed(forth, back, "why")
    assert found.figures == {"preferred": preferred, "same in both orders": constant}


def longer(text: str) -> dict[str, Any]:
    """A judge that likes long answers, and what stands first where both are as long."""
    first, second = (text.split(f"<{name}-f3nc3>\n")[1].split(f"\n</{name}")[0] for name in ("first", "second"))
    return {"reason": "longer", "better": "first" if len(first) >= len(second) else "second"}


async def test_a_run_against_an_earlier_one_by_hand(tmp_path: Path) -> None:
    """Six answers: 0 longer now, 1 shorter, 3 as long, 4 failed now; 2 and 5, refusals, as before.

    1, 0, 1/2, 0 and twice 1/2: 2.5 of 6. Of the three that are asked two are the same in both orders."""
    live = runs.run(tmp_path / "live", MADE)
    answers: dict[str, dict[str, Any]] = {
        "c0": {"answer": "It costs 0 euros for everybody."},
        "c1": {"answer": "Free."},
        "c3": {"answer": "It costs 5 euros."},
        "c4": {"answer": "", "failed": "timeout", "sources": ()},
    }
    path = runs.run(tmp_path / "now", MADE, answers).path
    measure, model = Pairwise(live), Script(pairwise=longer)
    with Run.begin(path, live.head) as run:
        assert await judge_all(MADE.cases, run, (measure,), [judge(model)]) == ""
    assert len(model.asked) == 6
    (part,) = judged(MADE, Run.read(path), (measure,), "scripted").parts
    group = part.groups["all"]
    assert (part.measure, group.judged, group.of) == ("pairwise 20261123T120000", 6, 6)
    assert group.figures["preferred"].mean == pytest.approx(2.5 / 6)
    assert group.figures["same in both orders"].mean == pytest.approx(2 / 3)
    assert advice(MADE, live, run, (measure,), "scripted") == []


async def test_right_answers_are_read_where_there_are_some(tmp_path: Path) -> None:
    live = runs.run(tmp_path / "live", MADE)
    now = runs.run(tmp_path / "now", MADE, {id: {"answer": "Other."} for id in ("c0", "c2")})
    model = Script(pairwise={"reason": "", "better": "same"})
    for id, known in (("c0", True), ("c2", False)):
        (case,) = [case for case in MADE.cases if case.id == id]
        await Pairwise(live).of(case, now.observed[id], judge(model))
        assert ("# Right answers" in model.asked[-1][1][1].content) == known
