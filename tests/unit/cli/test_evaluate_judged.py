"""`pagewire eval run --judge`: what a judge says stands beside the measures, and decides nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from pipelines.evaluate.dataset import Case, Dataset
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.publication import published
from pipelines.evaluate.run import Run
from pipelines.runtime import logs
from schemas.evaluation import ListedRun, NewRun
from tests.asking import NOON
from tests.edge import ADMIN
from tests.unit.evaluate.judged.judges import Script
from tests.unit.evaluate.runs import as_yaml, right

ASKED = ("eval", "run", "town", "--dataset", "town.yaml", "--judge", "score")


class Town:
    """Stands where the running system would."""

    asked = 0
    answer: Callable[[Case], Observed] = staticmethod(right)
    published: NewRun

    def __init__(self, url: str, site: str, key: Any) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def corrected(self) -> Dataset:
        return Dataset("town-corrections", ())

    async def publish(self, run: NewRun) -> ListedRun:
        Town.published = run
        return published(run, "town", "admin", NOON)

    async def ask(self, case: Case) -> Observed:
        Town.asked += 1
        return Town.answer(case)


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """A judge that gives everything four marks, and a system that knows everything of `town.yaml`, 150 cases."""
    made = Script(score={"reason": "nearly", "score": 4})

    @asynccontextmanager
    async def judge_model(settings: Any, name: str) -> AsyncIterator[Script]:
        yield made

    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG", "ADMIN_KEY"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAGEWIRE_URL", "http://127.0.0.1:8000")
    monkeypatch.setenv("PAGEWIRE_ADMIN_KEY", ADMIN)
    monkeypatch.setenv("PAGEWIRE_LLM_MODEL", "scripted")
    monkeypatch.setattr(logs, "configure", lambda settings: None)
    monkeypatch.setattr("adapters.http_site.HttpSite", Town)
    monkeypatch.setattr("wiring.evaluating.judge_model", judge_model)
    Path("town.yaml").write_text(as_yaml(150), encoding="utf-8")
    Town.asked, Town.answer = 0, staticmethod(right)
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def said(done: Result) -> str:
    return " ".join(done.stdout.split())


def test_what_a_judge_says_is_published_with_the_run() -> None:
    assert run(*ASKED, "--publish", "--judge-calls", "60").exit_code == 0
    figure = Town.published.judged["all"]["judge score"]
    assert (Town.published.judge, figure.judged, figure.of, figure.mean) == ("scripted", 60, 100, pytest.approx(0.8))
    assert figure.at_worst < figure.mean < figure.at_best
    assert run(*ASKED[:5], "--publish").exit_code == 0
    assert (Town.published.judge, Town.published.judged) == ("", {})


def test_a_judged_report(model: Script) -> None:
    done = run(*ASKED)
    assert done.exit_code == 0
    assert len(model.asked) == 100
    assert "judged by scripted: advisory, decides nothing" in said(done)
    assert "judge score judged 100 of 100 100 0.800" in said(done)
    assert "judge right judged 100 of 100 100 1.000" in said(done)
    assert "100 calls, 1,800 tokens" in said(done)


def test_without_a_model_there_is_no_judge_and_all_else_is_measured(
    model: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAGEWIRE_LLM_MODEL")
    done = run(*ASKED)
    assert done.exit_code == 0
    assert "no judge: PAGEWIRE_LLM_MODEL names no model" in said(done)
    assert "MRR@10 100 1.000" in said(done)
    told = run(*ASKED, "--json")
    assert json.loads(told.stdout)["judged"] is None
    assert "no judge" in told.stderr
    assert not model.asked
    assert run(*ASKED, "--judge-model", "other", "--json").exit_code == 0
    assert len(model.asked) == 100


def test_a_budget_is_told_and_the_same_command_goes_on(model: Script) -> None:
    done = run(*ASKED, "--judge-calls", "30")
    assert "judge right judged 30 of 100 30 1.000" in said(done)
    assert "0.300 to 1.000" in said(done)  # if all were judged
    assert "not judged, score: 70 not-asked" in said(done)
    assert "stopped: budget-spent" in said(done)
    again = run(*ASKED, "--json")
    told = json.loads(again.stdout)["judged"]
    assert (told["judge"], told["calls"], told["stopped"]) == ("scripted", 70, None)
    assert told["parts"][0]["groups"]["all"]["judged"] == 100
    assert (Town.asked, len(model.asked)) == (150, 100)
    run(*ASKED)  # that one is done: all is asked anew
    assert (Town.asked, len(model.asked)) == (300, 200)


def test_a_run_that_is_done_is_not_gone_on_with_for_a_judge_who_has_not_begun() -> None:
    """It may be hours old: whoever asks again wants the answers of now."""
    run("eval", "run", "town", "--dataset", "town.yaml")
    run(*ASKED)
    assert Town.asked == 300


def test_what_is_not_judged_is_neither_wrong_nor_gone(model: Script) -> None:
    model.says["score"] = "I like it."
    done = run(*ASKED)
    assert done.exit_code == 0
    assert "score judged 0 of 100" in said(done)
    assert "not judged, score: 100 judge-unreadable" in said(done)
    assert "0.000" not in said(done).split("judged by scripted")[1]


def test_a_judge_decides_nothing(model: Script) -> None:
    kept = ("--judge", "score", "--run", "live.ndjson")
    assert run("eval", "run", "town", "--dataset", "town.yaml", *kept).exit_code == 0
    model.says["score"] = {"reason": "bad", "score": 0}
    compared = ("--against", "live.ndjson", "--measure", "right", "--junit", "r.xml", "--run", "next.ndjson")
    done = run(*ASKED, *compared)
    assert done.exit_code == 0
    assert "not worse by more than a margin of 0.03" in said(done)
    assert "judge right judged 100 of 100 1.000 0.000 -1.000" in said(done)
    assert said(done).rstrip().split(" kept in")[0].endswith("worse")
    assert "judge" not in Path("r.xml").read_text(encoding="utf-8")
    told = json.loads(run(*ASKED, *compared, "--json").stdout)
    assert told["comparison"]["passed"]
    assert told["judged"]["advice"][1]["figures"]["difference"] == -1
    assert run(*ASKED, "--least", "judge right=0.5").exit_code == 2  # no bar can be put on it


def test_repeats_are_kept(model: Script) -> None:
    run(*ASKED, "--judge-repeats", "3", "--run", "r.ndjson")
    assert len(model.asked) == 300
    assert {verdict.repeat for verdict in Run.read(Path("r.ndjson")).verdicts.values()} == {0, 1, 2}


def test_an_unknown_measure_is_wrong_use() -> None:
    done = run("eval", "run", "town", "--dataset", "town.yaml", "--judge", "luck")
    assert done.exit_code == 2
    assert "no judged measure 'luck'; there are all, claims" in " ".join(done.stderr.split())
    assert Town.asked == 0
