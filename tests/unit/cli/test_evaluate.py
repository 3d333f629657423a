"""`pagewire eval run` and `pagewire eval datasets`: what they print, write and exit with."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from xml.etree.ElementTree import parse

import pytest
from typer.testing import CliRunner, Result

from cli import evaluate
from cli.main import app
from pipelines.evaluate.dataset import Case, Dataset, load_dataset
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.publication import published
from pipelines.evaluate.run import Run, RunHead
from pipelines.runtime import logs
from pipelines.runtime.errors import Retryable, WrongUse
from schemas.evaluation import ListedRun, NewRun, PublishedRun
from tests.edge import ADMIN
from tests.unit.evaluate.runs import as_yaml, dataset, right

WRONG = {"answer": "No idea.", "sources": (), "found": (), "grade": 4}


class Town:
    """Stands where the running system would."""

    asked: list[str]
    answer: Callable[[Case], Observed]
    published: PublishedRun
    corrections: Dataset | Exception

    def __init__(self, url: str, site: str, key: Any) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def corrected(self) -> Dataset:
        if isinstance(Town.corrections, Exception):
            raise Town.corrections
        return Town.corrections

    async def publish(self, run: NewRun) -> ListedRun:
        Town.published = published(run, "town", "admin", datetime.now(UTC))
        return Town.published

    async def ask(self, case: Case) -> Observed:
        Town.asked.append(case.id)
        return Town.answer(case)


@pytest.fixture(autouse=True)
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Town]:
    """A system that knows everything, a home of its own, and `town.yaml` with 150 cases."""
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG", "ADMIN_KEY"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAGEWIRE_URL", "http://127.0.0.1:8000")
    monkeypatch.setenv("PAGEWIRE_ADMIN_KEY", ADMIN)
    monkeypatch.setattr(logs, "configure", lambda settings: None)
    monkeypatch.setattr("adapters.http_site.HttpSite", Town)
    Path("town.yaml").write_text(as_yaml(150), encoding="utf-8")
    Town.asked, Town.answer, Town.corrections = [], staticmethod(right), Dataset("town-corrections", ())
    return Town


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def forgetting(every: int) -> Callable[[Case], Observed]:
    return lambda case: right(case).model_copy(update=WRONG if int(case.id[1:]) % every == 0 else {})


def test_a_report(town: type[Town]) -> None:
    done = run("eval", "run", "town", "--dataset", "town.yaml")
    assert done.exit_code == 0
    assert len(town.asked) == 150
    for said in ("prices 1 (", "on town at http://127.0.0.1:8000: 150 cases", "MRR@10", "lang de", "AUROC", "kept in"):
        assert said in done.stdout, done.stdout


def test_a_run_is_published_with_its_cases(town: type[Town]) -> None:
    long = "So it is. " * 300
    town.answer = staticmethod(lambda case: right(case).model_copy(update={"answer": long} if case.id == "c0" else {}))
    done = run("eval", "run", "town", "--dataset", "town.yaml", "--publish", "--note", "small chunks")
    kept = town.published
    assert f"published as {kept.id}: http://127.0.0.1:8000/console/evaluations/{kept.id}?site=town" in done.stdout
    assert (kept.dataset, kept.fingerprint, kept.asked, kept.note) == (
        "prices",
        dataset(150).fingerprint,
        150,
        "small chunks",
    )
    assert kept.groups["all"]["refusal"].mean == 1
    first, second, third = kept.results[:3]
    assert (first.answer[:10], first.answer[-1], len(first.answer)) == ("So it is. ", "…", 2000)
    assert (first.pages, first.cited, first.reference, first.figures["hit@1"]) == (("p0",), ("p0",), "0 euros", 1)
    assert (second.case, second.lang, second.figures["right"]) == ("c1", "de", 1)
    assert (third.expect, third.cited) == ("refuse", ())
    again = run("eval", "run", "town", "--dataset", "town.yaml", "--run", "x.ndjson", "--publish", "--json")
    assert json.loads(again.stdout)["published"] == town.published.id


def test_json_is_all_there_is_on_standard_output() -> None:
    done = run("eval", "run", "town", "--dataset", "town.yaml", "--json", "--least", "right=0.9")
    told = json.loads(done.stdout)
    assert told["report"]["groups"]["all"]["right"]["mean"] == 1
    assert told["report"]["run"]["fingerprint"] == dataset(150).fingerprint
    assert (told["too_low"], told["comparison"], done.exit_code) == ([], None, 0)


def test_what_is_too_low_fails_and_is_in_the_xml(town: type[Town]) -> None:
    town.answer = staticmethod(forgetting(10))
    bars = ("--least", "right=0.95", "--least", "hit@1=0.8")
    done = run("eval", "run", "town", "--dataset", "town.yaml", *bars, "--junit", "r.xml")
    assert done.exit_code == 1
    assert "too low: right" in done.stdout
    fine, low = sorted(parse("r.xml").iter("testcase"), key=len)
    assert (fine.get("name"), low.get("name"), low[0].get("message")) == (
        "hit@1 is at least 0.8",
        "right is at least 0.95",
        "it is 0.933",
    )
    assert run("eval", "run", "town", "--dataset", "town.yaml", "--least", "facts=0.1").exit_code == 1  # not measured


def test_questions_of_corrections_are_asked_unless_they_are_left_out(town: type[Town]) -> None:
    """A run without them can still be the one that is compared with."""
    corrected = Case(
        id="corrected", question="Is a card free?", lang="en", pages=("p1",), answers=("yes",), tags=("x",)
    )
    town.corrections = Dataset("town-corrections", (corrected,))
    command = ("eval", "run", "town", "--dataset", "town.yaml")
    assert run(*command, "--no-corrections", "--run", "without.ndjson").exit_code == 0
    assert len(town.asked) == 150
    told = json.loads(run(*command, "--json", "--against", "without.ndjson", "--measure", "right").stdout)
    assert (town.asked[150:].count("corrected"), len(town.asked)) == (1, 301)
    assert told["report"]["run"]["fingerprint"] == dataset(150).fingerprint
    assert told["report"]["groups"]["tag x"]["right"]["cases"] == 1
    assert told["comparison"]["passed"]
    other = run(*command, "--run", "without.ndjson")
    assert "150 cases) on town" in other.stderr
    assert "not of this (151 cases)" in other.stderr
    town.corrections = WrongUse("403 forbidden: the key has not the scope view")
    refused = run(*command, "--run", "refused.ndjson")
    assert (refused.exit_code, len(town.asked)) == (0, 451)
    assert "left out: 403 forbidden" in refused.stderr


def test_against_an_earlier_run(town: type[Town]) -> None:
    assert run("eval", "run", "town", "--dataset", "town.yaml", "--run", "live.ndjson").exit_code == 0
    compared = ("eval", "run", "town", "--dataset", "town.yaml", "--against", "live.ndjson", "--measure", "right")
    same = run(*compared, "--junit", "same.xml")
    assert same.exit_code == 0
    assert "not worse by more than a margin of 0.03" in same.stdout
    assert parse("same.xml").getroot().get("failures") == "0"
    assert [suite.get("name") for suite in parse("same.xml").iter("testsuite")] == [
        f"pagewire eval run town: {dataset(150).label}"
    ]

    town.answer = staticmethod(forgetting(10))
    worse = run(*compared, "--junit", "worse.xml")
    assert (worse.exit_code, worse.stdout.splitlines()[-2]) == (1, "worse")
    assert int(parse("worse.xml").getroot().get("failures", "")) > 0
    told = json.loads(run(*compared, "--json").stdout)["comparison"]
    assert (told["passed"], told["outcome"]) == (False, "worse")


def test_two_runs_that_are_there_are_compared_without_a_system(town: type[Town]) -> None:
    for name, answer in (("live", right), ("worse", forgetting(10))):
        town.answer = staticmethod(answer)
        run("eval", "run", "town", "--dataset", "town.yaml", "--run", f"{name}.ndjson")
    asked = len(town.asked)
    compared = ("eval", "compare", "live.ndjson", "worse.ndjson", "--dataset", "town.yaml", "--measure", "right")
    worse = run(*compared, "--junit", "worse.xml")
    assert (worse.exit_code, worse.stdout.splitlines()[-1]) == (1, "worse")
    assert int(parse("worse.xml").getroot().get("failures", "")) > 0
    told = json.loads(run(*compared, "--json").stdout)
    assert (told["comparison"]["passed"], told["report"]["asked"]) == (False, 150)
    same = run("eval", "compare", "live.ndjson", "live.ndjson", "--dataset", "town.yaml")
    assert same.exit_code == 0
    assert "not worse by more than a margin of 0.03" in same.stdout
    assert len(town.asked) == asked


def test_what_is_no_run_of_the_dataset_is_not_compared() -> None:
    Path("few.yaml").write_text(as_yaml(30), encoding="utf-8")
    run("eval", "run", "town", "--dataset", "town.yaml", "--run", "live.ndjson")
    for options, said in (
        (("live.ndjson", "--dataset", "few.yaml"), "not of prices"),
        (("town.yaml", "--dataset", "town.yaml"), "cannot be read as a run"),
        (("live.ndjson", "--dataset", "town.yaml", "--measure", "luck"), "no measure 'luck'"),
    ):
        done = run("eval", "compare", "live.ndjson", *options)
        assert done.exit_code == 2
        assert said in " ".join(done.stderr.split())


def test_too_few_cases_are_told_before_and_after() -> None:
    Path("few.yaml").write_text(as_yaml(30), encoding="utf-8")
    run("eval", "run", "town", "--dataset", "few.yaml", "--run", "live.ndjson")
    done = run("eval", "run", "town", "--dataset", "few.yaml", "--against", "live.ndjson", "--measure", "right")
    assert done.exit_code == 1
    assert "99 needed for a margin of 0.03; nothing can pass" in done.stderr
    assert "too few cases: 99 needed for a margin of 0.03" in done.stdout


def test_a_run_that_was_stopped_goes_on(town: type[Town]) -> None:
    def away_after_forty(case: Case) -> Observed:
        if len(Town.asked) > 40:
            raise Retryable("away")
        return right(case)

    town.answer = staticmethod(away_after_forty)
    stopped = run("eval", "run", "town", "--dataset", "town.yaml")
    assert (stopped.exit_code, stopped.stdout) == (3, "")
    town.asked, town.answer = [], staticmethod(right)
    assert run("eval", "run", "town", "--dataset", "town.yaml").exit_code == 0
    assert len(town.asked) == 110
    assert run("eval", "run", "town", "--dataset", "town.yaml").exit_code == 0
    assert len(town.asked) == 260  # a new one: that one was done


def test_which_run_goes_on(tmp_path: Path) -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)

    def head(hours: float = 0, cases: int = 6) -> RunHead:
        return RunHead.of(dataset(cases), "town", "http://x", now - timedelta(hours=hours))

    def stopped(earlier: RunHead) -> Path:
        path = evaluate.kept_at(tmp_path / "other", earlier)
        return Run.begin(tmp_path / path.name, earlier).path

    assert evaluate.kept_at(tmp_path, head()).name == "town-20261123T120000-prices.ndjson"
    done = Run.begin(evaluate.kept_at(tmp_path, head()), head())
    assert evaluate.kept_at(tmp_path, head(cases=5)).name == "town-20261123T120000.000000-prices.ndjson"
    done.path.unlink()
    stopped(head(hours=30))
    stopped(head(hours=1, cases=7))
    (tmp_path / "town-9.ndjson").write_text("not a run")
    assert not evaluate.kept_at(tmp_path, head()).exists()
    newest = [stopped(head(hours=3)), stopped(head(hours=2))][1]
    assert evaluate.kept_at(tmp_path, head()) == newest


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--least", "right"), "as `right=0.8`"),
        (("--least", "luck=1"), "no measure 'luck'"),
        (("--measure", "luck"), "no measure 'luck'"),
        (("--url", "https://town.example"), "admin key is not sent"),
        (("--against", "town.yaml"), "cannot be read as a run"),
    ],
)
def test_wrong_use_asks_nothing(town: type[Town], options: tuple[str, ...], said: str) -> None:
    done = run("eval", "run", "town", "--dataset", "town.yaml", *options)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert town.asked == []


def test_a_site_without_cases_is_wrong_use() -> None:
    Path("other.yaml").write_text("[{question: Why, site: other}]")
    assert run("eval", "run", "town", "--dataset", "other.yaml").exit_code == 2


def test_a_dataset_is_shown() -> None:
    done = run("eval", "datasets", "show", "town.yaml")
    assert f"prices 1 ({dataset(150).fingerprint}): 150 cases" in done.stdout
    assert "too few" not in done.stdout
    told = json.loads(run("eval", "datasets", "show", "town.yaml", "--json").stdout)
    assert (told["cases"], told["expected"]) == (150, {"answer": 100, "refuse": 50})
    assert told["groups"]["lang de"] == 75


def test_a_dataset_is_made_of_squads_file() -> None:
    asked = {"id": "q", "question": "Cost?", "answers": [{"text": "18 euros"}]}
    document = {"data": [{"title": "Fees", "paragraphs": [{"context": "It is 18 euros.", "qas": [asked]}]}]}
    Path("squad.json").write_text(json.dumps(document))
    done = run(
        "eval", "datasets", "import", "squad", "squad.json", "fees.ndjson", "--pages", "pages.ndjson", "--lang", "en"
    )
    assert done.exit_code == 0
    made = load_dataset(Path("fees.ndjson"))
    assert (made.name, made.version, made.cases[0].answers) == ("fees", "1", ("18 euros",))
    assert json.loads(Path("pages.ndjson").read_text())["content"] == "<p>It is 18 euros.</p>"
    assert run("eval", "datasets", "import", "auto", "squad.json", "same.yaml").exit_code == 0
    assert load_dataset(Path("same.yaml")).cases == made.cases
    assert run("eval", "datasets", "import", "questions", "squad.json", "x.yaml").exit_code == 2
    assert run("eval", "datasets", "import", "squad", "squad.json", "x.csv").exit_code == 2


def test_a_dataset_is_made_of_questions_with_answers() -> None:
    Path("faq.json").write_text(json.dumps([{"question": "Cost?", "answer": "18 euros", "context": "It is 18 euros."}]))
    done = run("eval", "datasets", "import", "auto", "faq.json", "faq.yaml", "--pages", "pages.ndjson")
    assert done.exit_code == 0
    page = json.loads(Path("pages.ndjson").read_text())
    assert load_dataset(Path("faq.yaml")).cases[0].pages == (page["id"],)
    assert page["content"] == "<p>It is 18 euros.</p>"
    done = run("eval", "datasets", "import", "hotpotqa", "faq.json", "x.yaml")
    assert done.exit_code == 2
    assert "faq.json, entry 1: supporting_facts: Field required" in done.stderr.replace("\n", " ")
