"""The report of a run, its comparison with another, and the same as JUnit's XML."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from sacrebleu import BLEU, corpus_bleu

from pipelines.evaluate.dataset import Case, Dataset
from pipelines.evaluate.evaluation import ReportLine, against, bleu, evaluate, figure, junit
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.run import BadRun, Run, RunHead
from tests.unit.evaluate.runs import AT, dataset, right, run

WRONG = {"answer": "No idea.", "sources": (), "found": (), "grade": 4, "ms": 300.0}


def test_a_report_by_hand(tmp_path: Path) -> None:
    """Six cases: 0 1 3 4 can be answered, 2 and 5 cannot; 1 is refused, 4 fails."""
    made = dataset(6)
    failed = {**WRONG, "answer": "", "grade": None, "failed": "timeout"}
    told = evaluate(made, run(tmp_path / "r", made, {"c1": WRONG, "c4": failed}))
    every = told.groups["all"]
    assert (told.asked, told.failed) == (6, {"timeout": 1})
    assert list(told.groups) == ["all", "lang de", "lang en", "tag prices"]
    assert (every["right"].cases, every["right"].mean) == (6, pytest.approx(4 / 6))
    assert (every["hit@1"].cases, every["hit@1"].mean) == (4, 0.5)
    assert every["refusal"].mean == pytest.approx(4 / 6)
    assert told.groups["lang de"]["hit@1"].mean == 0.5  # of 1 and 3
    assert told.groups["tag prices"] == every
    assert told.refusals.auroc == 1  # grades 0, 4, 0 (4 failed before it had one) against 5, 5
    assert told.refusals.false_refusals
    assert told.refusals.false_refusals.mean == 0.5
    assert told.refusals.false_answers
    assert told.refusals.false_answers.mean == 0
    assert told.latency_ms == {"p50": 100.0, "p95": 300.0, "most": 300.0}
    assert told.stages_ms == {"retrieve": 40.0}
    assert told.tokens == {"prompt": 40, "completion": 8}


def test_an_interval_is_clopper_and_pearsons() -> None:
    """8 of 10 right: 0.444 to 0.975; 10 of 10: 0.692 to 1 (Clopper and Pearson's tables)."""
    told = figure([1] * 8 + [0] * 2)
    assert (told.mean, told.cases) == (0.8, 10)
    assert (told.low, told.high) == (pytest.approx(0.4439, abs=0.01), pytest.approx(0.9748, abs=0.005))
    assert figure([1] * 10).low == pytest.approx(0.6915, abs=0.002)
    assert figure([1] * 10).high == pytest.approx(1, abs=1e-6)


def test_bleu_is_sacrebleus(tmp_path: Path) -> None:
    cases = (
        Case(
            id="a",
            question="a",
            answers=("A card costs 18 euros a year.", "It is 18 euros a year for adults."),
            expect="answer",
        ),
        Case(id="b", question="b", answers=("The bath is open from nine to noon.",), expect="answer"),
        Case(id="c", question="c", expect="refuse"),
    )
    said = {"a": "A card costs 18 euros a month.", "b": "The bath is **open** from nine to five."}
    cited = right(dataset(1).cases[0])
    seen = {id: cited.model_copy(update={"case": id, "answer": text}) for id, text in said.items()} | {
        "c": Observed(case="c", at=AT, ms=1.0)
    }
    texts: Any = (
        ["A card costs 18 euros a month.", "The bath is open from nine to five."],
        [
            ["A card costs 18 euros a year.", "The bath is open from nine to noon."],
            ["It is 18 euros a year for adults.", None],
        ],
    )
    found = bleu(cases, seen)
    assert found["BLEU-4"] == pytest.approx(corpus_bleu(*texts).score / 100)
    assert found == {f"BLEU-{n}": BLEU(max_ngram_order=n).corpus_score(*texts).score / 100 for n in (1, 2, 3, 4)}
    # Of 17 words and full stops all but "month" and "five" stand in a reference, and each answer is as long as one.
    assert found["BLEU-1"] == pytest.approx(15 / 17)
    assert found["BLEU-1"] > found["BLEU-2"] > found["BLEU-3"] > found["BLEU-4"] > 0.5
    assert bleu(cases[2:], seen) == {}


def test_two_runs_are_compared(tmp_path: Path) -> None:
    made = dataset(150)
    live = run(tmp_path / "live", made)
    assert against(made, live, run(tmp_path / "same", made), 0.03, ("right",)).passed
    lost = {f"c{number}": WRONG for number in range(0, 60, 6)}  # all of them English
    told = against(made, live, run(tmp_path / "lost", made, lost), 0.03, ("right",))
    stops = {check.group for check in told.checks if check.stops}
    assert (told.outcome, stops) == ("worse", {"all", "lang en", "tag prices"})


def test_what_cannot_be_compared_is_told_plainly(tmp_path: Path) -> None:
    made, other = dataset(6), dataset(7)
    whole = run(tmp_path / "whole", made)
    part = Run.begin(tmp_path / "part", RunHead.of(made, "town", "http://x", AT))
    with pytest.raises(BadRun, match="0 of 6 cases are asked"):
        against(made, whole, part, 0.03, ("right",))
    with pytest.raises(BadRun, match="not of prices 1"):
        against(other, whole, whole, 0.03, ("right",))
    with pytest.raises(BadRun, match="not of prices 1"):
        evaluate(other, whole)
    with pytest.raises(BadRun, match="no case was asked"):
        evaluate(made, part)


def test_cases_that_measure_nothing_have_no_group(tmp_path: Path) -> None:
    made = Dataset("x", (Case(id="a", question="a", tags=("new",)),))
    told = evaluate(made, run(tmp_path / "r", Dataset("x", made.cases), {}))
    assert (told.asked, told.groups, told.bleu) == (1, {}, {})
    assert told.refusals.false_refusals is None


def test_junit_counts_what_failed_and_escapes_what_it_says() -> None:
    root = fromstring(
        junit("town", [ReportLine("all", "right"), ReportLine("lang de", "MRR@10", "worse: <.9 & .8>", 1.5)])
    )
    assert root.attrib == {"tests": "2", "failures": "1"}
    fine, failed = root.iter("testcase")
    assert (fine.get("classname"), fine.get("name"), len(fine)) == ("all", "right", 0)
    assert failed.find("failure") is not None
    assert failed[0].get("message") == "worse: <.9 & .8>"
    assert failed.get("time") == "1.500"
