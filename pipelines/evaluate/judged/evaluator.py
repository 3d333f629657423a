"""The answers of a run judged, a few side by side, into the run.

run ─▶ answers by chance ─▶ each measure that applies and is not decided yet ─▶ judge ─▶ verdict, kept in the run
                              │ budget spent, judge gone: it ends here; the same command goes on with the rest
                              └ failed, unreadable: kept as unjudged; the same command asks again

The order is by chance, and the same each time: where the budget does not reach all, those that are judged are a sample
of all and not the dataset's first.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import BudgetSpent, EvaluationJudge, JudgeGone
from pipelines.evaluate.judged.measure import JudgedMeasure
from pipelines.evaluate.measures import Observed
from pipelines.evaluate.run import CaseVerdict, Run, VerdictKey
from pipelines.runtime.errors import PagewireError
from prompts.loader import load

AT_ONCE = 4  # answers judged side by side
SEED = 7


class JudgingTask(NamedTuple):
    """One measure of one answer, the first or a further time."""

    case: Case
    measure: JudgedMeasure
    repeat: int


@dataclass
class Stopped:
    """Why not all was judged: the first reason; empty when all was asked."""

    why: str = ""


def fingerprint(measure: JudgedMeasure) -> str:
    """Of a measure's prompts and numbers: its verdicts are told apart by it."""
    return _fingerprint(measure.prompts) + measure.variant


@cache
def _fingerprint(prompts: tuple[str, ...]) -> str:
    return "+".join(load(f"evaluate/{name}").fingerprint for name in prompts)


def key(case: Case, measure: JudgedMeasure, judge: str, repeat: int = 0) -> VerdictKey:
    """Where its verdict is kept."""
    return VerdictKey(case.id, measure.name, judge, fingerprint(measure), repeat)


def applying(cases: Sequence[Case], run: Run, measure: JudgedMeasure) -> list[Case]:
    """The cases whose answers a measure can be asked of: all of them are in its denominator."""
    seen = (case for case in cases if case.id in run.observed)
    return [case for case in seen if measure.applies(case, run.observed[case.id])]


async def judge_all(
    cases: Sequence[Case],
    run: Run,
    measures: Sequence[JudgedMeasure],
    judges: Sequence[EvaluationJudge],
    told: Callable[[int, int], None] = lambda done, of: None,
    at_once: int = AT_ONCE,
) -> str:
    """Judge what is not decided yet, into the run.

    Args:
        judges: one for each repeat; of the same model and budget.
        told: how many verdicts are there, of how many.

    Returns:
        Why it ended before all was asked; empty: all was.
    """
    work = list(_work(cases, run, measures, len(judges)))
    left = [some for some in _by_answer(work) if any(not decided(run, one, judges[0].name) for one in some)]
    random.Random(SEED).shuffle(left)  # noqa: S311 - draws a sample, guards no secret
    done = sum(decided(run, one, judges[0].name) for one in work)
    stopped, waiting = Stopped(), iter(left)

    async def one_after_the_other() -> None:
        nonlocal done
        for some in waiting:
            for one in some:
                if stopped.why:
                    return
                if not decided(run, one, judges[one.repeat].name):
                    await _judged(one, run, judges[one.repeat], stopped)
                    done += decided(run, one, judges[one.repeat].name)
                    told(done, len(work))

    told(done, len(work))
    tasks = [asyncio.create_task(one_after_the_other()) for _ in range(at_once)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return stopped.why


def decided(run: Run, one: JudgingTask, judge: str) -> bool:
    """Whether its verdict is there."""
    verdict = run.verdicts.get(key(one.case, one.measure, judge, one.repeat))
    return verdict is not None and verdict.unjudged is None


async def _judged(one: JudgingTask, run: Run, judge: EvaluationJudge, stopped: Stopped) -> None:
    observed: Observed = run.observed[one.case.id]
    where = key(one.case, one.measure, judge.name, one.repeat)._asdict()
    try:
        found = await one.measure.of(one.case, observed, judge)
    except (BudgetSpent, JudgeGone) as err:
        stopped.why = stopped.why or err.code
    except PagewireError as err:
        run.keep(CaseVerdict(**where, unjudged=err.code))
    else:
        run.keep(CaseVerdict(**where, figures=found.figures, reason=found.reason))


def _work(cases: Sequence[Case], run: Run, measures: Sequence[JudgedMeasure], repeats: int) -> Iterator[JudgingTask]:
    for measure in measures:
        for case in applying(cases, run, measure):
            for repeat in range(repeats):
                yield JudgingTask(case, measure, repeat)


def _by_answer(work: Sequence[JudgingTask]) -> list[list[JudgingTask]]:
    """What belongs to one answer is asked one after the other: measures share what they learn of it."""
    found: dict[str, list[JudgingTask]] = {}
    for one in work:
        found.setdefault(one.case.id, []).append(one)
    return list(found.values())
