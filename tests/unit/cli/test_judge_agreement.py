"""`pagewire eval calibrate`: from a judged run to a sheet, and from its labels to what the judge is worth."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from pipelines.evaluate.dataset import dumped
from pipelines.evaluate.judged.measure import key
from pipelines.evaluate.judged.trust import measure_of
from pipelines.evaluate.run import CaseVerdict, Run
from tests.unit.evaluate import runs

RUN = ("eval", "calibrate", "live.ndjson", "--dataset", "town.yaml")


@pytest.fixture(autouse=True)
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of 150 cases whose 100 answers a judge calls right but for every fourth."""
    monkeypatch.chdir(tmp_path)
    made = runs.dataset(150)
    Path("town.yaml").write_text(dumped(made, ".yaml"), encoding="utf-8")
    runs.run(Path("live.ndjson"), made)
    with Run.begin(Path("live.ndjson"), Run.read(Path("live.ndjson")).head) as run:
        for place, case in enumerate(case for case in made.cases if case.answers):
            where = key(case, measure_of("judge right"), "judge-1", 0)._asdict()
            run.keep(CaseVerdict(**where, figures={"judge right": float(place % 4 != 3)}))
    return run


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def said(done: Result) -> str:
    return " ".join(done.stdout.split())


def fill(right: bool | None = None, wrong: int = 3) -> None:
    """As people may: what the judge says, but for the first few; or all the same."""
    verdicts = {key.case: verdict.figures for key, verdict in Run.read(Path("live.ndjson")).verdicts.items()}
    with Path("labels.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for place, line in enumerate(lines):
        judge = verdicts[line["case"]]["judge right"] == 1
        line["right"] = "yes" if (right if right is not None else judge != (place < wrong)) else "no"
    with Path("labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys())
        writer.writeheader()
        writer.writerows(lines)


def test_from_a_sheet_to_what_the_judge_is_worth() -> None:
    done = run(*RUN, "--sheet", "labels.csv", "--size", "60")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "60 answers to label in labels.csv" in done.stderr
    fill()
    told = said(run(*RUN, "--labels", "labels.csv"))
    assert "judge right by judge-1, right from 1 on: judged 100 of 100" in told
    assert "right, of judged by the judge by labels all 100 0.750 (0.657 to 0.825)" in told
    assert "lang de" in told
    assert told.endswith("may be taken as it stands for answers like these")
    whole = json.loads(run(*RUN, "--labels", "labels.csv", "--json").stdout)["groups"]["all"]
    assert sum(whole["counts"].values()) == 60
    assert whole["counts"]["judge_alone"] + whole["counts"]["people_alone"] == 3


def test_a_judge_that_is_worth_nothing_is_told() -> None:
    run(*RUN, "--sheet", "labels.csv", "--size", "60")
    fill(right=True)
    assert "too few labels to say: 60 right and 0 wrong, and it takes 10 of each" in said(
        run(*RUN, "--labels", "labels.csv")
    )
    fill(wrong=30)
    assert "not to be trusted" in said(run(*RUN, "--labels", "labels.csv"))


def test_labels_that_do_not_count_are_told() -> None:
    Path("l.yaml").write_text("- {case: c0, right: true, answer: Else.}\n- {case: c2, right: true}\n")
    told = said(run(*RUN, "--labels", "l.yaml"))
    assert "set aside: 1 labels of answers that this run does not have" in told
    assert "set aside: 1 labels of answers without a verdict" in told


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "name a file: --labels"),
        (("--sheet", "town.yaml"), "is there already, and may be filled in"),
        (("--labels", "town.yaml"), "must be a list"),
        (("--labels", "l.yaml", "--judge", "judge-2"), "no score by judge-2; there are judge-1"),
        (("--labels", "l.yaml", "--figure", "luck"), "no judged figure 'luck'"),
        (("--labels", "l.yaml", "--dataset", "other.yaml"), "not of other"),
    ],
)
def test_wrong_use(options: tuple[str, ...], why: str) -> None:
    Path("l.yaml").write_text("- {case: c0, right: true}\n")
    Path("other.yaml").write_text("[{question: a}]")
    done = run(*RUN, *options)
    assert done.exit_code == 2
    assert why in " ".join(done.stderr.split())
