"""Experiments under way: nothing is asked twice, a kill loses nothing, and a budget is kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipelines.evaluate.dataset import Case, Dataset
from pipelines.evaluate.experiments.grid import Grid, arms
from pipelines.evaluate.experiments.page import html, markdown
from pipelines.evaluate.experiments.report import NothingAsked, report, told
from pipelines.evaluate.experiments.sweep import (
    ExperimentBudget,
    ExperimentBudgetSpent,
    PlannedArm,
    ask_arms,
    left,
    most_calls,
    plan,
)
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.run import AskCase, Run
from pipelines.runtime.errors import Retryable
from schemas.trial import TrialChoices, TrialSettings
from tests.unit.evaluate.runs import AT, dataset, right

CASES = dataset(60)
NOTHING = {"answer": "No idea.", "sources": (), "found": (), "grade": 4}


def grid(**fields: Any) -> Grid:
    whole = {"name": "g", "site": "town", "dataset": "town.yaml", "base": {"strategy": "quote"}} | fields
    return Grid.model_validate({"vary": {"hits": [1, 3, 5]}} | whole)


def choices(*models: str) -> TrialChoices:
    strategy = "plain" if models else "quote"
    return TrialChoices(
        site="town", models=models, reranker=False, live=None, indexes=(), hits=10, strategy=strategy, system="s1"
    )


class Town:
    """Knows the more the more hits it has; away after so many questions; each answer costs two calls of a model."""

    def __init__(self, until: int = 10_000) -> None:
        self.until = until
        self.asked: list[tuple[int | None, str]] = []
        self.at_once = self.most_at_once = 0

    def under(self, settings: TrialSettings) -> AskCase:
        return Asking(self, settings.hits).ask


class Asking:
    def __init__(self, town: Town, hits: int | None) -> None:
        self._town, self._hits = town, hits

    async def ask(self, case: Case) -> Observed:
        town = self._town
        if len(town.asked) >= town.until:
            raise Retryable("away")
        town.asked.append((self._hits, case.id))
        town.at_once += 1
        town.most_at_once = max(town.most_at_once, town.at_once)
        await asyncio.sleep(0)
        town.at_once -= 1
        forgotten = self._hits is not None and int(case.id[1:]) % 4 >= self._hits
        changes = NOTHING if forgotten else {"calls": 2, "ms": 100.0 + (self._hits or 0)}
        return right(case).model_copy(update=changes)


def planned(folder: Path, of: Grid | None = None, system: str = "s1", cases: Dataset = CASES) -> list[PlannedArm]:
    return plan(arms(of or grid(), folder), cases, "town", "http://x", system, AT, folder)


async def asked(folder: Path, town: Town, of: Grid | None = None, **more: Any) -> list[PlannedArm]:
    wanted = planned(folder, of, more.pop("system", "s1"))
    given: tuple[Any, ...] = (more.pop("choices", choices()), more.pop("allowance", ExperimentBudget()))
    await ask_arms(wanted, CASES, town.under, *given, **more)
    return wanted


def written(folder: Path, of: Grid | None = None) -> tuple[str, str, dict[str, Any]]:
    found = report(of or grid(), CASES, planned(folder, of))
    return markdown(found), html(found), told(found)


async def test_every_case_is_asked_once_of_each_arm(tmp_path: Path) -> None:
    town, seen = Town(), list[tuple[str, int]]()
    done = await asked(tmp_path, town, asked=lambda name, count: seen.append((name, count)))
    assert Counter(hits for hits, _ in town.asked) == {None: 60, 1: 60, 3: 60, 5: 60}
    assert town.asked[0][0] is None  # the base first
    assert seen[-1] == ("hits 5", 60)
    assert all(each.read().complete for each in done)
    await asked(tmp_path, town)
    assert len(town.asked) == 240


async def test_killed_and_resumed_it_gives_the_same_report(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    await asked(whole, Town())
    for until in (7, 75, 10):
        with pytest.raises(Retryable):
            await asked(killed, Town(until))
    last = max(killed.glob("*.ndjson"), key=lambda file: file.stat().st_mtime_ns)
    with last.open("ab") as file:  # killed while it wrote
        file.write(b'{"case": "c5')
    town = Town()
    await asked(killed, town)
    assert len(town.asked) == 240 - 92
    assert written(killed) == written(whole)


async def test_answers_are_shared_by_grids_that_have_an_arm_in_common(tmp_path: Path) -> None:
    await asked(tmp_path, Town())
    other, town = grid(name="other", vary={"hits": [3, 4]}), Town()
    await asked(tmp_path, town, other)
    assert Counter(hits for hits, _ in town.asked) == {4: 60}
    assert [arm.asked for arm in report(other, CASES, planned(tmp_path, other)).arms] == [60, 60, 60]


async def test_another_system_or_dataset_is_asked_anew(tmp_path: Path) -> None:
    await asked(tmp_path, Town())
    town = Town()
    await asked(tmp_path, town, system="s2")
    assert len(town.asked) == 240
    first, second = planned(tmp_path)[0], planned(tmp_path, cases=dataset(61))[0]
    assert first.path != second.path
    assert left(planned(tmp_path), CASES.cases, choices()) == (0, 0)
    assert left(planned(tmp_path, system="s3"), CASES.cases, choices()) == (240, 0)


@pytest.mark.parametrize(
    ("settings", "history", "calls"),
    [
        ({"strategy": "quote"}, 0, 1),  # it is rephrased
        ({}, 0, 2),
        ({"think": True}, 0, 3),
        ({"strategy": "chain-of-thought"}, 0, 3),
        ({"strategy": "chain-of-thought", "think": False}, 0, 2),
        ({"strategy": "react", "think": True}, 0, 9),
        ({"strategy": "quote"}, 2, 3),
        ({"samples": 5}, 2, 30),
    ],
)
def test_what_a_case_may_cost(settings: dict[str, Any], history: int, calls: int) -> None:
    case = CASES.cases[0].model_copy(update={"history": ("Before?",) * history})
    assert most_calls(case, TrialSettings.model_validate(settings), choices("large")) == calls
    assert most_calls(case, TrialSettings.model_validate(settings), choices()) == 0


async def test_a_budget_is_not_exceeded_and_what_was_begun_is_kept(tmp_path: Path) -> None:
    of, models = grid(base={"strategy": "chain-of-thought"}), choices("large")
    town, allowance = Town(), ExperimentBudget(calls=31)
    with pytest.raises(ExperimentBudgetSpent, match="of 31 calls of the model 30 are spent, and a question may cost 3"):
        await asked(tmp_path, town, of, choices=models, allowance=allowance)
    assert (allowance.called, allowance.held, len(town.asked)) == (30, 0, 15)
    assert len(planned(tmp_path, of)[0].read().observed) == 15  # each that was paid for
    with pytest.raises(ExperimentBudgetSpent, match="100 tokens are spent"):
        await asked(tmp_path, town, of, choices=models, allowance=ExperimentBudget(tokens=100))
    await asked(tmp_path, town, of, choices=models)
    assert len(town.asked) == 240
    assert town.most_at_once > 1


async def test_what_fails_on_the_way_counts_as_spent() -> None:
    allowance = ExperimentBudget(calls=4)
    await allowance.open(2)
    await allowance.close(2, None)
    assert (allowance.called, allowance.held) == (2, 0)


async def test_an_unfinished_arm_is_not_compared(tmp_path: Path) -> None:
    with pytest.raises(NothingAsked):
        written(tmp_path)
    with pytest.raises(Retryable):
        await asked(tmp_path, Town(150))
    text, page, json = written(tmp_path)
    assert not json["finished"]
    assert "**Not finished**: hits 3 (" in text
    assert "hits 5" in text
    assert [each["verdict"] for each in json["arms"]][1:] == ["worse in right", ""]
    assert "hits 5" in page


async def test_the_report_says_what_is_shown_and_no_more(tmp_path: Path) -> None:
    await asked(tmp_path, Town())
    text, page, json = written(tmp_path)
    verdicts = {arm["name"]: arm["verdict"] for arm in json["arms"]}
    assert verdicts == {
        "base": "",
        "hits 1": "worse in right",
        "hits 3": "worse in right",
        "hits 5": "no difference shown",
    }
    assert "- **worse** than the base in right: hits 1" in text
    assert "better" not in text.replace("better or worse", "")
    assert "**Too few cases**: about" in text
    assert page.count("<svg") == 2 + bool(json["arms"][0]["tokens"])
    assert "right by hits" in page
    assert "src=" not in page  # it needs nothing beside it
    assert "<script" not in page


async def test_what_failed_is_said_and_counts_as_no_answer(tmp_path: Path) -> None:
    await asked(tmp_path, Town())
    last = planned(tmp_path)[-1]
    with Run.begin(last.path, last.head) as run:  # of the same case the last line counts
        for case in CASES.cases[:3]:
            run.add(Observed(case=case.id, at=AT, ms=1.0, failed="timeout"))
    text, _, json = written(tmp_path)
    assert "**Failed**, and counted as no answer: hits 5: 3 timeout." in text
    assert json["arms"][-1]["figures"]["right"]["mean"] == 57 / 60


async def test_names_are_no_markup(tmp_path: Path) -> None:
    nasty = Dataset("<b>|x|</b>", CASES.cases, "1")
    [base, *_] = wanted = plan(arms(grid(), tmp_path), nasty, "town", "http://x", "s1", AT, tmp_path)
    with Run.begin(base.path, base.head) as run:
        for case in nasty.cases:
            run.add(right(case))
    found = report(grid(), nasty, wanted)
    assert "\\<b\\>\\|x\\|" in markdown(found)
    assert "&lt;b&gt;|x|" in html(found)
    assert "<b>" not in html(found)
