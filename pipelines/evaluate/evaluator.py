"""The answers to a dataset asked for and judged, a few side by side, into a run.

dataset ─▶ each case that is not asked yet ─▶ system ─▶ what came of it, kept in the run
run ─▶ answers by chance ─▶ each measure that applies and is not decided yet ─▶ judge ─▶ verdict, kept in the run
                              │ budget spent, judge gone: it ends here; the same evaluation goes on with the rest
                              └ failed, unreadable: kept as unjudged; the same evaluation asks again

The order of judging is by chance, and the same each time: where the budget does not reach all, those that are judged
are a sample of all and not the dataset's first.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import BudgetSpent, EvaluationJudge, JudgeGone
from pipelines.evaluate.judged.measure import JudgedMeasure, JudgingTask, decided, key, tasks
from pipelines.evaluate.run import AskCase, CaseVerdict, Run
from pipelines.runtime.errors import PagewireError

AT_ONCE = 4  # cases asked, or answers judged, side by side
SEED = 7

Item = TypeVar("Item")


@dataclass(frozen=True)
class AsyncEvaluator:
    """Asks and judges within a bound.

    Args:
        judges: one for each repeat; of the same model and budget.
        at_once: cases, or answers, side by side.
    """

    measures: Sequence[JudgedMeasure] = ()
    judges: Sequence[EvaluationJudge] = ()
    at_once: int = AT_ONCE

    async def ask(
        self, cases: Sequence[Case], ask: AskCase, run: Run, asked: Callable[[int], None] = lambda _: None
    ) -> None:
        """Ask what the run has not asked yet, into the run.

        Args:
            asked: receives the number of cases that are done.

        Raises: Retryable, Permanent: as `ask`; the others that were under way are cancelled.
        """

        async def one(case: Case) -> None:
            run.add(await ask(case))
            asked(len(run.observed))

        asked(len(run.observed))
        await self._side_by_side([case for case in cases if case.id not in run.observed], one)

    async def judge(
        self, cases: Sequence[Case], run: Run, told: Callable[[int, int], None] = lambda done, of: None
    ) -> str:
        """Judge what is not decided yet, into the run.

        Args:
            told: receives the number of verdicts that are there, and of how many.

        Returns: Why it ended before all was asked; empty: all was.
        """
        name = self.judges[0].name
        work = tasks(cases, run, self.measures, len(self.judges))
        left = [some for some in _by_answer(work) if any(not decided(run, one, name) for one in some)]
        random.Random(SEED).shuffle(left)  # noqa: S311 - draws a sample, guards no secret
        done = sum(decided(run, one, name) for one in work)
        stopped = ""

        async def answer(some: Sequence[JudgingTask]) -> None:
            nonlocal done, stopped
            for one in some:
                if stopped:
                    return
                if not decided(run, one, name):
                    why = await _judged(one, run, self.judges[one.repeat])
                    stopped = stopped or why
                    done += decided(run, one, name)
                    told(done, len(work))

        told(done, len(work))
        await self._side_by_side(left, answer)
        return stopped

    async def _side_by_side(self, items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
        waiting = iter(items)

        async def one_after_the_other() -> None:
            for item in waiting:
                await work(item)

        workers = [asyncio.create_task(one_after_the_other()) for _ in range(self.at_once)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


async def _judged(one: JudgingTask, run: Run, judge: EvaluationJudge) -> str:
    """Returns: why no further answer can be judged; empty: it can."""
    where = key(one.case, one.measure, judge.name, one.repeat)._asdict()
    try:
        found = await one.measure.of(one.case, run.observed[one.case.id], judge)
    except (BudgetSpent, JudgeGone) as err:
        return err.code
    except PagewireError as err:
        run.keep(CaseVerdict(**where, unjudged=err.code))
    else:
        run.keep(CaseVerdict(**where, figures=found.figures, reason=found.reason))
    return ""


def _by_answer(work: Sequence[JudgingTask]) -> list[list[JudgingTask]]:
    """What belongs to one answer is asked one after the other: measures share what they learn of it."""
    found: dict[str, list[JudgingTask]] = {}
    for one in work:
        found.setdefault(one.case.id, []).append(one)
    return list(found.values())
