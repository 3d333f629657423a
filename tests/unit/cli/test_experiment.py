"""`pagewire eval sweep`: what it prints, writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
import yaml
from typer.testing import CliRunner, Result

from cli import experiment
from cli.main import app
from pipelines.runtime import logs
from schemas.trial import TrialChoices
from tests.edge import ADMIN
from tests.unit.evaluate.experiments.test_sweep import Town as Answering
from tests.unit.evaluate.experiments.test_sweep import choices
from tests.unit.evaluate.runs import as_yaml

GRID = {
    "name": "hits",
    "site": "town",
    "dataset": "town.yaml",
    "base": {"strategy": "quote"},
    "vary": {"hits": [1, 3, 5]},
}


class Town(Answering):
    """Stands where the running system would."""

    now: Answering
    knows: TrialChoices
    lags: ClassVar[list[int]]

    def __init__(self, url: str, site: str, key: Any) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def choices(self) -> TrialChoices:
        lag = Town.lags.pop(0) if len(Town.lags) > 1 else Town.lags[0]
        return Town.knows.model_copy(update={"ingest_lag": lag})

    def under(self, settings: Any) -> Any:
        return Town.now.under(settings)


@pytest.fixture(autouse=True)
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Town]:
    """A system without a model, a home of its own, and `hits.yaml` over 60 cases."""
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG", "ADMIN_KEY"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAGEWIRE_URL", "http://127.0.0.1:8000")
    monkeypatch.setenv("PAGEWIRE_ADMIN_KEY", ADMIN)
    monkeypatch.setattr(logs, "configure", lambda settings: None)
    monkeypatch.setattr("adapters.http_site.HttpTrials", Town)
    Path("town.yaml").write_text(as_yaml(60), encoding="utf-8")
    written()
    Town.now, Town.knows, Town.lags = Answering(), choices(), [0]
    return Town


def written(**fields: Any) -> None:
    Path("hits.yaml").write_text(yaml.safe_dump(GRID | fields), encoding="utf-8")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["eval", *arguments], catch_exceptions=False)


def test_a_run_and_its_report(town: type[Town], tmp_path: Path) -> None:
    done = run("sweep", "hits.yaml")
    assert done.exit_code == 0, done.output
    for said in ("hits 5", "worse in right", "no difference shown", "too few cases: about", "report in"):
        assert said in done.stdout, done.stdout
    assert len(town.now.asked) == 240
    folder = tmp_path / "home" / "experiments" / "hits"
    first = {file.name: file.read_bytes() for file in folder.glob("report.*")}
    assert sorted(first) == ["report.html", "report.md"]

    again = json.loads(run("report", "hits.yaml", "--json").stdout)
    assert [arm["asked"] for arm in again["report"]["arms"]] == [60] * 4
    assert {file.name: file.read_bytes() for file in folder.glob("report.*")} == first
    assert len(town.now.asked) == 240


def test_a_dry_run_asks_nothing(town: type[Town]) -> None:
    done = run("sweep", "hits.yaml", "--dry-run")
    assert (done.exit_code, town.now.asked) == (0, [])
    assert "4 arms of 60 cases: 240 to ask, at most about 0 calls of the model" in done.stdout
    town.knows = choices("large")
    written(base={"strategy": "chain-of-thought"})
    told = json.loads(run("sweep", "hits.yaml", "--dry-run", "--json").stdout)
    assert (told["arms"][0], told["to_ask"], told["most_calls"]) == ("base", 240, 720)


def test_a_budget_stops_it_and_the_same_command_goes_on(town: type[Town]) -> None:
    town.knows = choices("large")
    written(base={"strategy": "chain-of-thought"})
    stopped = run("sweep", "hits.yaml", "--most-calls", "100")
    assert stopped.exit_code == 1
    assert "not asked yet: hits 1; hits 3; hits 5" in stopped.stdout
    asked = len(town.now.asked)
    assert asked < 60
    assert run("sweep", "hits.yaml").exit_code == 0
    assert len(town.now.asked) == 240


@pytest.mark.parametrize(("lags", "late"), [([7, 3, 0], False), ([7, 5], True)])
def test_pages_on_their_way_are_waited_for(
    town: type[Town], monkeypatch: pytest.MonkeyPatch, lags: list[int], late: bool
) -> None:
    monkeypatch.setattr(experiment, "LOOK_AGAIN", 0.001)
    monkeypatch.setattr(experiment, "INDEXING", 0.01)
    Town.lags = list(lags)
    done = run("sweep", "hits.yaml")
    assert done.exit_code == 0, done.output
    assert "waiting for pages that are not indexed yet" in done.stderr
    assert ("5 messages about pages are not indexed yet; it is asked without them" in done.stderr) == late
    assert Town.lags == lags[-1:]
    assert len(town.now.asked) == 240


def test_who_is_away_is_told_and_nothing_is_lost(town: type[Town]) -> None:
    town.now = Answering(until=70)
    assert run("sweep", "hits.yaml").exit_code == 3
    town.now = Answering()
    assert run("sweep", "hits.yaml").exit_code == 0
    assert len(town.now.asked) == 170


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"vary": {"strategy": ["plain"]}}, "strategy plain: no model is configured there"),
        ({"vary": {"rerank": [True]}}, "rerank on: no reranker is configured there"),
        ({"vary": {"index": ["pagewire-town-000009"]}}, "has no index pagewire-town-000009; there are: (none)"),
        ({"vary": {"chunk_size": [400]}}, "pagewire index rebuild SITE --from changes --chunk-size 800"),
        ({"site": "other", "dataset": "none.yaml"}, "none.yaml"),
    ],
)
def test_what_cannot_be_tried_is_said_before_anything_is_asked(
    town: type[Town], fields: dict[str, Any], said: str
) -> None:
    written(**fields)
    done = run("sweep", "hits.yaml")
    assert done.exit_code == 2
    assert said in done.stderr
    assert town.now.asked == []


def test_a_report_of_nothing() -> None:
    done = run("report", "hits.yaml")
    assert done.exit_code == 2
    assert "nothing was asked yet" in done.stderr
