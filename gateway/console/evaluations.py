"""Evaluations: published runs by dataset with their trend, one run, and two side by side. What is shown is what
`/v1/admin/.../evaluations` has. Runs are made here (evaluation_runs.py) and with the command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse

from gateway.console.chart import shares
from gateway.console.view import ConsoleRoute, Editor, OnSite, confirmed
from gateway.operators.evaluations import named, run_of, unknown
from pipelines.evaluate.comparison import GATED, WHOLE
from pipelines.evaluate.non_inferiority import MARGIN
from pipelines.evaluate.publication import (
    ORDER,
    PairedCase,
    failures_first,
    is_wrong,
    marked,
    shown_checks,
    side_by_side,
)
from schemas.evaluation import ListedRun, RunFigure, RunId

LISTED = 50  # cases at once
TREND = 12  # runs in a chart
BADGES = {"lost": "bad", "wrong": "fair", "gained": "good", "other": "calm", "same": ""}

Id = Annotated[RunId, Path()]
Skip = Annotated[int, Query(ge=0, le=10_000)]

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/evaluations")
async def list_runs(
    view: OnSite, dataset: Annotated[str, Query(max_length=200)] = "", done: Literal["", "removed"] = ""
) -> Response:
    """By dataset, the one that was asked last first; in each the newest run first."""
    assert view.caller is not None
    runs = named(await view.edge.ports.evaluations.of_site(view.site, dataset or None), view.caller)
    by_dataset: dict[str, list[ListedRun]] = {}
    for run in runs:
        by_dataset.setdefault(run.dataset, []).append(run)
    return view.page(
        "evaluations.html",
        datasets=by_dataset,
        charts={name: _trend(some) for name, some in by_dataset.items()},
        trend=TREND,
        measures={name: _measures(some) for name, some in by_dataset.items()},
        whole=WHOLE,
        only=dataset,
        done=done,
        may_edit=view.caller.may("edit"),
    )


@router.get("/evaluations/compare")
async def compare_runs(view: OnSite, before: RunId, after: RunId, skip: Skip = 0) -> Response:
    """Two runs side by side: what got worse first, answers with their differences marked."""
    assert view.caller is not None
    one = await run_of(view.edge.ports, view.site, before)
    other = await run_of(view.edge.ports, view.site, after)
    paired = await asyncio.to_thread(side_by_side, one, other, MARGIN)
    shown = paired.cases[skip : skip + LISTED]
    return view.page(
        "evaluation_pair.html",
        before=one,
        after=other,
        paired=paired,
        checks=shown_checks(paired.comparison) if paired.comparison else [],
        cases=await asyncio.to_thread(_marked, shown),
        counts={change: sum(each.change == change for each in paired.cases) for change in ORDER},
        badges=BADGES,
        skip=skip,
        listed=LISTED,
    )


@router.get("/evaluations/{run}")
async def show_run(view: OnSite, run: Id, skip: Skip = 0) -> Response:
    """Its figures, and its cases, failures first."""
    assert view.caller is not None
    [found] = named([await run_of(view.edge.ports, view.site, run)], view.caller)
    results = failures_first(found.results)
    others = [
        each
        for each in await view.edge.ports.evaluations.of_site(view.site, found.dataset)
        if each.fingerprint == found.fingerprint and each.id != found.id
    ]
    return view.page(
        "evaluation.html",
        run=found,
        others=others,
        results=results[skip : skip + LISTED],
        wrong=is_wrong,
        whole=WHOLE,
        gated=GATED,
        skip=skip,
        listed=LISTED,
        may_edit=view.caller.may("edit"),
    )


@router.post("/evaluations/{run}/remove")
async def remove_run(view: Editor, run: Id) -> Response:
    assert view.caller is not None
    await confirmed(view, "to take the run away")
    async with view.edge.act(view.caller, "evaluations.remove", view.site, run, via="console"):
        if not await view.edge.ports.evaluations.remove(view.site, run):
            raise unknown(view.site, run)
    return RedirectResponse(f"/console/evaluations?site={view.site}&done=removed", 303)


def _measures(runs: Sequence[ListedRun]) -> list[str]:
    """Those that decide, as far as these runs have them."""
    return [name for name in GATED if any(name in run.groups.get(WHOLE, {}) for run in runs)]


def _trend(runs: Sequence[ListedRun]) -> tuple[str, list[object], list[ListedRun]]:
    """The measure that is shown, the chart, and its runs, the oldest first; of what the newest run has asked alone."""
    same = [run for run in runs if run.fingerprint == runs[0].fingerprint][:TREND][::-1]
    measure = next((name for name in ("right", *GATED) if all(name in run.groups.get(WHOLE, {}) for run in same)), "")
    if not measure or len(same) < 2:
        return "", [], []
    figures: list[RunFigure] = [run.groups[WHOLE][measure] for run in same]
    return measure, [*shares([(each.mean, each.low, each.high) for each in figures])], same


def _marked(cases: Sequence[PairedCase]) -> list[tuple[PairedCase, object, object]]:
    return [(each, *marked(each.before.answer, each.after.answer)) for each in cases]
