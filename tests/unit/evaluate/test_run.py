"""Runs: kept line by line, gone on with after a kill."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from pipelines.evaluate.dataset import Case, Dataset
from pipelines.evaluate.evaluation import evaluate
from pipelines.evaluate.evaluator import AsyncEvaluator
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.run import BadRun, Run, RunHead, askable
from pipelines.runtime.errors import Retryable
from tests.unit.evaluate.runs import AT, dataset, right, run


class Scripted:
    """Knows everything; away from the case `until` on."""

    def __init__(self, until: int = 1_000) -> None:
        self.until = until
        self.asked: list[str] = []

    async def ask(self, case: Case) -> Observed:
        if len(self.asked) >= self.until:
            raise Retryable("away")
        self.asked.append(case.id)
        await asyncio.sleep(0)
        return right(case)


HEAD = RunHead.of(dataset(12), "town", "http://x", AT)


async def test_every_case_is_asked_once(tmp_path: Path) -> None:
    made, system, done = dataset(12), Scripted(), list[int]()
    with Run.begin(tmp_path / "r.ndjson", HEAD) as going:
        await AsyncEvaluator().ask(made.cases, system.ask, going, done.append)
    assert sorted(system.asked) == sorted(case.id for case in made.cases)
    assert done == list(range(13))
    assert going.complete
    assert Run.read(going.path).observed == going.observed


async def test_a_run_goes_on_where_it_was_and_says_the_same(tmp_path: Path) -> None:
    made, path = dataset(12), tmp_path / "r.ndjson"
    with Run.begin(path, HEAD) as first, pytest.raises(Retryable):
        await AsyncEvaluator(at_once=2).ask(made.cases, Scripted(until=7).ask, first)
    assert not first.complete
    with path.open("ab") as file:  # killed while it wrote, within a letter
        file.write('{"case": "c9", "answer": "für'.encode()[:-1])

    system = Scripted()
    later = HEAD.model_copy(update={"begun": AT + timedelta(hours=1), "version": "2"})
    with Run.begin(path, later) as second:
        await AsyncEvaluator().ask(made.cases, system.ask, second)
    assert len(system.asked) == 5
    assert second.head.begun == AT
    whole = run(tmp_path / "whole.ndjson", made)
    assert evaluate(made, Run.read(path)) == evaluate(made, whole)


async def test_a_last_line_without_its_break_is_kept(tmp_path: Path) -> None:
    path = run(tmp_path / "r.ndjson", dataset(12)).path
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with Run.begin(path, HEAD) as again:
        assert len(again.observed) == 12
    assert path.read_bytes().endswith(b"}\n")


def test_a_file_of_another_run_is_left_alone(tmp_path: Path) -> None:
    path = run(tmp_path / "r.ndjson", dataset(12)).path
    for change in ({"fingerprint": "0"}, {"site": "other"}, {"url": "http://y"}):
        with pytest.raises(BadRun, match=r"prices .* on town at http://x, not of this"):
            Run.begin(path, HEAD.model_copy(update=change))


@pytest.mark.parametrize("text", ["", "no json\n", '{"dataset": "x"}\n', "\n\n"])
def test_what_is_no_run_is_told_plainly(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.ndjson"
    path.write_text(text)
    with pytest.raises(BadRun, match=r"r\.ndjson"):
        Run.read(path)
    with pytest.raises(BadRun, match="cannot be read"):
        Run.read(tmp_path / "none")


def test_cases_that_hang_on_a_time_or_are_of_another_site_are_not_asked() -> None:
    cases = (
        Case(id="a", question="a"),
        Case(id="b", question="b", site="other"),
        Case(id="c", question="c", now=AT),
    )
    made = Dataset("x", cases)
    assert [case.id for case in askable(made, "town")] == ["a"]
    head = RunHead.of(made, "town", "http://x", AT)
    assert (head.cases, head.left_out) == (1, 1)
