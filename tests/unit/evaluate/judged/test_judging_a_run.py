"""A run judged: everything once, kept line by line, within a budget, gone on with; and what is said of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.evaluate.dataset import Case, Dataset
from pipelines.evaluate.evaluator import AsyncEvaluator
from pipelines.evaluate.judged.judge import GIVE_UP
from pipelines.evaluate.judged.measure import JudgedMeasure
from pipelines.evaluate.judged.registry import named
from pipelines.evaluate.judged.report import Judged, JudgedGroup, advice, judged
from pipelines.evaluate.run import BadRun, Run
from pipelines.runtime.errors import Permanent
from schemas.evaluation import JudgeNumbers
from tests.unit.evaluate import runs
from tests.unit.evaluate.judged.judges import Reply, Script, Written, judge

SCORE = named(["score"])
JUDGE = "scripted"
REFUSED = {"sources": (), "answer": "Nothing was found.", "grade": 5}


def answerable(cases: int) -> Dataset:
    """Of twelve cases of `runs.dataset` eight: those that can be answered."""
    made = runs.dataset(cases)
    return Dataset(made.name, tuple(case for case in made.cases if case.expect == "answer"), made.version)


def marks(of: Callable[[str], Reply]) -> Script:
    return Script(score=lambda text: of(text.split("<question-f3nc3>\n")[1].split()[2]))  # "What does 7 cost?": 7


def mark(score: float) -> dict[str, Any]:
    return {"reason": f"worth {score}", "score": score}


async def judge_run(
    path: Path,
    dataset: Dataset,
    model: Script,
    measures: tuple[JudgedMeasure, ...] = SCORE,
    *,
    repeats: int = 1,
    at_once: int = 4,
    **budget: int,
) -> tuple[Run, str]:
    """Of a run that is asked already."""
    with Run.begin(path, Run.read(path).head) as run:
        judges = [judge(model, **budget) for _ in range(repeats)]
        return run, await AsyncEvaluator(measures, judges, at_once).judge(dataset.cases, run)


def asked(path: Path, dataset: Dataset, answers: dict[str, dict[str, Any]] | None = None) -> Path:
    return runs.run(path, dataset, answers).path


def whole(report: Judged) -> JudgedGroup:
    return report.parts[0].groups["all"]


async def test_a_report_by_hand(tmp_path: Path) -> None:
    """Eight answers: one refused (0), one unreadable, one whose judge fails; the others 5 5 4 3 2.

    Right are 3 of 6 judged; of all eight between 3/8 and 5/8."""
    made = answerable(12)  # 0 1 3 4 6 7 9 10
    path = asked(tmp_path / "r", made, {"c10": REFUSED})
    said: dict[str, Reply] = {"0": mark(5), "1": mark(5), "3": mark(4), "4": mark(3), "6": mark(2)}
    model = marks(lambda n: said.get(n, "no JSON" if n == "7" else Permanent("away")))
    run, why = await judge_run(path, made, model)
    report = judged(made, Run.read(path), SCORE, JUDGE)
    group = whole(report)
    assert (why, group.judged, group.of) == ("", 6, 8)
    assert report.parts[0].unjudged == {"judge-unreadable": 1, "refused": 1}
    right = group.figures["judge right"]
    assert (right.cases, right.mean, right.at_worst, right.at_best) == (6, 0.5, 3 / 8, 5 / 8)
    assert group.figures["judge score"].mean == pytest.approx((1 + 1 + 0.8 + 0.6 + 0.4 + 0) / 6)
    assert right.low < 0.2
    assert right.high > 0.8
    german = report.parts[0].groups["lang de"]  # 1 3 7 9, of which 7 and 9 are not judged
    assert (german.judged, german.of, german.figures["judge right"].mean) == (2, 4, 1.0)
    reasons = {verdict.case: verdict.reason for verdict in run.verdicts.values()}
    assert (reasons["c4"], reasons["c10"], reasons["c7"]) == ("worth 3", "nothing was answered", "")


async def test_claims_are_kept_as_they_are_and_rounded(tmp_path: Path) -> None:
    """Eight answers: four whose only claim is entailed, four whose claim is independent and worth f = .4. The mean is
    .7; rounded from .4 on it is 1, and the verdicts keep what was said."""
    made = answerable(12)
    path = asked(tmp_path / "r.ndjson", made)
    model = Script(
        claims=lambda text: {"claims": [text.split("<text-f3nc3>\n")[1].split("\n")[0]]},
        follows=lambda text: {"follows": int(text.split("What does ")[1].split()[0]) % 2 == 0},
        contradicts={"contradicts": False},
    )
    for rounded_from, rounded in ((0.4, 1.0), (0.5, 0.7)):
        measures = named(["claims"], JudgeNumbers(f=0.4, rounded_from=rounded_from))
        run, _ = await judge_run(path, made, model, measures)
        figure = whole(judged(made, run, measures, JUDGE)).figures["claims F1"]
        assert (figure.mean, figure.rounded) == (pytest.approx(0.7), pytest.approx(rounded))
    assert sorted({verdict.figures["claims F1"] for verdict in run.verdicts.values()}) == [pytest.approx(0.4), 1.0]
    assert whole(judged(made, run, SCORE, JUDGE)).figures == {}


async def test_what_is_decided_is_not_asked_again_and_what_is_not_is(tmp_path: Path) -> None:
    made = answerable(12)
    path = asked(tmp_path / "r", made)
    await judge_run(path, made, marks(lambda n: "no JSON" if n == "7" else mark(5)))
    again = marks(lambda _: mark(0))
    run, _ = await judge_run(path, made, again)
    assert len(again.asked) == 1
    assert whole(judged(made, run, SCORE, JUDGE)).figures["judge right"].mean == 7 / 8
    assert judged(made, Run.read(path), SCORE, JUDGE) == judged(made, run, SCORE, JUDGE)


async def test_another_judge_or_wording_is_another_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = answerable(12)
    path = asked(tmp_path / "r", made)
    run, _ = await judge_run(path, made, marks(lambda _: mark(5)))
    assert whole(judged(made, run, SCORE, "another")).judged == 0
    monkeypatch.setattr("pipelines.evaluate.judged.measure._fingerprint", lambda _: "score-2-0")
    other = whole(judged(made, run, SCORE, JUDGE))
    assert (other.judged, other.of, other.figures) == (0, 8, {})


async def test_a_budget_ends_it_and_the_same_goes_on_to_the_same_report(tmp_path: Path) -> None:
    made = answerable(60)  # 40 answers
    path = asked(tmp_path / "r", made)
    model = marks(lambda n: mark(int(n) % 6))
    run, why = await judge_run(path, made, model, calls=13, at_once=1)
    report = judged(made, run, SCORE, JUDGE)
    assert (why, len(model.asked), whole(report).judged, whole(report).of) == ("budget-spent", 13, 13, 40)
    assert report.parts[0].unjudged == {"not-asked": 27}
    first = {verdict.case for verdict in run.verdicts.values()}
    assert first != {case.id for case in made.cases[:13]}, "a sample, not the first ones"

    with path.open("ab") as file:  # killed while it wrote a verdict
        file.write(b'{"verdict": {"case": "c0", "meas')
    run, why = await judge_run(path, made, model, calls=1_000)
    assert (why, len(model.asked)) == ("", 40)
    straight = asked(tmp_path / "s", made)
    other, _ = await judge_run(straight, made, marks(lambda n: mark(int(n) % 6)))
    assert judged(made, Run.read(path), SCORE, JUDGE) == judged(made, other, SCORE, JUDGE)


async def test_tokens_are_a_budget_too(tmp_path: Path) -> None:
    made = answerable(60)
    run, why = await judge_run(asked(tmp_path / "r", made), made, marks(lambda _: mark(5)), tokens=1_000, at_once=4)
    assert why == "budget-spent"
    assert 0 < whole(judged(made, run, SCORE, JUDGE)).judged < 40


async def test_a_judge_that_is_gone_is_left_alone(tmp_path: Path) -> None:
    made = answerable(90)  # 60 answers
    model = marks(lambda _: Permanent("wrong key"))
    run, why = await judge_run(asked(tmp_path / "r", made), made, model)
    assert (why, len(model.asked)) == ("judge-gone", GIVE_UP)
    group = whole(judged(made, run, SCORE, JUDGE))
    assert (group.judged, group.of, group.figures) == (0, 60, {})


async def test_repeats_are_asked_again_and_only_the_first_is_in_the_figures(tmp_path: Path) -> None:
    made = answerable(12)
    model, count = marks(lambda _: mark(0)), 0

    async def by_turns(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return Written(json.dumps(mark(5 if count % 3 == 1 else 0)))

    model.complete = by_turns  # type: ignore[method-assign]
    run, _ = await judge_run(asked(tmp_path / "r", made), made, model, repeats=3, at_once=1)
    assert (count, len(run.verdicts)) == (24, 24)
    assert whole(judged(made, run, SCORE, JUDGE)).figures["judge right"].mean == 1


async def test_side_by_side_but_no_more_than_told(tmp_path: Path) -> None:
    made, now, most = answerable(30), 0, 0

    class Slow(Script):
        async def complete(self, *args: Any, **kwargs: Any) -> Any:
            nonlocal now, most
            now += 1
            most = max(most, now)
            for _ in range(5):
                await asyncio.sleep(0)
            now -= 1
            return Written('{"reason": "", "score": 5}')

    await judge_run(asked(tmp_path / "r", made), made, Slow(), at_once=3)
    assert most == 3


async def test_two_runs_as_one_judge_sees_them(tmp_path: Path) -> None:
    made = answerable(150)  # 100 answers
    live, _ = await judge_run(asked(tmp_path / "a", made), made, marks(lambda _: mark(5)))
    worse, _ = await judge_run(
        asked(tmp_path / "b", made), made, marks(lambda n: mark(0 if int(n) % 9 == 0 else 5) if n != "1" else "?")
    )
    score, right = advice(made, live, worse, SCORE, JUDGE)
    assert (score.measure, right.measure, right.of, right.figures.cases) == ("judge score", "judge right", 100, 99)
    assert right.figures.difference == pytest.approx(-17 / 99)
    assert right.figures.state == "worse"
    assert advice(made, live, worse, SCORE, "another") == []


def test_a_verdict_that_is_none_is_told_plainly(tmp_path: Path) -> None:
    path = asked(tmp_path / "r", answerable(3))
    with path.open("a") as file:
        file.write('{"verdict":{"case":"c0"}}\n')
    with pytest.raises(BadRun, match="cannot be read as a run"):
        Run.read(path)


def test_a_case_without_an_answer_is_in_no_denominator(tmp_path: Path) -> None:
    made = Dataset("x", (Case(id="a", question="a"),))
    run = runs.run(tmp_path / "r", Dataset("x", ()), {})
    group = whole(judged(made, run, SCORE, JUDGE))
    assert (group.judged, group.of) == (0, 0)
