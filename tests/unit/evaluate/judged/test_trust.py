"""Labels of people beside a run's verdicts: sheets, files, and what follows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pipelines.evaluate.dataset import Dataset
from pipelines.evaluate.judged.agreement import AgreementCounts
from pipelines.evaluate.judged.measure import JudgedMeasure, key
from pipelines.evaluate.judged.trust import (
    BadLabels,
    Label,
    NoVerdicts,
    judge_of,
    load_labels,
    measure_of,
    sheet,
    trusted,
)
from pipelines.evaluate.run import CaseVerdict, Run
from pipelines.runtime.errors import WrongUse
from tests.unit.evaluate import runs

SCORE = measure_of("judge right")
MADE = Dataset("prices", tuple(case for case in runs.dataset(60).cases if case.expect == "answer"))  # 40, half German


def judged(path: Path, right: dict[str, list[bool]], judge: str = "m", measure: JudgedMeasure = SCORE) -> Run:
    """A run of which a judge says so, once or several times."""
    runs.run(path, MADE)
    with Run.begin(path, Run.read(path).head) as run:
        for case in MADE.cases:
            for repeat, said in enumerate(right.get(case.id, [])):
                where = key(case, measure, judge, repeat)._asdict()
                run.keep(CaseVerdict(**where, figures={"judge score": 0.8, "judge right": float(said)}))
    return run


def labels(right: dict[str, bool]) -> list[Label]:
    return [Label(case=case, right=said) for case, said in right.items()]


def test_agreement_of_a_run_by_hand(tmp_path: Path) -> None:
    """The judge says right of all but every fourth; 20 are labelled, and people differ in the first two of them."""
    ids = [case.id for case in MADE.cases]
    said = {id: [place % 4 != 3] for place, id in enumerate(ids)}
    people = {id: said[id][0] != (place < 2) for place, id in enumerate(ids[:20])}
    told = trusted(MADE, judged(tmp_path / "r", said), labels(people), "m")
    whole = told.groups["all"]
    assert whole.counts == AgreementCounts(both=13, judge_alone=2, people_alone=0, neither=5)
    assert (told.judged, told.of, whole.judged, told.constancy) == (40, 40, 40, None)
    assert whole.judged_right
    assert whole.judged_right.value == 0.75  # 30 of 40
    assert whole.people_right
    assert whole.people_right.value == 0.65
    assert whole.trust == "too few labels"
    assert set(told.groups) == {"all", "lang en", "lang de"}
    german = told.groups["lang de"].counts
    assert german.labels == 10
    assert sum(told.groups[name].counts.labels for name in ("lang en", "lang de")) == 20


def test_repeats_tell_whether_it_is_constant_and_the_first_counts(tmp_path: Path) -> None:
    run = judged(tmp_path / "r", {"c0": [True, False, True], "c1": [False, True, False], "c3": [True]})
    told = trusted(MADE, run, labels({"c0": True, "c1": True}), "m")
    assert (told.constancy, told.repeated) == (pytest.approx(1 / 3), 2)
    assert told.groups["all"].counts == AgreementCounts(both=1, people_alone=1)
    assert told.judged == 3


def test_labels_that_do_not_count_are_told(tmp_path: Path) -> None:
    """Of another answer, of a case that there is not, of an answer without a verdict."""
    run = judged(tmp_path / "r", {"c0": [True], "c1": [True]})
    some = [
        Label(case="c0", right=True, answer=" It costs\n0 euros."),
        Label(case="c1", right=True, answer="It is free."),
        Label(case="gone", right=True),
        Label(case="c3", right=False),
    ]
    told = trusted(MADE, run, some, "m")
    assert (told.other_answers, told.without_verdict) == (2, 1)
    assert told.groups["all"].counts == AgreementCounts(both=1)


def test_another_figure_has_a_bar(tmp_path: Path) -> None:
    run = judged(tmp_path / "r", {"c0": [False]})
    for bar, counts in ((0.8, AgreementCounts(both=1)), (0.81, AgreementCounts(people_alone=1))):
        assert trusted(MADE, run, labels({"c0": True}), "m", "judge score", bar).groups["all"].counts == counts
    with pytest.raises(WrongUse, match="no judged figure 'luck'; there are judge score, judge right, claims"):
        trusted(MADE, run, [], "m", "luck")


def test_which_judge(tmp_path: Path) -> None:
    run = judged(tmp_path / "r", {"c0": [True]})
    assert (judge_of(run, SCORE, None), judge_of(run, SCORE, "m")) == ("m", "m")
    with pytest.raises(NoVerdicts, match="no score by n; there are m"):
        judge_of(run, SCORE, "n")
    with pytest.raises(NoVerdicts, match="ask one: pagewire eval run"):
        judge_of(run, measure_of("faithfulness"), None)
    with Run.begin(run.path, run.head) as more:
        more.keep(CaseVerdict(case="c0", measure="score", judge="n", prompts="old", figures={"judge right": 1.0}))
    with pytest.raises(NoVerdicts, match="no score by one judge alone; there are m, n"):
        judge_of(more, SCORE, None)
    with pytest.raises(NoVerdicts, match="no judge right by n, by the prompts of today"):
        trusted(MADE, more, [], "n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "case,right,answer,other\na,yes,It is.,x\nb,no,,\nc,,,\n"),
        ("l.csv", "\ufeffcase,right\r\na,TRUE\r\nb,0\r\n"),
        ("l.yaml", "- {case: a, right: true}\n- {case: b, right: no}\n"),
        ("l.ndjson", '{"case": "a", "right": true}\n\n{"case": "b", "right": false}\n'),
    ],
)
def test_labels_are_read(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert [(label.case, label.right) for label in load_labels(path)] == [("a", True), ("b", False)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("l.csv", "case,right\na,perhaps\n", r"l\.csv, entry 1: right"),
        ("l.csv", "case,right\na,yes\na,no\n", "labelled twice: a"),
        ("l.yaml", "a: true", "must be a list"),
        ("l.ndjson", "{", "cannot be read as labels"),
        ("l.csv", "right\nyes\n", "entry 1: case"),
    ],
)
def test_what_is_wrong_with_labels_is_told(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadLabels, match=said):
        load_labels(path)


def test_a_sheet_comes_back_as_labels(tmp_path: Path) -> None:
    """Also with an answer that looks like a formula, and without what the judge says."""
    run = runs.run(tmp_path / "r", MADE, {"c0": {"answer": "=1+1\nand more"}})
    path = tmp_path / "sheet.csv"
    path.write_text(sheet(MADE.cases, run.observed, 100), encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["case"] for line in lines} == {case.id for case in MADE.cases}
    (first,) = [line for line in lines if line["case"] == "c0"]
    assert first["answer"] == "'=1+1\nand more"
    assert (first["question"], first["reference"], first["lang"]) == ("What does 0 cost?", "0 euros", "en")
    assert load_labels(path) == []
    for line in lines:
        line["right"] = "yes"
    filled = tmp_path / "filled.ndjson"
    filled.write_text("\n".join(json.dumps(line) for line in lines))
    judged_run = judged(tmp_path / "j", {case.id: [True] for case in MADE.cases})
    with Run.begin(judged_run.path, judged_run.head) as more:
        more.add(run.observed["c0"])
    told = trusted(MADE, more, load_labels(filled), "m")
    assert (told.other_answers, told.groups["all"].counts) == (0, AgreementCounts(both=40))


def test_a_sheet_is_a_sample_by_chance_and_always_the_same(tmp_path: Path) -> None:
    run = runs.run(tmp_path / "r", MADE)
    one = sheet(MADE.cases, run.observed, 10)
    assert one == sheet(MADE.cases, run.observed, 10)
    drawn = [line.split(",")[0] for line in one.splitlines()[1:]]
    assert len(set(drawn)) == 10
    assert drawn != [case.id for case in MADE.cases[:10]]
